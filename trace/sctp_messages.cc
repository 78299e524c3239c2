#include "iwarp/trace/sctp_messages.h"

#include <utility>

namespace iwarp::trace {

bool SctpMessages::is_new(std::uint32_t tsn) {
  if (!seen_.insert(tsn).second) return false;
  in_order_of_arrival_.push_back(tsn);
  if (in_order_of_arrival_.size() > kMaxSeen) {
    seen_.erase(in_order_of_arrival_.front());
    in_order_of_arrival_.pop_front();
  }
  return true;
}

std::optional<SctpMessage> SctpMessages::add(const SctpData& chunk) {
  if (!is_new(chunk.tsn)) return std::nullopt;
  if (chunk.begins && chunk.ends) {
    return SctpMessage{chunk.stream,    chunk.ppid, !chunk.unordered, 1, {chunk.bytes.begin(), chunk.bytes.end()},
                       chunk.wire_bytes};
  }
  if (bytes_ + chunk.bytes.size() > kMaxBytes) drop();
  bytes_ += chunk.bytes.size();
  fragments_[chunk.tsn] = {chunk, {chunk.bytes.begin(), chunk.bytes.end()}};
  // Its neighbours, as far as they are there. TSNs wrap.
  std::uint32_t first = chunk.tsn, last = chunk.tsn;
  while (!fragments_.at(first).head.begins) {
    if (!fragments_.contains(--first)) return std::nullopt;
  }
  while (!fragments_.at(last).head.ends) {
    if (!fragments_.contains(++last)) return std::nullopt;
  }
  const Fragment& begin = fragments_.at(first);
  SctpMessage m{begin.head.stream, begin.head.ppid, !begin.head.unordered, 0, {}, 0};
  for (std::uint32_t tsn = first; tsn != last + 1; ++tsn) {
    const auto it = fragments_.find(tsn);
    const Fragment& f = it->second;
    if (m.bytes.size() == m.wire_bytes) m.bytes.insert(m.bytes.end(), f.bytes.begin(), f.bytes.end());
    m.wire_bytes += f.head.wire_bytes;
    ++m.fragments;
    bytes_ -= f.bytes.size();
    fragments_.erase(it);
  }
  return m;
}

void SctpMessages::drop() {
  dropped_ += std::exchange(bytes_, 0);
  fragments_.clear();
}

std::uint64_t SctpMessages::take_dropped() {
  return std::exchange(dropped_, 0);
}

}  // namespace iwarp::trace
