#include "iwarp/rpcrdma/receive_ring.h"

#include <algorithm>

namespace iwarp::rpcrdma {

ReceiveRing::ReceiveRing(ReceiveQueue& queue, BufferPool& pool, std::size_t receives, std::size_t receive_bytes)
    : queue_(queue),
      pool_(pool),
      // req: RFC8166-3.3.3-1
      // req: D2005-5-1
      receive_bytes_(std::max<std::size_t>(receive_bytes, kDefaultInlineBytes)),  // req: RFC8166-3.3.3-4
      wanted_(receives),
      slots_(receives),
      posted_at_(receives) {
  missing_.reserve(receives);
  for (std::size_t i = receives; i-- > 0;) missing_.push_back(static_cast<std::uint32_t>(i));
}

Result<void> ReceiveRing::fill() {
  while (missing() > 0) {
    auto buffer = pool_.acquire(receive_bytes_, BufferPool::Purpose::kControl);
    if (!buffer) break;
    const std::uint32_t slot = missing_.back();
    // Before a message can come, each for one of any length up to this. req: D2005-2-2
    if (auto posted = queue_.post_recv(work_id(WorkOwner::kReceive, slot), buffer->slice()); !posted) return posted;
    missing_.pop_back();
    slots_[slot] = std::move(*buffer);
    posted_at_[slot] = next_post_++;
  }
  return {};
}

void ReceiveRing::resize(std::size_t receives) {
  wanted_ = receives;
  while (slots_.size() < receives) {  // as many as were ever wanted at a time
    missing_.push_back(static_cast<std::uint32_t>(slots_.size()));
    slots_.emplace_back();
    posted_at_.push_back(0);
  }
}

bool ReceiveRing::can_hold(std::size_t receives) const {
  constexpr auto kUse = BufferPool::Purpose::kControl;
  const std::size_t more = receives - std::min(receives, posted());
  return more <= (pool_.budget_bytes(kUse) - pool_.in_use_bytes(kUse)) / BufferPool::charged_bytes(receive_bytes_);
}

void ReceiveRing::rest() {
  const std::uint64_t oldest = next_post_ - posted();  // they complete in the order posted
  for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
    if (slots_[slot] && posted_at_[slot] > oldest) BufferPool::forget(slots_[slot]);
  }
}

Buffer ReceiveRing::take(const Completion& done) {
  const std::size_t slot = work_slot(done.id);
  if (slot >= slots_.size() || !slots_[slot]) return {};
  Buffer out = std::move(slots_[slot]);
  missing_.push_back(static_cast<std::uint32_t>(slot));
  if (done.status != OpStatus::kOk || done.byte_len > receive_bytes_) return {};
  out.set_view(0, done.byte_len);
  return out;
}

}  // namespace iwarp::rpcrdma
