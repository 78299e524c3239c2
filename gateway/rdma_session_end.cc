// RdmaSession: how it ends.
#include "iwarp/gateway/connection_end.h"
#include "iwarp/gateway/rdma_counters.h"
#include "iwarp/gateway/rdma_session.h"

namespace iwarp::gateway {
namespace {

using Clock = std::chrono::steady_clock;

// Of an RDMA Read, Write or Send: so much less is left to wait for, as of records. Single octets are no progress.
constexpr std::uint64_t kProgressBytes = std::uint64_t{64} << 10;

}  // namespace

void RdmaSession::give_up(EndReason why, const Error& error) {
  if (!step(life_, LifeInput::kClose)) return;
  tell_given_up(log_, stats_, *connection_, why, error, tcp_->remote());
  connection_->abort(error);
}

// After a turn of work. The memory and the place that somebody holds without going on are given to others.
void RdmaSession::watch_for_stalls(TimePoint now) {
  if (life_ >= Life::kClosing) return;
  record_.look(tcp_->in_record(), tcp_->read_progress(), now);
  const bool reads = responder_.reads() > 0, replies = responder_.unsent() > 0;
  const cm::Counters octets = reads || replies ? connection_->counters() : cm::Counters{};
  const auto read = responder_.reads_answered() + octets.rx.read_response_bytes / kProgressBytes;
  const auto sent = responder_.sent() + (octets.tx.send_bytes + octets.tx.write_bytes) / kProgressBytes;
  reads_.look(reads, read, now);
  // What was posted behind a Read completes after it, though TCP has taken it.
  replies_.look(replies, sent + read, now);
  if (record_.expired(now))
    return give_up(EndReason::kHalfRecord, make_error(Errc::kTimeout, "the server did not finish its record"));
  if (reads_.expired(now))  // before the Replies, which wait for them
    return give_up(EndReason::kUnansweredRead, make_error(Errc::kTimeout, "the client does not answer RDMA Reads"));
  if (replies_.expired(now))
    return give_up(EndReason::kUnreadReply, make_error(Errc::kTimeout, "the client does not take its Replies"));
}

// The server has closed: once the client has what is complete, it may reconnect and send its other Calls again. One
// that does not take it is given up at once: an orderly end would wait for it a second time.
void RdmaSession::finish_if_delivered() {
  if (life_ != Life::kDelivering) return;
  const bool delivered = responder_.all_sent() && responder_.replies_kept() == 0;
  if (!delivered && Clock::now() < *delivery_ends_) return;
  step(life_, LifeInput::kClose);
  if (delivered) return connection_->disconnect();
  connection_->abort(make_error(Errc::kTimeout, "the server closed, and the client did not take what was left"));
}

void RdmaSession::on_disconnected(const stream::Disconnected& how) {
  if (life_ == Life::kOver) return;
  tell_end(log_, stats_, *crc_trap_, *connection_, how, tcp_->remote());
  while (channel_.poll([&](const rpcrdma::Completion& c) { responder_.on_completion(c); })) {
  }
  responder_.on_disconnect();
  while (responder_.poll_event()) {
  }
  note_messages();
  for (const Outgoing& o : to_tcp_) stats_.dropped(o.kind, DropReason::kConnectionClosed);
  record_counters(stats_, connection_->counters());
  // A Reply that we sent need not have arrived: only an orderly end with nothing outstanding rules replays out.
  const bool replays = !outstanding_.empty() || !cm::ordinary_end(how);
  release();
  stats_.connection_closed();
  ended_(*this, backend_port_, replays);
}

void RdmaSession::release() {
  step(life_, LifeInput::kReleased);
  meter_.end();
  channel_.queues().close();  // what is still on its way up, too
  // With RST: the port must be free at once for the client's next connection, where the server has to recognise
  // replays; it may come by the next gateway process. When all was answered while the gateway shuts down, there are
  // hardly any, and what the server's TCP still has to receive then must not be lost.
  tcp_->close(!shutting_down_ || !outstanding_.empty() || tcp_->all_taken());
  to_tcp_.clear();
}

void RdmaSession::drain() {
  shutting_down_ = true;
  step(life_, LifeInput::kNoMoreCalls);
  finish_if_drained();
}

void RdmaSession::finish_if_drained() {
  if (life_ != Life::kDraining || !responder_.idle() || !outstanding_.empty() || !failed_backward_.empty() ||
      !to_tcp_.empty() || !tcp_->all_sent())
    return;
  step(life_, LifeInput::kClose);
  connection_->disconnect();
}

void RdmaSession::add_live_counters(Stats::Snapshot& to) const {
  if (life_ == Life::kOver) return;
  to.registered_bytes += channel_.registered_bytes();
  if (!connection_) return;
  add_counters(to, connection_->counters());
  to.credits_granted += responder_options_.credits;
  to.credits_used += responder_.outstanding_calls();
}

void RdmaSession::stop() {
  if (life_ == Life::kOver) return;
  step(life_, LifeInput::kClose);
  if (connection_) return connection_->abort();
  release();
  stats_.connection_refused(RefuseReason::kLimit);
  ended_(*this, 0, false);
}

void RdmaSession::orphan() {
  ended_ = {};
  release();
  if (connection_) connection_->abort();
}

}  // namespace iwarp::gateway
