#include "iwarp/verbs/shared_receive_queue.h"

#include <algorithm>

#include "iwarp/endpoint/endpoint.h"
#include "iwarp/verbs/queue_pair.h"

namespace iwarp::verbs {
namespace {

Result<void> check(const SharedReceiveQueue::Options& options) {
  if (options.depth == 0 || options.depth > endpoint::kDeepestQueue)
    return make_error(Errc::kInvalidArgument, "the depth of a shared receive queue must be 1 to 16777216");
  return {};
}

}  // namespace

// --- What is shared

SharedReceiveQueue::Shared::Shared(SharedReceiveQueue& queue, std::size_t depth) : receives_(depth), queue_(&queue) {}

bool SharedReceiveQueue::Shared::take(rdmap::RecvWr& wr, const std::shared_ptr<Waiter>& waiter) {
  const std::lock_guard lock(mu_);
  if (queue_ == nullptr) return false;
  if (waiter != nullptr && waiter->place_ == Waiter::Place::kServed) {
    waiter->place_ = Waiter::Place::kNone;
    --served_;
  } else if (waiter != nullptr && (!waiters_.empty() || served_ > 0)) {
    return stand_in_line(waiter);
  }
  if (!receives_.take(wr)) return stand_in_line(waiter);
  warn();
  return true;
}

// False: as take().
bool SharedReceiveQueue::Shared::stand_in_line(const std::shared_ptr<Waiter>& waiter) {
  if (waiter == nullptr || waiter->place_ != Waiter::Place::kNone) return false;
  waiters_.push_back(waiter);
  waiter->place_ = Waiter::Place::kInLine;
  return false;
}

void SharedReceiveQueue::Shared::forget(Waiter& waiter) {
  const std::lock_guard lock(mu_);
  if (waiter.place_ != Waiter::Place::kInLine) return;
  std::erase_if(waiters_, [&](const auto& other) { return other.get() == &waiter; });
  waiter.place_ = Waiter::Place::kNone;
}

Result<void> SharedReceiveQueue::Shared::post(const rdmap::RecvWr& wr) {
  if (auto ok = endpoint::check_receive(wr); !ok) return ok;
  if (receives_.post(wr)) return {};
  return receives_.full() ? make_error(Errc::kQueueFull) : make_error(Errc::kResource, "no memory for another request");
}

// First come, first served. Who has taken one and wants another stands behind the others.
void SharedReceiveQueue::Shared::serve_waiters() {
  std::shared_ptr<Waiter> next;
  for (;;) {
    {
      const std::lock_guard lock(mu_);
      if (next != nullptr && next->place_ == Waiter::Place::kServed) {  // it wanted none: its connection has ended
        next->place_ = Waiter::Place::kNone;
        --served_;
      }
      if (waiters_.empty() || receives_.posted() == 0) return;
      next = std::move(waiters_.front());
      waiters_.pop_front();
      next->place_ = Waiter::Place::kServed;
      ++served_;
    }
    next->tell();
  }
}

void SharedReceiveQueue::Shared::warn() {
  if (!receives_.limit_reached()) return;
  limit_reached_.raise(queue_->pd_.async_events(), {.type = AsyncEventType::kSrqLimitReached, .srq = queue_});
}

void SharedReceiveQueue::Shared::close() {
  const std::lock_guard lock(mu_);
  queue_ = nullptr;
  limit_reached_.withdraw();
  receives_ = rdmap::SharedReceives(0);
  for (const auto& waiter : waiters_) waiter->place_ = Waiter::Place::kNone;
  waiters_.clear();
}

void SharedReceiveQueue::Waiter::tell() {
  const std::lock_guard lock(mu_);
  if (qp_ != nullptr) qp_->receives_came();
}

// --- The queue

SharedReceiveQueue::SharedReceiveQueue(const ProtectionDomain& pd, const Options& options)
    : pd_(pd),
      usable_(check(options)),
      depth_(usable_ ? options.depth : 0),
      shared_(std::make_shared<Shared>(*this, depth_)) {}

SharedReceiveQueue::~SharedReceiveQueue() {
  if (pd_.context()->alive()) shared_->close();
}

Result<void> SharedReceiveQueue::may_use() const {
  if (!usable_) return usable_;
  if (!pd_.context()->alive()) return make_error(Errc::kInvalidArgument, "shared receive queue used after fork()");
  return {};
}

Result<void> SharedReceiveQueue::post_recv(std::span<const rdmap::RecvWr> list, std::size_t* posted) {
  if (posted != nullptr) *posted = 0;
  if (auto may = may_use(); !may) return may;
  const auto shared = shared_;  // what follows may end the queue
  Result<void> result;
  {
    const std::lock_guard lock(shared->mu_);
    for (const rdmap::RecvWr& wr : list) {
      result = shared->post(wr);
      if (!result) break;
      if (posted != nullptr) ++*posted;
    }
  }
  shared->serve_waiters();
  return result;
}

Result<void> SharedReceiveQueue::set_limit(std::size_t limit) {
  if (auto may = may_use(); !may) return may;
  if (limit > depth_)
    return make_error(Errc::kInvalidArgument, "the limit of a shared receive queue is at most its depth");
  const std::lock_guard lock(shared_->mu_);
  shared_->receives_.set_limit(limit);
  shared_->warn();
  return {};
}

std::size_t SharedReceiveQueue::limit() const {
  if (!may_use()) return 0;
  const std::lock_guard lock(shared_->mu_);
  return shared_->receives_.limit();
}

std::size_t SharedReceiveQueue::posted() const {
  if (!may_use()) return 0;
  const std::lock_guard lock(shared_->mu_);
  return shared_->receives_.posted();
}

}  // namespace iwarp::verbs
