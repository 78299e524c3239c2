// What a queue pair shares with others: Receives, completion queues to which it brings its driver, asynchronous events.
#include "iwarp/verbs/queue_pair.h"

namespace iwarp::verbs {
namespace {

bool is_of_a_lost_peer(Errc code) {
  return code == Errc::kConnectionLost || code == Errc::kTimeout || code == Errc::kStartupTimeout;
}

}  // namespace

QueuePair::Share::Share(std::shared_ptr<SharedReceiveQueue::Shared> queue, QueuePair* waits)
    : queue_(std::move(queue)),
      waiter_(waits == nullptr ? nullptr : std::make_shared<SharedReceiveQueue::Waiter>(*waits)) {}

void QueuePair::Share::let_go() {
  if (waiter_ == nullptr) return;
  waiter_->let_go();  // who tells it has done so when this returns
  queue_->forget(*waiter_);
}

bool QueuePair::Share::take(rdmap::RecvWr& wr) {
  if (!queue_->take(wr, waiter_)) return false;
  // req: RFC5042-6.4.3.1-1 RFC5040-8.1.2-9 RFC5041-8.3.2-7: statistics of who consumes how many
  taken_.store(taken_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);  // by one thread at a time
  return true;
}

void QueuePair::join_queues(const Progress& engine, const std::weak_ptr<Driver>& driver, const Driver* key) {
  for (const Cq* cq : {&send_cq_, &recv_cq_}) (*cq)->join(engine, driver, key);
}

void QueuePair::part_queues(const Driver* key) {
  for (const Cq* cq : {&send_cq_, &recv_cq_}) {
    if (*cq != nullptr) (*cq)->part(key);
  }
}

void QueuePair::tell_end() {
  const auto& events = pd_.async_events();
  if (!told_fatal_ && endpoint_.was_established()) {
    const Error& reason = endpoint_.reason();
    // Of a peer that was outlived the failed request tells.
    const bool told_otherwise = endpoint_.options().outlive_peer && is_of_a_lost_peer(reason.code);
    if (reason.code != Errc::kPeerClosed && reason.code != Errc::kAborted && !told_otherwise) {
      told_fatal_ = true;
      fatal_.raise(events, {.type = AsyncEventType::kQpFatal, .qp_number = number_, .reason = reason});
    }
  }
  if (share_ && !told_last_ && endpoint_.done_receiving()) {
    told_last_ = true;
    last_.raise(events, {.type = AsyncEventType::kLastWqeReached, .qp_number = number_});
  }
}

void QueuePair::drop_events() {
  if (!pd_.context()->alive()) return;
  const std::lock_guard lock(mu_);
  told_fatal_ = told_last_ = true;
  fatal_.withdraw();
  last_.withdraw();
}

}  // namespace iwarp::verbs
