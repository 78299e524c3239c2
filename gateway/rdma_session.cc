#include "iwarp/gateway/rdma_session.h"

#include <spdlog/spdlog.h>

#include "iwarp/gateway/rdma_counters.h"
#include "iwarp/rpcrdma/rpc_message.h"

namespace iwarp::gateway {
namespace {

using Clock = std::chrono::steady_clock;

// Rounds of work before other connections get their turn.
constexpr unsigned kWorkBudget = 16;
constexpr unsigned kRecordBudget = 64;  // records taken in each of these rounds
constexpr std::size_t kMaxFailedBackward = 1024;

rpcrdma::ResponderOptions responder_options(const Options& o) {
  rpcrdma::ResponderOptions r;
  r.credits = o.credits;
  r.inline_bytes = o.inline_bytes;
  r.backward_timeout = o.backward_timeout;
  r.enforce_binding = false;  // other programs than NFS pass through; so does what Linux servers take
  return r;
}

rpcrdma::BufferPool::Options pool_options(const Options& o) {
  auto p = rpcrdma::pool_options(responder_options(o));
  p.call_bytes = p.reply_bytes = o.memory_bytes;
  return p;
}

// As many Reads as the client admits, bounded by policy; policy alone where nothing is negotiated (MPA revision 1, or
// 0x3FFF).
std::size_t ord_for(const Options& o, const cm::ConnectRequest& request) {
  const bool negotiated = request.enhanced() && request.peer_ird() != mpa::kNoIrdOrdNegotiation;
  return negotiated ? std::min(o.policy.ord, request.peer_ird()) : o.policy.ord;
}

}  // namespace

RdmaSession::RdmaSession(cm::Engine& engine, const Options& options, Stats& stats, Refusals& refusals,
                         const cm::ConnectRequest& request, boost::asio::ip::tcp::socket backend, Ended ended)
    : engine_(engine),
      options_(options),
      stats_(stats),
      refusals_(refusals),
      ended_(std::move(ended)),
      channel_(engine, options.stream, pool_options(options), ord_for(options, request), options.keep_idle_memory),
      responder_options_(responder_options(options)),
      responder_(channel_.endpoint(), channel_.pool(),
                 // req: RFC8797-4-2 RFC8797-4-3
                 rpcrdma::negotiate(rpcrdma::PrivateData::parse(request.private_data()),
                                    rpcrdma::private_data(responder_options_)),
                 responder_options_),
      tcp_(std::make_shared<RecordStream>(std::move(backend), RecordOptions{}, channel_.pool(),
                                          RecordStream::Purpose::kReply, stats)),
      timer_(engine.io()),
      backend_port_(tcp_->local().port()) {}

void RdmaSession::accept(cm::ConnectRequest& request) {
  if (auto ok = responder_.start(); !ok) {
    request.reject();
    return on_refused(fmt::format("refused peer={} reason={}: {}", cm::to_string(request.remote()),
                                  name(ok.error().code), ok.error().why));
  }
  const auto pd = rpcrdma::private_data(responder_options_).encode();  // req: RFC8797-4-1
  request.accept(channel_.qp(), {options_.policy.ird, options_.policy.ord, {pd.begin(), pd.end()}},
                 [self = shared_from_this()](const Error& error, const std::shared_ptr<cm::Connection>& c) {
                   self->on_established(error, c);
                 });
}

void RdmaSession::on_established(const Error& error, const std::shared_ptr<cm::Connection>& connection) {
  if (over_) {  // stopped meanwhile
    if (connection) connection->abort();
    return;
  }
  if (error.code != Errc::kOk)
    return on_refused("handshake failed " + (connection ? cm::describe_end(*connection, *connection->disconnected())
                                                        : fmt::format("reason={}: {}", name(error.code), error.why)));
  connection_ = connection;
  stats_.connection_opened();
  spdlog::info("established {} tcp_local={} tcp_peer={}", connection_->to_string(), cm::to_string(tcp_->local()),
               cm::to_string(tcp_->remote()));
  connection_->async_wait_disconnected(
      [self = shared_from_this()](const stream::Disconnected& how) { self->on_disconnected(how); });
  tcp_->start([weak = weak_from_this()] {
    if (auto self = weak.lock()) self->pump();
  });
  pump();
}

void RdmaSession::on_refused(const std::string& line) {
  refusals_.add(RefuseReason::kHandshakeFailed, line, Clock::now());
  release();
  // The port may have come from an earlier connection whose Calls are still to be replayed: the client will try again.
  ended_(*this, backend_port_, true);
}

void RdmaSession::pump() {
  if (pumping_ || over_ || connection_ == nullptr) return;
  pumping_ = true;
  bool progress = true;
  for (unsigned round = 0; round < kWorkBudget && progress; ++round) {
    progress = channel_.poll([&](const rpcrdma::Completion& c) { responder_.on_completion(c); });
    while (auto event = responder_.poll_event()) {
      std::visit([&](auto& e) { handle(std::move(e)); }, *event);
      progress = true;
    }
    if (const auto releases = channel_.pool().releases(); releases != releases_seen_) {
      releases_seen_ = releases;
      responder_.progress();
    }
    note_refusals();
    progress = take_records() || progress;
    answer_failed_backward();
    progress = forward_to_tcp() || progress;
    if (auto ok = channel_.endpoint().flush(); !ok) handle(rpcrdma::Responder::MustClose{ok.error()});
    progress = progress || channel_.pool().releases() != releases_seen_;
  }
  finish_if_drained();
  finish_if_delivered();
  pumping_ = false;
  if (over_) return;
  channel_.after_turn(Clock::now());
  const auto delivery_ends = closing_ ? std::nullopt : delivery_ends_;
  timer_.set(earliest({responder_.deadline(), delivery_ends, channel_.deadline()}), [weak = weak_from_this()] {
    if (auto self = weak.lock()) self->on_deadline();
  });
  if (progress) return post_pump();
  channel_.arm([weak = weak_from_this()] {
    if (auto self = weak.lock()) self->pump();
  });
  if (channel_.poll([&](const rpcrdma::Completion& c) { responder_.on_completion(c); })) post_pump();
}

void RdmaSession::post_pump() {
  turn_.post(engine_.io(), weak_from_this(), &RdmaSession::pump);
}

void RdmaSession::on_deadline() {
  if (over_) return;
  responder_.on_deadline(Clock::now());
  channel_.on_deadline(Clock::now());
  pump();
}

// What the Responder answered or dropped by itself: counted, and told in one line however many there were.
void RdmaSession::note_refusals() {
  const rpcrdma::Responder::Stats& now = responder_.stats();
  const auto count = [&](std::uint64_t rpcrdma::Responder::Stats::*what, std::optional<DropReason> why,
                         MessageKind kind = MessageKind::kCall) {
    const std::uint64_t n = now.*what - refusals_seen_.*what;
    for (std::uint64_t i = 0; i < n && why; ++i) {
      stats_.received(kind);
      stats_.dropped(kind, *why);
    }
    return n;
  };
  using S = rpcrdma::Responder::Stats;
  const auto duplicates = count(&S::duplicate_xids, DropReason::kDuplicateXid);
  const auto dropped = count(&S::dropped_messages, DropReason::kMalformed);
  const auto late = count(&S::late_backward_replies, DropReason::kUnknownXid, MessageKind::kBackwardReply);
  const auto versions = count(&S::err_vers_sent, DropReason::kMalformed);
  const auto chunks = count(&S::err_chunk_sent, std::nullopt);  // to a Call, or to one whose Reply has no room
  const auto garbage = count(&S::garbage_args_sent, std::nullopt);
  refusals_seen_ = now;
  if (duplicates > 0)
    spdlog::info("dropped peer={} duplicate_xids={}", cm::to_string(connection_->remote()), duplicates);
  if (late > 0) spdlog::info("dropped peer={} late_backward_replies={}", cm::to_string(connection_->remote()), late);
  if (dropped + versions + chunks + garbage == 0) return;
  spdlog::warn("unusable messages peer={} err_vers={} err_chunk={} garbage_args={} dropped={}",
               cm::to_string(connection_->remote()), versions, chunks, garbage, dropped);
}

void RdmaSession::handle(rpcrdma::Responder::CallReceived call) {
  stats_.received(MessageKind::kCall);
  // Or outstanding RPCs would never end; the client sends it again on its next connection.
  if (draining_ || delivery_ends_) {
    stats_.dropped(MessageKind::kCall, DropReason::kConnectionClosed);
    return responder_.abandon(call.token);
  }
  // The Responder drops an xid that it has outstanding; this one may still be at the server from before its Reply was
  // abandoned.
  if (!outstanding_.emplace(call.xid, call.token).second) {
    stats_.dropped(MessageKind::kCall, DropReason::kDuplicateXid);
    responder_.abandon(call.token);
    return;
  }
  to_tcp_.push_back({std::move(call.message), MessageKind::kCall});
}

void RdmaSession::handle(rpcrdma::Responder::BackwardReply reply) {
  stats_.received(MessageKind::kBackwardReply);
  to_tcp_.push_back({std::move(reply.message), MessageKind::kBackwardReply});
}

void RdmaSession::handle(const rpcrdma::Responder::BackwardFailed& failed) {
  if (failed.timed_out) {
    spdlog::warn("backward call unanswered peer={} xid={:#x} after={}ms", cm::to_string(connection_->remote()),
                 failed.xid, options_.backward_timeout.count());
  }
  owe_error(failed.xid);
}

void RdmaSession::handle(const rpcrdma::Responder::MustClose& must_close) {
  if (std::exchange(closing_, true)) return;
  // Flushed work only says that the connection is over, which is about to be told with its true reason.
  if (must_close.error.code == Errc::kFlushed) return;
  spdlog::warn("closing peer={} why=\"{}\"", cm::to_string(connection_->remote()), must_close.error.why);
  connection_->abort(must_close.error);
}

bool RdmaSession::forward_to_tcp() {
  bool progress = false;
  while (!delivery_ends_ && !to_tcp_.empty() && tcp_->send(to_tcp_.front().message)) {
    stats_.forwarded(to_tcp_.front().kind);
    to_tcp_.pop_front();
    progress = true;
  }
  return progress;
}

bool RdmaSession::take_records() {
  bool progress = false;
  for (unsigned taken = 0; !closing_; ++taken) {
    if (taken == kRecordBudget) return true;  // others have their turn
    auto record = tcp_->read();
    if (!record) break;
    give_to_rdma(std::move(*record));
    progress = true;
  }
  if (!closing_ && !delivery_ends_ && tcp_->ended()) {
    spdlog::info("server closed tcp_peer={} reason={}", cm::to_string(tcp_->remote()), name(tcp_->ended()->code));
    delivery_ends_ = Clock::now() + options_.delivery_timeout;
  }
  return progress;
}

// The server has closed: once the client has what is complete, it may reconnect and send its other Calls again. One
// that does not take it is given up at once: an orderly end would wait for it a second time.
void RdmaSession::finish_if_delivered() {
  if (closing_ || !delivery_ends_) return;
  const bool delivered = responder_.all_sent();
  if (!delivered && Clock::now() < *delivery_ends_) return;
  closing_ = true;
  if (delivered) return connection_->disconnect();
  connection_->abort(make_error(Errc::kTimeout, "the server closed, and the client did not take what was left"));
}

// Always takes it: Replies and backward Calls must not wait for each other. The pool bounds what collects.
void RdmaSession::give_to_rdma(rpcrdma::Buffer record) {
  const auto xid = rpcrdma::rpc_xid(record.bytes());
  const auto direction = rpcrdma::rpc_direction(record.bytes());
  if (!xid || !direction) {
    stats_.received(MessageKind::kReply);
    stats_.dropped(MessageKind::kReply, DropReason::kMalformed);
    return handle(rpcrdma::Responder::MustClose{
        make_error(Errc::kMalformedRpc, "the server sent a record that is no RPC message")});
  }
  if (*direction == rpcrdma::RpcDirection::kCall) return give_backward_call(std::move(record));
  const auto call = outstanding_.find(*xid);
  if (call == outstanding_.end()) {
    stats_.received(MessageKind::kReply);
    stats_.dropped(MessageKind::kReply, DropReason::kUnknownXid);
    return;
  }
  const auto answered = responder_.reply(call->second, std::move(record));
  stats_.received(MessageKind::kReply);
  if (answered) {
    stats_.forwarded(MessageKind::kReply);
  } else {
    stats_.dropped(MessageKind::kReply, answered.error().code == Errc::kNotConnected ? DropReason::kConnectionClosed
                                                                                     : DropReason::kMalformed);
  }
  outstanding_.erase(call);
}

void RdmaSession::give_backward_call(rpcrdma::Buffer record) {
  const std::uint32_t xid = *rpcrdma::rpc_xid(record.bytes());
  const auto sent = responder_.send_backward_call(std::move(record), Clock::now());
  stats_.received(MessageKind::kBackwardCall);
  if (sent) {
    return stats_.forwarded(MessageKind::kBackwardCall);
  }
  switch (sent.error().code) {
    case Errc::kNotConnected:
      return stats_.dropped(MessageKind::kBackwardCall, DropReason::kConnectionClosed);
    case Errc::kQueueFull:
      stats_.dropped(MessageKind::kBackwardCall, DropReason::kLimit);
      break;
    default:
      stats_.dropped(MessageKind::kBackwardCall, record.size() > responder_.max_backward_bytes()
                                                     ? DropReason::kTooLong
                                                     : DropReason::kDuplicateXid);
  }
  spdlog::warn("backward call refused tcp_peer={} xid={:#x} bytes={}: {}", cm::to_string(tcp_->remote()), xid,
               record.size(), sent.error().why);
  owe_error(xid);
}

// The server's backward Call cannot reach the client: an RPC error lets the server go on. A server that leaves so many
// of them unread gets no more.
void RdmaSession::owe_error(std::uint32_t xid) {
  if (failed_backward_.size() < kMaxFailedBackward) failed_backward_.push_back(xid);
}

void RdmaSession::answer_failed_backward() {
  while (!failed_backward_.empty()) {
    auto buffer = channel_.pool().acquire(rpcrdma::kErrorReplyBytes, rpcrdma::BufferPool::Purpose::kBackward,
                                          rpcrdma::kHeadroomBytes);
    if (!buffer) return;  // when one comes back
    const auto error = rpcrdma::make_error_reply(failed_backward_.front(), rpcrdma::AcceptStat::kSystemErr);
    std::copy(error.begin(), error.end(), buffer->bytes().begin());
    stats_.received(MessageKind::kBackwardReply);
    to_tcp_.push_back({std::move(*buffer), MessageKind::kBackwardReply});
    failed_backward_.pop_front();
  }
}

void RdmaSession::on_disconnected(const stream::Disconnected& how) {
  if (std::exchange(over_, true)) return;
  spdlog::log(cm::ordinary_end(how) ? spdlog::level::info : spdlog::level::warn, "closed {}",
              cm::describe_end(*connection_, how));
  while (channel_.poll([&](const rpcrdma::Completion& c) { responder_.on_completion(c); })) {
  }
  responder_.on_disconnect();
  while (responder_.poll_event()) {
  }
  for (const Outgoing& o : to_tcp_) stats_.dropped(o.kind, DropReason::kConnectionClosed);
  record_counters(stats_, connection_->counters());
  // A Reply that we sent need not have arrived: only an orderly end with nothing outstanding rules replays out.
  const bool replays = !outstanding_.empty() || !cm::ordinary_end(how);
  release();
  stats_.connection_closed();
  ended_(*this, backend_port_, replays);
}

void RdmaSession::release() {
  over_ = true;
  // With RST: the port must be free at once for the client's next connection, where the server has to recognise
  // replays. There is none after draining, and what the server still has to receive must not be lost.
  tcp_->close(!draining_);
  to_tcp_.clear();
}

void RdmaSession::drain() {
  draining_ = true;
  finish_if_drained();
}

void RdmaSession::finish_if_drained() {
  if (!draining_ || closing_ || connection_ == nullptr || !responder_.idle() || !outstanding_.empty() ||
      !failed_backward_.empty() || !to_tcp_.empty() || !tcp_->all_sent())
    return;
  closing_ = true;
  connection_->disconnect();
}

void RdmaSession::add_live_counters(Stats::Snapshot& to) const {
  if (connection_ && !over_) add_counters(to, connection_->counters());
}

void RdmaSession::stop() {
  if (over_) return;
  closing_ = true;
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
