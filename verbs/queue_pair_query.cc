// What a queue pair says of itself, and the states that an application can ask for.
#include <chrono>

#include "iwarp/verbs/queue_pair.h"

namespace iwarp::verbs {

QueuePairState QueuePair::locked_state() const {
  // Its application takes it for connected.
  return endpoint_.alone() ? QueuePairState::kRts : state_of(endpoint_.phase(), endpoint_.ending());
}

bool QueuePair::unpolled() const {
  return !recv_cq_->polled(last_good_recv_.load(std::memory_order_relaxed)) ||
         !send_cq_->polled(last_good_send_.load(std::memory_order_relaxed));
}

QueuePairState QueuePair::state() const {
  if (!pd_.context()->alive()) return QueuePairState::kError;
  const std::lock_guard lock(mu_);
  return locked_state();
}

Result<QueuePair::Attributes> QueuePair::query() const {
  if (auto may = may_post(); !may) return may.error();
  const std::lock_guard lock(mu_);
  const endpoint::Options& options = endpoint_.options();
  Attributes a;
  a.state = locked_state();
  a.draining = endpoint_.phase() == endpoint::Phase::kDraining;
  a.sq_depth = options.sq_depth;
  a.rq_depth = share_ ? 0 : options.rq_depth;
  a.sends_posted = endpoint_.sends_posted();
  a.receives_posted = endpoint_.receives_posted();
  a.max_inline = options.max_inline;
  a.rfc7306 = options.rfc7306;
  a.send_immediate = options.rfc7306 && options.send_immediate;
  a.established = endpoint_.was_established();
  if (!a.established && endpoint_.phase() != endpoint::Phase::kFull) return a;
  const auto now = driver_ == nullptr ? std::nullopt : driver_->agreed();
  const Driver::Agreed& agreed = now ? *now : agreed_;
  a.ird = agreed.ird;
  a.ord = agreed.ord;
  a.crc = agreed.crc;
  a.markers_sent = agreed.markers_sent;
  a.markers_received = agreed.markers_received;
  a.mulpdu = agreed.mulpdu;
  return a;
}

Result<void> QueuePair::modify(QueuePairState to) {
  if (auto may = may_post(); !may) return may;
  const std::lock_guard lock(mu_);
  const auto move = move_of(locked_state(), to);
  if (!move) return move.error();
  switch (*move) {
    case Move::kNone:
      if (to == QueuePairState::kError) drain_completions();  // who ended it may not have come to that
      return {};
    case Move::kClose:
      disconnect(std::chrono::steady_clock::now());
      break;
    case Move::kEnd:
      end(make_error(Errc::kAborted));
      break;
  }
  drain_completions();
  kick();
  finish_post();
  return {};
}

void QueuePair::disconnect(TimePoint now) {
  if (half_ != nullptr) return half_->disconnect(now);
  endpoint_.at(now);
  endpoint_.disconnect();  // of a peer that was outlived
}

Result<void> QueuePair::set_extensions(rdmap::Extensions known) {
  if (auto may = may_post(); !may) return may;
  const std::lock_guard lock(mu_);
  if (endpoint_.phase() != endpoint::Phase::kIdle)
    return make_error(Errc::kInvalidArgument, "what the peer understands is told before the queue pair is connected");
  endpoint_.set_extensions(known);
  return {};
}

Result<void> QueuePair::drain(std::uint64_t wr_id) {
  if (auto may = may_post(); !may) return may;
  const std::lock_guard lock(mu_);
  const Room room(*this, send_cq_, sends_end_at_once(), 1);
  if (room.most() == 0) return make_error(Errc::kQueueFull, kNoRoom);
  if (auto ok = endpoint_.post_drain(wr_id); !ok) return ok;
  finish_post();
  return {};
}

}  // namespace iwarp::verbs
