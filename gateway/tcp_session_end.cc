// TcpSession: its time limits, and how it ends.
#include <spdlog/spdlog.h>

#include "iwarp/gateway/connection_end.h"
#include "iwarp/gateway/rdma_counters.h"
#include "iwarp/gateway/tcp_session.h"
#include "iwarp/rpcrdma/rpc_message.h"

namespace iwarp::gateway {
namespace {

using Clock = std::chrono::steady_clock;

// Records dropped before others have their turn.
constexpr unsigned kRecordBudget = 64;

bool is_of_the_server(EndReason why) {
  return why == EndReason::kLostCall || why == EndReason::kNoCredit || why == EndReason::kMalformedReply ||
         why == EndReason::kNoVersion;
}

}  // namespace

void TcpSession::give_up(EndReason why, const Error& error) {
  if (!step(life_, LifeInput::kClose)) return;
  server_ended_ = is_of_the_server(why);
  tell_given_up(log_, stats_, *connection_, why, error, tcp_->remote());
  connection_->abort(error);
}

// After a turn of work. The memory and the place that somebody holds without going on are given to others.
void TcpSession::watch_for_stalls(TimePoint now) {
  if (life_ >= Life::kClosing || !requester_) return;
  record_.look(tcp_->in_record(), tcp_->read_progress(), now);
  replies_.look(!tcp_->all_sent(), tcp_->sent_progress(), now);
  credits_.look(requester_->waits_for_credit() || requester_->waits_for_exposed(), requester_->calls_ended(), now);
  leaving_.look(tcp_->ended().has_value(), requester_->calls_ended() + tcp_->sent_progress(), now);
  question_.look(requester_->versions().state() == rpcrdma::VersionNegotiation::State::kAsking &&
                     requester_->credits().in_flight() > 0,
                 requester_->calls_ended(), now);
  if (record_.expired(now))
    return give_up(EndReason::kHalfRecord, make_error(Errc::kTimeout, "the client did not finish its record"));
  if (replies_.expired(now))
    return give_up(EndReason::kUnreadReply, make_error(Errc::kTimeout, "the client does not take its Replies"));
  if (credits_.expired(now))
    return give_up(EndReason::kNoCredit,
                   make_error(Errc::kTimeout,
                              "the server holds all credits, or the memory that may be exposed, and answers nothing"));
  if (leaving_.expired(now))
    return give_up(EndReason::kClientLeft,
                   make_error(Errc::kTimeout, "the client left before its Calls were answered"));
  if (question_.expired(now))
    return give_up(EndReason::kNoVersion,
                   make_error(Errc::kTimeout, "the server does not say which version of RPC-over-RDMA it speaks"));
}

// The server gets an RPC error, which also gives its credit back; a late Reply of the client finds no Call.
void TcpSession::on_deadline() {
  if (life_ >= Life::kRest) return;
  channel_.on_deadline(Clock::now());
  while (!backward_.empty() && backward_.front().expires <= Clock::now()) {
    const AtClient call = backward_.front();
    backward_.pop_front();
    stats_.incident(Incident::kBackwardTimeout);
    meter_.failed(RpcProgram::kCallback);
    log_.warn(LogKind::kBackward,
              fmt::format("backward call unanswered tcp_peer={} xid={:#x} after={}ms", cm::to_string(tcp_->remote()),
                          call.xid, options_.backward_timeout.count()),
              Clock::now());
    auto error = make_error_record(call.xid);
    if (!error || !requester_->reply_backward(call.token, std::move(*error))) requester_->abandon_backward(call.token);
  }
  pump();
}

void TcpSession::close_rdma() {
  step(life_, LifeInput::kClose);
  if (auto ok = channel_.flush(); !ok) spdlog::debug("flush: {}", ok.error().why);
  connection_->disconnect();
}

void TcpSession::on_disconnected(const stream::Disconnected& how) {
  server_ended_ |= life_ < Life::kClosing;
  if (!step(life_, LifeInput::kEnded)) return;
  tell_end(log_, stats_, *crc_trap_, *connection_, how, tcp_->remote());
  while (channel_.poll([&](const rpcrdma::Completion& c) { requester_->on_completion(c); })) {
  }
  requester_->on_disconnect();
  round_.reset();
  while (auto event = requester_->poll_event()) {
    if (auto* reply = std::get_if<rpcrdma::Requester::ReplyReceived>(&*event)) handle(std::move(*reply));
  }
  note_messages();
  remember_version();  // before the client can come again
  record_counters(stats_, connection_->counters());
  delivery_ends_ = Clock::now() + options_.delivery_timeout;
  timer_.set(delivery_ends_, [weak = weak_from_this()] {
    if (auto self = weak.lock()) self->deliver_rest();
  });
  deliver_rest();
}

void TcpSession::deliver_rest() {
  if (life_ != Life::kRest) return;
  tcp_->start_turn(turns_->octets());
  (void)forward_to_tcp();
  tcp_->flush();
  std::optional<rpcrdma::Buffer> record;
  for (unsigned taken = 0; taken < kRecordBudget && (record = tcp_->read()); ++taken) {
    // The client sends it again on its next connection.
    const auto direction = rpcrdma::rpc_direction(record->bytes());
    const auto kind = direction == rpcrdma::RpcDirection::kReply ? MessageKind::kBackwardReply : MessageKind::kCall;
    stats_.received(kind);
    stats_.dropped(kind, DropReason::kConnectionClosed);
  }
  const bool sent = to_tcp_.empty() && tcp_->all_sent();
  if (tcp_->broken() || (sent && (tcp_->all_taken() || tcp_->ended())) || Clock::now() >= *delivery_ends_) return end();
  if (sent) tcp_->end_sending();
  const bool more_to_queue = !to_tcp_.empty() && tcp_->can_send();
  if (record || more_to_queue || tcp_->turn_is_over()) wait_for_turn();  // perhaps there are more
}

void TcpSession::end() {
  for (const Outgoing& o : to_tcp_) stats_.dropped(o.kind, DropReason::kConnectionClosed);
  release();  // the client reconnects and sends its Calls again
  stats_.connection_closed();
  ended_(*this);
}

void TcpSession::release() {
  step(life_, LifeInput::kReleased);
  meter_.end();
  channel_.queues().close();  // what is still on its way up, too
  tcp_->close(false);
  to_tcp_.clear();
  held_record_.reset();
}

void TcpSession::drain() {
  shutting_down_ = true;
  step(life_, LifeInput::kNoMoreCalls);
  finish_if_drained();
}

void TcpSession::finish_if_drained() {
  if (life_ != Life::kDraining || !requester_->idle() || !to_tcp_.empty() || !tcp_->all_sent()) return;
  close_rdma();
}

void TcpSession::add_live_counters(Stats::Snapshot& to) const {
  if (life_ == Life::kOver) return;
  to.registered_bytes += channel_.registered_bytes();
  if (!connection_ || !requester_ || life_ >= Life::kRest) return;
  add_counters(to, connection_->counters());
  to.credits_granted += requester_->credits().granted();
  to.credits_used += requester_->credits().in_flight();
}

void TcpSession::stop() {
  if (life_ == Life::kRest) return end();
  if (life_ == Life::kOver) return;
  step(life_, LifeInput::kClose);
  if (connection_) return connection_->abort();
  release();
  stats_.connection_refused(RefuseReason::kLimit);
  ended_(*this);
}

void TcpSession::orphan() {
  ended_ = {};
  release();
  if (connection_) connection_->abort();
}

}  // namespace iwarp::gateway
