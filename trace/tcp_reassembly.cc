#include "iwarp/trace/tcp_reassembly.h"

#include <algorithm>
#include <utility>

namespace iwarp::trace {
namespace {

// Positions start here, so that a segment older than the first one seen has a position too.
constexpr std::uint64_t kOrigin = std::uint64_t{1} << 32;
// No window reaches so far (RFC 7323 s2.3): whatever claims to be there is of another connection.
constexpr std::uint64_t kMaxAhead = std::uint64_t{1} << 30;
constexpr std::size_t kNodeBytes = 96;  // what holding a segment costs besides its octets

}  // namespace

std::uint64_t TcpReassembly::position(std::uint32_t sequence) const {
  const auto distance = static_cast<std::int32_t>(sequence - static_cast<std::uint32_t>(next_));
  return next_ + static_cast<std::uint64_t>(static_cast<std::int64_t>(distance));
}

void TcpReassembly::on_syn(std::uint32_t sequence) {
  if (started_) return;
  started_ = true;
  syn_ = sequence;
  next_ = kOrigin + sequence + 1;
}

void TcpReassembly::on_segment(std::uint32_t sequence, ConstBytes payload, std::size_t wire_bytes, bool fin) {
  on_other_packet();
  if (wire_bytes == 0 && !fin) return;
  if (!std::exchange(started_, true)) next_ = kOrigin + sequence;
  const std::uint64_t at = position(sequence);
  if (at > next_ + kMaxAhead) return;
  if (fin) fin_ = at + wire_bytes;
  if (wire_bytes > 0) hold(at, payload, wire_bytes);
}

void TcpReassembly::hold(std::uint64_t at, ConstBytes payload, std::uint64_t wire) {
  if (at + wire <= next_) {
    repeated_ += payload.size();
    return;
  }
  Held& h = held_[at];
  if (h.wire == 0) held_bytes_ += kNodeBytes;
  if (h.bytes.size() >= payload.size() && h.wire >= wire) {
    repeated_ += payload.size();
    return;
  }
  held_bytes_ -= h.bytes.size();
  repeated_ += h.bytes.size();
  h.bytes.assign(payload.begin(), payload.end());
  h.wire = wire;
  held_bytes_ += h.bytes.size();
}

void TcpReassembly::on_ack(std::uint32_t acknowledged) {
  on_other_packet();
  if (!started_) return;
  const std::uint64_t at = position(acknowledged);
  if (at <= next_ + kMaxAhead) acked_ = std::max(acked_, at);
}

void TcpReassembly::on_other_packet() {
  packets_since_ack_ = acked_ > next_ ? packets_since_ack_ + 1 : 0;
}

void TcpReassembly::on_end() {
  give_up_holes_ = true;
}

void TcpReassembly::resume() {
  give_up_holes_ = false;
  current_ = {};
}

std::optional<TcpReassembly::Item> TcpReassembly::next() {
  if (lost_ > 0) return Lost{std::exchange(lost_, 0)};
  while (!held_.empty()) {
    const std::uint64_t at = held_.begin()->first;
    if (at > next_) {
      const bool acknowledged = acked_ >= at && packets_since_ack_ >= kGracePackets;
      if (!acknowledged && !give_up_holes_ && held_bytes_ <= kMaxHeldBytes) return std::nullopt;
      return Lost{at - std::exchange(next_, at)};
    }
    Held h = std::move(held_.extract(held_.begin()).mapped());
    held_bytes_ -= h.bytes.size() + kNodeBytes;
    const std::uint64_t old = next_ - at;  // octets that were here before
    const std::size_t skip = static_cast<std::size_t>(std::min<std::uint64_t>(old, h.bytes.size()));
    repeated_ += skip;
    if (old >= h.wire) continue;
    next_ += h.wire - old;
    lost_ = h.wire - std::max<std::uint64_t>(old, h.bytes.size());
    h.bytes.erase(h.bytes.begin(), h.bytes.begin() + static_cast<std::ptrdiff_t>(skip));
    current_ = std::move(h.bytes);
    if (current_.empty()) return Lost{std::exchange(lost_, 0)};
    return Data{current_};
  }
  if (fin_ && next_ >= *fin_) {
    fin_.reset();
    return Fin{};
  }
  if (!give_up_holes_) return std::nullopt;
  // Acknowledged, yet never captured. One octet alone may be a FIN that was not captured either.
  const std::uint64_t end = fin_.value_or(acked_ == next_ + 1 ? next_ : acked_);
  if (end <= next_) return std::nullopt;
  return Lost{end - std::exchange(next_, end)};
}

}  // namespace iwarp::trace
