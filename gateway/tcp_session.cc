#include "iwarp/gateway/tcp_session.h"

#include <spdlog/spdlog.h>

#include "iwarp/gateway/auth_tls.h"
#include "iwarp/rpcrdma/nfs_binding.h"
#include "iwarp/rpcrdma/rpc_message.h"

namespace iwarp::gateway {
namespace {

using Clock = std::chrono::steady_clock;

// Rounds of work before other connections get their turn; see also RecordStream::start_turn().
constexpr unsigned kWorkBudget = 4;
// Records taken in each of these rounds.
constexpr unsigned kRecordBudget = 64;
// More than any client's slot table.
constexpr std::size_t kMaxQueuedCalls = 1024;
// Of Options::lost_call_limit: without any Reply, and Calls waiting for credits. Clients of NFSv4 repeat nothing, and
// all of the Calls may be slow ones: time enough for them.
constexpr int kNoCreditFactor = 4;

rpcrdma::RequesterOptions requester_options(const Options& o) {
  rpcrdma::RequesterOptions r;
  r.credits = o.credits;
  r.inline_bytes = o.inline_bytes;
  r.highest_version = o.rpcrdma_version;
  r.draft_2005 = o.draft_of_connection();
  r.max_reply_bytes = o.max_record_bytes;
  // What waits is bounded by the memory for Calls. A low limit would hold up the backward Replies behind it in the TCP
  // stream.
  r.max_queued_calls = kMaxQueuedCalls;
  return r;
}

RecordOptions record_options(const Options& o) {
  RecordOptions r;
  r.max_record_bytes = o.max_record_bytes;
  return r;
}

rpcrdma::BufferPool::Options pool_options(const Options& o, std::shared_ptr<rpcrdma::MemoryBudget> memory) {
  auto p = rpcrdma::pool_options(requester_options(o));
  p.call_bytes = p.reply_bytes = o.memory_bytes;
  p.budget = std::move(memory);
  return p;
}

const char* text(rpcrdma::Requester::Failure why) {
  using F = rpcrdma::Requester::Failure;
  switch (why) {
    case F::kErrChunk:
      return "server answered ERR_CHUNK";
    case F::kErrVers:
      return "server does not speak this version of RPC-over-RDMA";
    case F::kBadReply:
      return "server's reply does not match its chunk";
    case F::kLocal:
      return "cannot expose memory";
  }
  return "unknown";
}

Incident incident(rpcrdma::Requester::Failure why) {
  using F = rpcrdma::Requester::Failure;
  switch (why) {
    case F::kErrChunk:
      return Incident::kErrChunkReceived;
    case F::kErrVers:
      return Incident::kErrVersReceived;
    case F::kBadReply:
      return Incident::kBadReply;
    case F::kLocal:
      return Incident::kCannotExpose;
  }
  return Incident::kCannotExpose;
}

}  // namespace

TcpSession::TcpSession(const Shared& shared, std::unique_ptr<RdmaQueues> queues, boost::asio::ip::tcp::socket client,
                       Ended ended)
    : engine_(shared.engine),
      kept_options_(shared.options),
      options_(*kept_options_),
      ledger_(shared.ledger),
      stats_(ledger_->stats),
      log_(ledger_->log),
      turns_(shared.turns),
      crc_trap_(shared.crc_trap),
      versions_(shared.versions),
      meter_(stats_.rpc()),
      memory_(shared.memory),
      ended_(std::move(ended)),
      channel_(std::move(queues), pool_options(options_, memory_), options_.keep_idle_memory),
      requester_options_(requester_options(options_)),
      tcp_(std::make_shared<RecordStream>(std::move(client), record_options(options_), channel_.pool(),
                                          RecordStream::Purpose::kCall, stats_)),
      timer_(engine_.io()),
      record_(options_.record_deadline),
      replies_(options_.reply_deadline),
      credits_(options_.lost_call_limit * kNoCreditFactor),
      leaving_(options_.delivery_timeout),
      question_(options_.version_timeout) {}

void TcpSession::connect(const HostPort& server, std::optional<boost::asio::ip::address> source) {
  server_ = server.to_string();
  requester_options_.highest_version = versions_->highest(server_, options_.rpcrdma_version, Clock::now());
  requester_options_.remote_invalidation = channel_.queues().remote_invalidation();
  const auto pd = rpcrdma::private_data(requester_options_).encode();  // req: RFC8797-4-1
  channel_.queues().connect({server, source, {pd.begin(), pd.end()}}, options_,
                            [self = shared_from_this()](const Error& error, const std::shared_ptr<RdmaLink>& link,
                                                        const std::string&) { self->on_established(error, link); });
}

void TcpSession::refuse(RefuseReason why, const std::string& text) {
  log_.refused(why, fmt::format("refused tcp_peer={} reason={}", cm::to_string(tcp_->remote()), text), Clock::now());
  release();
  ended_(*this);
}

void TcpSession::on_established(const Error& error, const std::shared_ptr<RdmaLink>& connection) {
  if (life_ == Life::kOver) {  // stopped meanwhile
    if (connection) connection->abort();
    return;
  }
  if (error.code != Errc::kOk)
    return refuse(RefuseReason::kBackendUnreachable, fmt::format("{}: {}", name(error.code), error.why));
  if (!memory_->admits_connection()) {  // others have come meanwhile
    connection->abort();
    return refuse(RefuseReason::kLimit, fmt::format("{}: {}", name(RefuseReason::kLimit), kNoMemory));
  }
  connection_ = connection;
  begun_ = Clock::now();
  requester_.emplace(channel_.endpoint(), channel_.pool(),
                     rpcrdma::negotiate(rpcrdma::private_data(requester_options_),  // req: RFC8797-4-2 RFC8797-4-3
                                        rpcrdma::PrivateData::parse(connection_->private_data())),
                     requester_options_);
  step(life_, LifeInput::kEstablished);
  if (shutting_down_) step(life_, LifeInput::kNoMoreCalls);
  stats_.connection_opened();
  log_.info(LogKind::kEstablished,
            fmt::format("established {} tcp_local={} tcp_peer={}", connection_->to_string(),
                        cm::to_string(tcp_->local()), cm::to_string(tcp_->remote())),
            Clock::now());
  connection_->wait_disconnected(
      [self = shared_from_this()](const stream::Disconnected& how) { self->on_disconnected(how); });
  if (auto ok = requester_->start(); !ok) return handle(rpcrdma::Requester::MustClose{ok.error()});
  tcp_->start([weak = weak_from_this()] {
    if (auto self = weak.lock()) self->wake();
  });
  tcp_->watch_for_reset();
  pump();
}

void TcpSession::pump() {
  if (pumping_ || life_ >= Life::kRest || !requester_) return;
  pumping_ = true;
  bool progress = true;
  channel_.disarm();
  tcp_->start_turn(turns_->octets());
  for (unsigned round = 0; round < kWorkBudget && progress && !tcp_->turn_is_over(); ++round) {
    round_.reset();
    progress = channel_.poll([&](const rpcrdma::Completion& c) { requester_->on_completion(c); });
    while (auto event = requester_->poll_event()) {
      std::visit([&](auto& e) { handle(std::move(e)); }, *event);
      progress = true;
    }
    if (const auto releases = channel_.pool().releases(); releases != releases_seen_) {
      releases_seen_ = releases;
      requester_->progress();
    }
    note_messages();
    progress = forward_to_tcp() || progress;
    progress = take_records() || progress;
    if (auto ok = channel_.flush(); !ok) handle(rpcrdma::Requester::MustClose{ok.error()});
    if (!progress || tcp_->worth_a_flush()) tcp_->flush();
    progress = progress || channel_.pool().releases() != releases_seen_;
  }
  tcp_->flush();  // what is left, after rounds without end
  finish_if_drained();
  const TimePoint now = Clock::now();
  watch_for_stalls(now);
  pumping_ = false;
  if (life_ >= Life::kRest) return;
  channel_.after_turn(now, log_);
  const auto unanswered = backward_.empty() ? std::nullopt : std::optional(backward_.front().expires);
  const auto stalled = life_ >= Life::kClosing ? std::nullopt
                                               : earliest({record_.deadline(), replies_.deadline(), credits_.deadline(),
                                                           leaving_.deadline(), question_.deadline()});
  timer_.set(earliest({unanswered, stalled, channel_.deadline()}), [weak = weak_from_this()] {
    if (auto self = weak.lock()) self->on_deadline();
  });
  if (progress || tcp_->turn_is_over()) return wait_for_turn();
  channel_.arm([weak = weak_from_this()] {
    if (auto self = weak.lock()) self->wake();
  });
  if (channel_.poll([&](const rpcrdma::Completion& c) { requester_->on_completion(c); })) return wait_for_turn();
  if (channel_.take_rest()) {
    requester_->rest();
    tcp_->rest();
  }
}

void TcpSession::take_turn() {
  life_ == Life::kRest ? deliver_rest() : pump();
}

TimePoint TcpSession::round_time() {
  if (!round_) round_ = Clock::now();
  return *round_;
}

// Who has just moved bulk data comes behind those who have not.
void TcpSession::wake() {
  tcp_->moved_much() ? wait_for_turn() : take_turn();
}

void TcpSession::handle(rpcrdma::Requester::ReplyReceived reply) {
  stats_.received(MessageKind::kReply);
  if (!version_told_) tell_version();
  meter_.replied(static_cast<RpcProgram>(reply.tag), reply.message.size(), round_time() - reply.since,
                 {.read = reply.read_bytes, .write = reply.written});
  if (reply.larger_chunk) stats_.incident(Incident::kLargerReplyChunk);
  if (layouts_.on_reply(reply.message.bytes())) stats_.incident(Incident::kLayoutsHidden);
  to_tcp_.push_back({std::move(reply.message), MessageKind::kReply});
}

// The client gets an RPC error: silence would make it wait, closing would make it try the same for ever.
void TcpSession::handle(const rpcrdma::Requester::CallFailed& failed) {
  stats_.incident(incident(failed.why));
  meter_.failed(static_cast<RpcProgram>(failed.tag));
  log_.warn(
      LogKind::kFailedCall,
      fmt::format("call failed tcp_peer={} xid={:#x}: {}", cm::to_string(tcp_->remote()), failed.xid, text(failed.why)),
      Clock::now());
  auto error = make_error_record(failed.xid);
  if (!error)
    return handle(rpcrdma::Requester::MustClose{make_error(Errc::kResource, "no memory to report a failed call")});
  stats_.received(MessageKind::kReply);
  to_tcp_.push_back({std::move(*error), MessageKind::kReply});
}

std::optional<rpcrdma::Buffer> TcpSession::make_error_record(std::uint32_t xid) {
  // Not from the memory for Replies, which outstanding Calls may use up entirely.
  auto buffer = channel_.pool().acquire(rpcrdma::kErrorReplyBytes, rpcrdma::BufferPool::Purpose::kBackward,
                                        rpcrdma::kHeadroomBytes);
  if (!buffer) return std::nullopt;
  const auto error = rpcrdma::make_error_reply(xid, rpcrdma::AcceptStat::kSystemErr);
  std::copy(error.begin(), error.end(), buffer->bytes().begin());
  return buffer;
}

void TcpSession::handle(rpcrdma::Requester::BackwardCall call) {
  stats_.received(MessageKind::kBackwardCall);
  // The Requester drops an xid that it has outstanding.
  const TimePoint now = Clock::now();
  meter_.called(RpcProgram::kCallback, call.message.size());
  backward_.push_back({call.xid, call.token, now + options_.backward_timeout, now});
  to_tcp_.push_back({std::move(call.message), MessageKind::kBackwardCall});
}

void TcpSession::handle(const rpcrdma::Requester::MustClose& must_close) {
  if (must_close.error.code == Errc::kMalformedRpc) return give_up(EndReason::kMalformedReply, must_close.error);
  if (!step(life_, LifeInput::kClose)) return;
  server_ended_ = must_close.error.code == Errc::kFlushed || must_close.error.code == Errc::kConnectionLost;
  // Flushed work only says that the connection is over, which is about to be told with its true reason.
  if (must_close.error.code == Errc::kFlushed) return;
  log_.warn(LogKind::kClosing,
            fmt::format("closing peer={} tcp_peer={} why=\"{}\"", cm::to_string(connection_->remote()),
                        cm::to_string(tcp_->remote()), must_close.error.why),
            Clock::now());
  connection_->abort(must_close.error);
}

bool TcpSession::forward_to_tcp() {
  bool progress = false;
  while (!to_tcp_.empty() && tcp_->send(to_tcp_.front().message)) {
    stats_.forwarded(to_tcp_.front().kind);
    to_tcp_.pop_front();
    progress = true;
  }
  return progress;
}

bool TcpSession::take_records() {
  bool progress = false;
  for (unsigned taken = 0; life_ < Life::kClosing && !tcp_->broken(); ++taken) {
    if (taken == kRecordBudget) return true;  // others have their turn
    if (!held_record_) held_record_ = tcp_->read();
    if (!held_record_) break;
    if (!give_to_rdma(*held_record_)) return progress;
    held_record_.reset();
    progress = true;
  }
  // A client that only ended its own sending still gets its Replies.
  if (tcp_->ended() && step(life_, LifeInput::kNoMoreCalls)) {
    log_.info(
        LogKind::kPeerClosed,
        fmt::format("client closed tcp_peer={} reason={}", cm::to_string(tcp_->remote()), name(tcp_->ended()->code)),
        Clock::now());
  }
  if (life_ < Life::kClosing && tcp_->broken()) close_rdma();
  return progress;
}

bool TcpSession::give_to_rdma(rpcrdma::Buffer& record) {
  const auto direction = rpcrdma::rpc_direction(record.bytes());
  if (!direction) {
    stats_.received(MessageKind::kCall);
    stats_.dropped(MessageKind::kCall, DropReason::kMalformed);
    handle(rpcrdma::Requester::MustClose{
        make_error(Errc::kInvalidArgument, "the client sent a record that is no RPC message")});
    return true;
  }
  if (*direction == rpcrdma::RpcDirection::kCall) return give_call(record);
  give_backward_reply(record);
  return true;
}

bool TcpSession::give_call(rpcrdma::Buffer& record) {
  if (shutting_down_ && !tcp_->ended()) {  // the client sends it again on its next connection
    stats_.received(MessageKind::kCall);
    stats_.dropped(MessageKind::kCall, DropReason::kConnectionClosed);
    return true;
  }
  if (deny_tls(record)) {
    stats_.received(MessageKind::kCall);
    stats_.tls_denied();
    to_tcp_.push_back({std::move(record), MessageKind::kReply});
    return true;
  }
  if (!requester_->can_take_call()) return false;
  layouts_.on_call(record.bytes());
  // The server's backward Calls have to fit in line on this connection (RFC 8167 s5).
  (void)rpcrdma::clamp_back_channel(record.bytes(), requester_->max_backward_bytes());
  const TimePoint now = round_time();
  const RpcProgram program = rpc_program(record.bytes());
  const std::size_t bytes = record.size();
  const auto sent = requester_->call(std::move(record), now, static_cast<std::uint32_t>(program));
  if (!sent && sent.error().code == Errc::kQueueFull) return false;
  stats_.received(MessageKind::kCall);
  if (sent) {
    stats_.forwarded(MessageKind::kCall);
    meter_.called(program, bytes);
  } else if (sent.error().code == Errc::kNotConnected) {
    stats_.dropped(MessageKind::kCall, DropReason::kConnectionClosed);
  } else {
    stats_.dropped(MessageKind::kCall, DropReason::kDuplicateXid);
    const auto since = requester_->outstanding_since(*rpcrdma::rpc_xid(record.bytes()));
    if (since && now >= add_saturating(*since, options_.lost_call_limit))
      give_up(EndReason::kLostCall, make_error(Errc::kTimeout, "the client repeats a Call whose Reply is overdue"));
  }
  return true;
}

void TcpSession::give_backward_reply(rpcrdma::Buffer& record) {
  const auto xid = rpcrdma::rpc_xid(record.bytes());
  const auto call = std::find_if(backward_.begin(), backward_.end(), [&](const AtClient& c) { return c.xid == xid; });
  if (call == backward_.end()) {
    stats_.received(MessageKind::kBackwardReply);
    return stats_.dropped(MessageKind::kBackwardReply, DropReason::kUnknownXid);
  }
  const std::size_t bytes = record.size();
  auto sent = requester_->reply_backward(call->token, std::move(record));
  stats_.received(MessageKind::kBackwardReply);
  if (sent) {
    stats_.forwarded(MessageKind::kBackwardReply);
    meter_.replied(RpcProgram::kCallback, bytes, Clock::now() - call->since);
  } else if (sent.error().code == Errc::kNotConnected) {
    stats_.dropped(MessageKind::kBackwardReply, DropReason::kConnectionClosed);
  } else {
    stats_.dropped(MessageKind::kBackwardReply, DropReason::kTooLong);
    stats_.incident(Incident::kBackwardRefused);
    log_.warn(LogKind::kBackward,
              fmt::format("backward reply refused tcp_peer={} xid={:#x} bytes={}: {}", cm::to_string(tcp_->remote()),
                          *xid, record.size(), sent.error().why),
              Clock::now());
    // Something shorter, so that the server need not wait.
    const auto error = rpcrdma::make_error_reply(*xid, rpcrdma::AcceptStat::kSystemErr);
    record.set_view(record.headroom(), error.size());
    std::copy(error.begin(), error.end(), record.bytes().begin());
    if (sent = requester_->reply_backward(call->token, std::move(record)); !sent)
      requester_->abandon_backward(call->token);
    meter_.failed(RpcProgram::kCallback);
  }
  backward_.erase(call);
}

}  // namespace iwarp::gateway
