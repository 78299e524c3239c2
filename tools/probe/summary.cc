#include "tools/probe/summary.h"

#include <algorithm>

#include "iwarp/rpcrdma/private_data.h"

namespace iwarp::tools::probe {
namespace {

constexpr const char* kNotKnown = "not known";

// How one question ended, by name.
class Answers {
 public:
  explicit Answers(std::span<const Record> records) : records_(records) {}

  [[nodiscard]] const Record* to(std::string_view name) const {
    const auto found = std::ranges::find_if(records_, [&](const Record& r) { return r.question->name == name; });
    return found == records_.end() ? nullptr : &*found;
  }
  // The Reply to it, if it is one.
  [[nodiscard]] std::optional<RawFrame> reply(std::string_view name) const {
    const Record* r = to(name);
    auto reply = r == nullptr ? std::nullopt : RawFrame::parse(r->answer.octets);
    return reply && reply->is_reply() ? reply : std::nullopt;
  }
  [[nodiscard]] std::optional<RawFrame> accepted(std::string_view name) const {
    auto r = reply(name);
    return r && !r->reject ? r : std::nullopt;
  }
  // "accepted", "rejected (R=1)", "closed", "reset", "no answer", "not known"
  [[nodiscard]] std::string fate(std::string_view name) const {
    const Record* r = to(name);
    if (r == nullptr) return kNotKnown;
    if (const auto answer = reply(name)) return answer->reject ? "rejected (R=1)" : "accepted";
    switch (r->answer.after_reply) {
      case TcpState::kClosed:
        return "closed";
      case TcpState::kReset:
        return "reset";
      case TcpState::kUnreachable:
        return kNotKnown;
      case TcpState::kOpen:
        break;
    }
    return "no answer";
  }

 private:
  std::span<const Record> records_;
};

std::string revisions(const Answers& all) {
  return "2 enhanced: " + all.fate("enhanced") + "; 2 unenhanced: " + all.fate("unenhanced") +
         "; 1: " + all.fate("revision-1") + "; 3: " + all.fate("revision-3");
}

std::string crc(const Answers& all) {
  const auto with = all.accepted("enhanced"), without = all.accepted("crc-off");
  if (without && without->crc) return "always on";
  if (with && without) return "on if either side wants it";
  if (without) return all.fate("enhanced") == kNotKnown ? "off where nobody wants it; C=1: not known" : "only off";
  if (with) {
    const std::string off = all.fate("crc-off");
    return off == kNotKnown ? "on where it is wanted; C=0: not known" : "only on: C=0 is " + off;
  }
  return kNotKnown;
}

std::string markers(const Answers& all, std::span<const Record> records) {
  bool wants = false, accepts = false;
  for (const Record& r : records) {
    const auto reply = RawFrame::parse(r.answer.octets);
    if (!reply || !reply->is_reply() || reply->reject) continue;
    accepts = true;
    wants |= reply->markers;
  }
  return std::string(wants     ? "wanted by it"
                     : accepts ? "not wanted by it"
                               : "wanted by it: not known") +
         "; M=1 asked of it: " + all.fate("markers");
}

// RTR forms that the Reply to this question names.
std::string forms(const Answers& all, std::string_view name) {
  const auto reply = all.accepted(name);
  if (!reply || !reply->enhanced) return all.fate(name);
  const mpa::EnhancedData& e = *reply->enhanced;
  std::string s;
  for (const auto& [set, form] : {std::pair{e.rtr_send, "Send"}, {e.rtr_write, "Write"}, {e.rtr_read, "Read"}}) {
    if (set) s += (s.empty() ? "" : "+") + std::string(form);
  }
  return s.empty() ? "none" : s;
}

std::string rtr(const Answers& all) {
  return "of all: " + forms(all, "rtr-all") + "; of Write and Read: " + forms(all, "enhanced") +
         "; of Write: " + forms(all, "rtr-write") + "; of Read: " + forms(all, "rtr-read") +
         "; of Send: " + forms(all, "rtr-send");
}

std::string depth(const Answers& all) {
  const auto count = [](std::uint16_t n) {
    return n == mpa::kNoIrdOrdNegotiation ? std::string("left to the ULP") : std::to_string(n);
  };
  const auto of = [&](std::string_view name) {
    const auto reply = all.accepted(name);
    if (!reply || !reply->enhanced) return all.fate(name);
    return count(reply->enhanced->ird) + "/" + count(reply->enhanced->ord);
  };
  return "IRD/ORD at most " + of("depth-max") + "; asked for 0/0: " + of("depth-0") + "; for 1/1: " + of("depth-1") +
         "; left to the ULP: " + of("depth-ulp");
}

std::string inline_sizes(std::span<const Record> records) {
  bool replies = false;
  for (const Record& r : records) {
    const auto reply = RawFrame::parse(r.answer.octets);
    if (!reply || !reply->is_reply()) continue;
    replies = true;
    const auto said = rpcrdma::PrivateData::find(reply->private_data());
    if (said) {
      return "sends " + std::to_string(said->send_bytes) + ", receives " + std::to_string(said->receive_bytes) +
             " octets; remote invalidation " + (said->remote_invalidation ? "yes" : "no") + " (RFC 8797)";
    }
  }
  return replies ? "not stated (RFC 8797): 1024 octets if this is RPC-over-RDMA" : kNotKnown;
}

}  // namespace

std::vector<Fact> summarise(std::span<const Record> records) {
  const Answers all(records);
  return {{"revisions", revisions(all)},
          {"crc", crc(all)},
          {"markers", markers(all, records)},
          {"peer_to_peer", "A=1: " + all.fate("enhanced") + "; A=0: " + all.fate("client-server")},
          {"rtr", rtr(all)},
          {"ird_ord", depth(all)},
          {"private_data", "64 octets: " + all.fate("private-data") + "; 508 octets: " + all.fate("private-data-max")},
          {"inline", inline_sizes(records)}};
}

}  // namespace iwarp::tools::probe
