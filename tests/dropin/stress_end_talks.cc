// An end that is established: requests, messages, and what they have to carry.
#include <poll.h>

#include <cstring>

#include "tests/dropin/stress_end.h"

namespace iwarp::stress {
namespace {

constexpr unsigned kWindow = 4;

}  // namespace

bool End::over() const {
  if (disconnected_) return true;
  if (!plan_.ends) return false;
  if (failed_) return true;
  if (done_ < plan_.end_after) return false;
  return plan_.end_after < plan_.ops.size() || arrived_ == peer_sends_.size();
}

void End::converse() {
  Doing::now("converses");
  if (plan_.migrates_after) migrate();
  auto until = std::chrono::steady_clock::now() + kPatience;
  while (!over()) {
    bool moved = post_some();
    moved |= poll();
    moved |= look(0);
    const auto now = std::chrono::steady_clock::now();
    if (moved) {
      Doing::now("converses");
      until = now + kPatience;
      idle_ = 0;
    } else {
      DEMAND_OR_SAY(now < until, std::to_string(done_) + "/" + std::to_string(posted_) + " requests, " +
                                     std::to_string(arrived_) + " messages");
      rest();
    }
  }
  if (disconnected_ && !plan_.ends && !presents_roce()) drain();
}

// Until there may be something to do.
void End::rest() {
  if (!plan_.sleeps) {
    if (++idle_ % 64 == 0) pause_us(200);
    return;
  }
  pollfd watched[] = {{id_->channel->fd, POLLIN, 0}, {completions_->fd, POLLIN, 0}};
  (void)::poll(watched, 2, static_cast<int>(kPatience.count() * 1000));
  while (readable(completions_->fd)) {
    ibv_cq* cq = nullptr;
    void* context = nullptr;
    DEMAND(::ibv_get_cq_event(completions_, &cq, &context) == 0);
    ::ibv_ack_cq_events(cq, 1);
    DEMAND(::ibv_req_notify_cq(cq, 0) == 0);
  }
}

bool End::post_some() {
  const unsigned before = posted_;
  while (!failed_ && posted_ < plan_.ops.size() && posted_ - done_ < kWindow) post(posted_++);
  return posted_ != before;
}

void End::post(unsigned op) {
  const Op& wanted = plan_.ops[op];
  auto& peer = shared_.of(other(side_));
  const std::uint64_t at = std::uint64_t{op} * kMostOctets;
  unsigned flags = IBV_SEND_SIGNALED;
  if (wanted.inlined) flags |= IBV_SEND_INLINE;
  int error = 0;
  switch (wanted.kind) {
    case Kind::kSend:
      error = post_send(qp_, op, IBV_WR_SEND, piece(kOut, op, wanted.length), mr_->lkey, {}, flags);
      break;
    case Kind::kWrite:
      error = post_send(qp_, op, IBV_WR_RDMA_WRITE, piece(kOut, op, wanted.length), mr_->lkey,
                        {peer.target + at, peer.key}, flags);
      break;
    case Kind::kRead:
      error = post_send(qp_, op, IBV_WR_RDMA_READ, piece(kSink, op, wanted.length), mr_->lkey,
                        {peer.source + at, peer.key}, flags);
      break;
  }
  DEMAND_OR_SAY(error == 0, std::strerror(error));
}

bool End::poll() {
  ibv_wc some[4];
  bool any = false;
  for (ibv_cq* const queue : queues_) {
    const int n = ::ibv_poll_cq(queue, 4, some);
    DEMAND(n >= 0);
    for (int i = 0; i < n; ++i) completed(some[i]);
    any |= n > 0;
  }
  return any;
}

// Each queue completes in its order, flushed requests too.
void End::completed(const ibv_wc& wc) {
  const bool is_receive = wc.wr_id >= kFirstReceive;
  if (is_receive) {
    DEMAND(wc.wr_id == kFirstReceive + receives_done_ && receives_done_ < receives_);
  } else {
    DEMAND(wc.wr_id == done_ && done_ < posted_);
  }
  const unsigned nth = is_receive ? receives_done_++ : done_++;
  if (wc.status != IBV_WC_SUCCESS) {
    DEMAND_OR_SAY(shared_.may_end, ::ibv_wc_status_str(wc.status));
    failed_ = true;
    totals.failed.fetch_add(1);
    return;
  }
  totals.completed.fetch_add(1);
  if (is_receive) {
    arrived(nth, wc.byte_len);
  } else {
    sent(nth);
  }
}

void End::sent(unsigned op) {
  const Op& wanted = plan_.ops[op];
  if (wanted.kind == Kind::kSend) shared_.of(side_).sent.fetch_add(1);
  if (wanted.kind != Kind::kRead) return;
  DEMAND(is_from(piece(kSink, op, wanted.length), origin(other(side_), kSource, op)));
  totals.compared_octets.fetch_add(wanted.length);
}

// A message, and the peer's Writes that were posted before it.
void End::arrived(unsigned nth, std::uint32_t length) {
  DEMAND(nth == arrived_ && nth < peer_sends_.size());
  ++arrived_;
  shared_.of(side_).received.fetch_add(1);
  if (plan_.late_receives) receive();
  const unsigned op = peer_sends_[nth];
  DEMAND(length == peer_plan_.ops[op].length);
  DEMAND(is_from(piece(kIn, nth, length), origin(other(side_), kOut, op)));
  totals.compared_octets.fetch_add(length);
  for (unsigned i = nth == 0 ? 0 : peer_sends_[nth - 1]; i < op; ++i) {
    const Op& before = peer_plan_.ops[i];
    if (before.kind != Kind::kWrite) continue;
    DEMAND(is_from(piece(kTarget, i, before.length), origin(other(side_), kOut, i)));
    totals.compared_octets.fetch_add(before.length);
  }
}

// Of a connection that is over: everything completes.
void End::drain() {
  Doing::now("drains");
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (done_ < posted_ || receives_done_ < receives_) {
    if (!poll()) pause_us(100);
    DEMAND_OR_SAY(std::chrono::steady_clock::now() < until, std::to_string(done_) + "/" + std::to_string(posted_) +
                                                                " requests, " + std::to_string(receives_done_) + "/" +
                                                                std::to_string(receives_) + " Receives");
  }
  shared_.of(side_).saw_the_end = true;
}

}  // namespace iwarp::stress
