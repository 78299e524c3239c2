#include "iwarp/trace/sctp_order.h"

#include <utility>

#include "iwarp/sctp/chunk.h"

namespace iwarp::trace {

void SctpOrder::add(SctpMessage message) {
  const auto ssn = sctp::parse_ssn(message.bytes);
  if (!ssn) return;
  if (!due_) due_ = ssn->value;
  const std::size_t bytes = message.bytes.size();
  if (ssn->distance_from(sctp::DdpSsn{*due_}) >= 0x8000 || kept_.contains(ssn->value)) {
    strays_.push_back(std::move(message));
    return;
  }
  if (kept_.emplace(ssn->value, std::move(message)).second) bytes_ += bytes;
}

void SctpOrder::begin() {
  due_ = 0;
  giving_up_ = false;
}

std::optional<SctpOrder::Item> SctpOrder::next() {
  if (!strays_.empty()) {
    Stray stray{std::move(strays_.front())};
    strays_.pop_front();
    return stray;
  }
  if (kept_.empty()) {
    giving_up_ = false;
    return std::nullopt;
  }
  auto it = kept_.find(*due_);
  if (it == kept_.end()) {
    if (!giving_up_ && kept_.size() <= kMaxKept && bytes_ <= kMaxBytes) return std::nullopt;
    // The nearest one ahead, modulo 2^16.
    it = kept_.upper_bound(*due_);
    if (it == kept_.end()) it = kept_.begin();
    const std::uint16_t missing = sctp::DdpSsn{it->first}.distance_from(sctp::DdpSsn{*due_});
    due_ = it->first;
    return Lost{missing};
  }
  SctpMessage message = std::move(it->second);
  bytes_ -= message.bytes.size();
  kept_.erase(it);
  due_ = static_cast<std::uint16_t>(*due_ + 1);
  return message;
}

}  // namespace iwarp::trace
