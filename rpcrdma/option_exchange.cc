#include "iwarp/rpcrdma/option_exchange.h"

#include <algorithm>
#include <utility>

namespace iwarp::rpcrdma {

Result<void> OptionRegistry::add(std::uint32_t type, Payload payload) {
  if (find(type)) return make_error(Errc::kInvalidArgument, "that type of RDMA_OPTIONAL is known already");
  entries_.push_back({type, payload});  // req: V2-3.1-3 V2-3.2-1
  return {};
}

std::optional<OptionRegistry::Payload> OptionRegistry::find(std::uint32_t type) const {
  const auto it = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) { return e.type == type; });
  return it == entries_.end() ? std::nullopt : std::optional(it->payload);
}

OptionExchange::Verdict OptionExchange::on_message(const ParsedHeader& parsed, Buffer& message) {
  const OptionBody& option = parsed.header.option;
  const auto payload = known_.find(option.type);
  if (!payload) return Verdict::kUnknown;  // req: V2-3.1-1 V2-3.1-5
  const std::size_t octets = message.size() - parsed.payload_offset;
  if ((octets > 0) != (*payload == OptionRegistry::Payload::kAlways)) return Verdict::kMalformed;  // req: V2-3.2-1
  if (events_.size() >= most_) return Verdict::kTooMany;
  OptionReceived received{parsed.header.xid, option.type, option.info, {}};
  if (octets > 0) {
    message.set_view(parsed.payload_offset, octets);
    received.message = std::move(message);
  }
  events_.emplace_back(std::move(received));
  return Verdict::kTaken;
}

bool OptionExchange::on_error(const Header& header) {
  if (header.error.code != HeaderError::kInvalOption) return false;
  const auto it = std::find_if(sent_.begin(), sent_.end(), [&](const Sent& s) { return s.xid == header.xid; });
  if (it == sent_.end()) return false;
  if (events_.size() < most_) events_.emplace_back(OptionRefused{it->xid, it->type});  // req: V2-3.1-2
  sent_.erase(it);
  return true;
}

std::optional<OptionEvent> OptionExchange::poll() {
  if (events_.empty()) return std::nullopt;
  OptionEvent out = std::move(events_.front());
  events_.pop_front();
  return out;
}

Result<OutgoingMessage> OptionExchange::make(std::uint32_t xid, OptionBody option, Buffer& message,
                                             std::uint32_t credits, std::size_t most_bytes) {
  const auto payload = known_.find(option.type);
  if (!payload || (message.size() > 0) != (*payload == OptionRegistry::Payload::kAlways)) {
    return make_error(Errc::kInvalidArgument, "no such extension");
  }
  OutgoingMessage out;
  out.header.xid = xid;
  out.header.version = kVersion2;
  out.header.credits = credits;
  out.header.proc = Proc::kOptional;
  const std::uint32_t type = option.type;
  out.header.option = std::move(option);
  if (out.header.encoded_size() + message.size() > most_bytes) {
    return make_error(Errc::kInvalidArgument, "longer than the inline threshold");
  }
  if (message) {
    out.in_line.push_back({0, message.size()});
    out.payload = std::move(message);
  }
  if (sent_.size() >= most_) sent_.pop_front();
  sent_.push_back({xid, type});
  return out;
}

}  // namespace iwarp::rpcrdma
