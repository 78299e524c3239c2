#include "iwarp/gateway/rdma_session.h"

#include <spdlog/spdlog.h>

#include "iwarp/gateway/auth_tls.h"
#include "iwarp/rpcrdma/rpc_message.h"

namespace iwarp::gateway {
namespace {

using Clock = std::chrono::steady_clock;

// Rounds of work before other connections get their turn; see also RecordStream::start_turn().
constexpr unsigned kWorkBudget = 4;
constexpr unsigned kRecordBudget = 64;  // records taken in each of these rounds
constexpr std::size_t kMaxFailedBackward = 1024;

rpcrdma::ResponderOptions responder_options(const Options& o) {
  rpcrdma::ResponderOptions r;
  r.credits = o.credits;
  r.inline_bytes = o.inline_bytes;
  r.highest_version = o.rpcrdma_version;
  r.draft_2005 = o.draft_of_connection();
  r.max_call_bytes = o.max_record_bytes;
  r.backward_timeout = o.backward_timeout;
  r.enforce_binding = false;  // other programs than NFS pass through; so does what Linux servers take
  return r;
}

RecordOptions record_options(const Options& o) {
  RecordOptions r;
  r.max_record_bytes = o.max_record_bytes;
  return r;
}

rpcrdma::BufferPool::Options pool_options(const Options& o, std::shared_ptr<rpcrdma::MemoryBudget> memory) {
  auto p = rpcrdma::pool_options(responder_options(o));
  p.call_bytes = p.reply_bytes = o.memory_bytes;
  p.budget = std::move(memory);
  return p;
}

}  // namespace

RdmaSession::RdmaSession(const Shared& shared, const RdmaRequest& request, std::unique_ptr<RdmaQueues> queues,
                         boost::asio::ip::tcp::socket backend, Ended ended)
    : kept_options_(shared.options),
      options_(*kept_options_),
      ledger_(shared.ledger),
      stats_(ledger_->stats),
      log_(ledger_->log),
      turns_(shared.turns),
      crc_trap_(shared.crc_trap),
      meter_(stats_.rpc()),
      ended_(std::move(ended)),
      channel_(std::move(queues), pool_options(options_, shared.memory), options_.keep_idle_memory),
      responder_options_(responder_options(options_)),
      responder_(channel_.endpoint(), channel_.pool(),
                 // req: RFC8797-4-2 RFC8797-4-3
                 rpcrdma::negotiate(rpcrdma::PrivateData::parse(request.private_data()),
                                    rpcrdma::private_data(responder_options_)),
                 responder_options_),
      tcp_(std::make_shared<RecordStream>(std::move(backend), record_options(options_), channel_.pool(),
                                          RecordStream::Purpose::kReply, stats_)),
      timer_(shared.engine.io()),
      record_(options_.record_deadline),
      reads_(options_.read_deadline),
      replies_(options_.reply_deadline),
      backend_port_(tcp_->local().port()) {}

void RdmaSession::accept(RdmaRequest& request) {
  if (auto ok = responder_.start(); !ok) {
    request.reject();
    return on_refused(fmt::format("refused peer={} reason={}: {}", cm::to_string(request.remote()),
                                  name(ok.error().code), ok.error().why));
  }
  const auto pd = rpcrdma::private_data(responder_options_).encode();  // req: RFC8797-4-1
  request.accept(
      channel_.queues(), options_, {pd.begin(), pd.end()},
      [self = shared_from_this()](const Error& error, const std::shared_ptr<RdmaLink>& link,
                                  const std::string& failure) { self->on_established(error, link, failure); });
}

void RdmaSession::on_established(const Error& error, const std::shared_ptr<RdmaLink>& connection,
                                 const std::string& failure) {
  if (life_ == Life::kOver) {  // stopped meanwhile
    if (connection) connection->abort();
    return;
  }
  if (error.code != Errc::kOk)
    return on_refused("handshake failed " +
                      (failure.empty() ? fmt::format("reason={}: {}", name(error.code), error.why) : failure));
  connection_ = connection;
  step(life_, LifeInput::kEstablished);
  if (shutting_down_) step(life_, LifeInput::kNoMoreCalls);
  stats_.connection_opened();
  log_.info(LogKind::kEstablished,
            fmt::format("established {} tcp_local={} tcp_peer={}", connection_->to_string(),
                        cm::to_string(tcp_->local()), cm::to_string(tcp_->remote())),
            Clock::now());
  connection_->wait_disconnected(
      [self = shared_from_this()](const stream::Disconnected& how) { self->on_disconnected(how); });
  tcp_->start([weak = weak_from_this()] {
    if (auto self = weak.lock()) self->wake();
  });
  pump();
}

void RdmaSession::on_refused(const std::string& line) {
  log_.refused(RefuseReason::kHandshakeFailed, line, Clock::now());
  release();
  // The port may have come from an earlier connection whose Calls are still to be replayed: the client will try again.
  ended_(*this, backend_port_, true);
}

void RdmaSession::pump() {
  if (pumping_ || life_ == Life::kOver || connection_ == nullptr) return;
  pumping_ = true;
  bool progress = true;
  channel_.disarm();
  tcp_->start_turn(turns_->octets());
  for (unsigned round = 0; round < kWorkBudget && progress && !tcp_->turn_is_over(); ++round) {
    round_.reset();
    progress = channel_.poll([&](const rpcrdma::Completion& c) { responder_.on_completion(c); });
    while (auto event = responder_.poll_event()) {
      std::visit([&](auto& e) { handle(std::move(e)); }, *event);
      progress = true;
    }
    if (const auto releases = channel_.pool().releases(); releases != releases_seen_) {
      releases_seen_ = releases;
      responder_.progress();
    }
    note_messages();
    note_refusals();
    progress = take_records() || progress;
    answer_failed_backward();
    progress = forward_to_tcp() || progress;
    if (auto ok = channel_.flush(); !ok) handle(rpcrdma::Responder::MustClose{ok.error()});
    if (!progress || tcp_->worth_a_flush()) tcp_->flush();
    progress = progress || channel_.pool().releases() != releases_seen_;
  }
  tcp_->flush();  // what is left, after rounds without end
  finish_if_drained();
  finish_if_delivered();
  const TimePoint now = Clock::now();
  watch_for_stalls(now);
  pumping_ = false;
  if (life_ == Life::kOver) return;
  channel_.after_turn(now, log_);
  const auto ends = life_ >= Life::kClosing
                        ? std::nullopt
                        : earliest({delivery_ends_, record_.deadline(), reads_.deadline(), replies_.deadline()});
  timer_.set(earliest({responder_.deadline(), ends, channel_.deadline()}), [weak = weak_from_this()] {
    if (auto self = weak.lock()) self->on_deadline();
  });
  if (progress || tcp_->turn_is_over()) return wait_for_turn();
  channel_.arm([weak = weak_from_this()] {
    if (auto self = weak.lock()) self->wake();
  });
  if (channel_.poll([&](const rpcrdma::Completion& c) { responder_.on_completion(c); })) return wait_for_turn();
  if (channel_.take_rest()) {
    responder_.rest();
    tcp_->rest();
  }
}

TimePoint RdmaSession::round_time() {
  if (!round_) round_ = Clock::now();
  return *round_;
}

// Who has just moved bulk data comes behind those who have not.
void RdmaSession::wake() {
  tcp_->moved_much() ? wait_for_turn() : pump();
}

void RdmaSession::on_deadline() {
  if (life_ == Life::kOver) return;
  responder_.on_deadline(Clock::now());
  channel_.on_deadline(Clock::now());
  pump();
}

void RdmaSession::handle(rpcrdma::Responder::CallReceived call) {
  stats_.received(MessageKind::kCall);
  if (!version_noted_) note_version();
  // Or outstanding RPCs would never end; the client sends it again on its next connection.
  if (life_ != Life::kServing) {
    stats_.dropped(MessageKind::kCall, DropReason::kConnectionClosed);
    return responder_.abandon(call.token);
  }
  if (deny_tls(call.message)) {
    stats_.tls_denied();
    if (responder_.reply(call.token, std::move(call.message), round_time()))
      return stats_.forwarded(MessageKind::kReply);
    return stats_.dropped(MessageKind::kReply, DropReason::kConnectionClosed);
  }
  // The Responder drops an xid that it has outstanding; this one may still be at the server from before its Reply was
  // abandoned.
  const RpcProgram program = rpc_program(call.message.bytes());
  if (!outstanding_.emplace(call.xid, AtServer{call.token, round_time(), program, call.read_chunk_bytes}).second) {
    stats_.dropped(MessageKind::kCall, DropReason::kDuplicateXid);
    responder_.abandon(call.token);
    return;
  }
  meter_.called(program, call.message.size());
  layouts_.on_call(call.message.bytes());
  to_tcp_.push_back({std::move(call.message), MessageKind::kCall});
}

void RdmaSession::handle(const rpcrdma::Responder::CallRepeated& repeated) {
  const auto call = outstanding_.find(repeated.xid);
  if (call == outstanding_.end() || Clock::now() < add_saturating(call->second.since, options_.lost_call_limit)) return;
  give_up(EndReason::kLostCall, make_error(Errc::kTimeout, "the client repeats a Call whose Reply is overdue"));
}

void RdmaSession::handle(rpcrdma::Responder::BackwardReply reply) {
  stats_.received(MessageKind::kBackwardReply);
  if (const auto call = backward_.extract(reply.xid))
    meter_.replied(RpcProgram::kCallback, reply.message.size(), Clock::now() - call.mapped());
  to_tcp_.push_back({std::move(reply.message), MessageKind::kBackwardReply});
}

void RdmaSession::handle(const rpcrdma::Responder::BackwardFailed& failed) {
  stats_.incident(failed.timed_out ? Incident::kBackwardTimeout : Incident::kBackwardRefused);
  if (backward_.erase(failed.xid) > 0) meter_.failed(RpcProgram::kCallback);
  if (failed.timed_out) {
    log_.warn(LogKind::kBackward,
              fmt::format("backward call unanswered peer={} xid={:#x} after={}ms", cm::to_string(connection_->remote()),
                          failed.xid, options_.backward_timeout.count()),
              Clock::now());
  }
  owe_error(failed.xid);
}

void RdmaSession::handle(const rpcrdma::Responder::MustClose& must_close) {
  if (!step(life_, LifeInput::kClose)) return;
  // Flushed work only says that the connection is over, which is about to be told with its true reason.
  if (must_close.error.code == Errc::kFlushed) return;
  log_.warn(LogKind::kClosing,
            fmt::format("closing peer={} why=\"{}\"", cm::to_string(connection_->remote()), must_close.error.why),
            Clock::now());
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
  for (unsigned taken = 0; life_ < Life::kClosing; ++taken) {
    if (taken == kRecordBudget) return true;  // others have their turn
    auto record = tcp_->read();
    if (!record) break;
    give_to_rdma(std::move(*record));
    progress = true;
  }
  if (tcp_->ended() && step(life_, LifeInput::kServerLeft)) {
    log_.info(LogKind::kPeerClosed,
              fmt::format("server closed peer={} tcp_peer={} reason={}", cm::to_string(connection_->remote()),
                          cm::to_string(tcp_->remote()), name(tcp_->ended()->code)),
              Clock::now());
    delivery_ends_ = Clock::now() + options_.delivery_timeout;
  }
  return progress;
}

// Always takes it: Replies and backward Calls must not wait for each other. The pool bounds what collects.
void RdmaSession::give_to_rdma(rpcrdma::Buffer record) {
  const auto xid = rpcrdma::rpc_xid(record.bytes());
  const auto direction = rpcrdma::rpc_direction(record.bytes());
  if (!xid || !direction) {
    stats_.received(MessageKind::kReply);
    stats_.dropped(MessageKind::kReply, DropReason::kMalformed);
    return give_up(EndReason::kMalformedReply,
                   make_error(Errc::kMalformedRpc, "the server sent a record that is no RPC message"));
  }
  if (*direction == rpcrdma::RpcDirection::kCall) return give_backward_call(std::move(record));
  const auto call = outstanding_.find(*xid);
  if (call == outstanding_.end()) {
    stats_.received(MessageKind::kReply);
    stats_.dropped(MessageKind::kReply, DropReason::kUnknownXid);
    return;
  }
  if (layouts_.on_reply(record.bytes())) stats_.incident(Incident::kLayoutsHidden);
  const std::size_t bytes = record.size();
  const std::uint64_t written = responder_.stats().rdma_write_bytes;
  const auto answered = responder_.reply(call->second.token, std::move(record), round_time());
  stats_.received(MessageKind::kReply);
  if (answered) {
    stats_.forwarded(MessageKind::kReply);
    meter_.replied(call->second.program, bytes, round_time() - call->second.since,
                   {.read = call->second.read_bytes, .write = responder_.stats().rdma_write_bytes - written});
  } else {
    if (answered.error().code != Errc::kNotConnected) meter_.failed(call->second.program);
    stats_.dropped(MessageKind::kReply, answered.error().code == Errc::kNotConnected ? DropReason::kConnectionClosed
                                                                                     : DropReason::kMalformed);
  }
  outstanding_.erase(call);
}

void RdmaSession::give_backward_call(rpcrdma::Buffer record) {
  const std::uint32_t xid = *rpcrdma::rpc_xid(record.bytes());
  const TimePoint now = Clock::now();
  const std::size_t bytes = record.size();
  const auto sent = responder_.send_backward_call(std::move(record), now);
  stats_.received(MessageKind::kBackwardCall);
  if (sent) {
    backward_.insert_or_assign(xid, now);
    meter_.called(RpcProgram::kCallback, bytes);
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
  stats_.incident(Incident::kBackwardRefused);
  log_.warn(LogKind::kBackward,
            fmt::format("backward call refused tcp_peer={} xid={:#x} bytes={}: {}", cm::to_string(tcp_->remote()), xid,
                        record.size(), sent.error().why),
            Clock::now());
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

}  // namespace iwarp::gateway
