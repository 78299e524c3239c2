#include "iwarp/gateway/tcp_session.h"

#include <spdlog/spdlog.h>

#include "iwarp/cm/connector.h"
#include "iwarp/gateway/rdma_counters.h"
#include "iwarp/rpcrdma/nfs_binding.h"
#include "iwarp/rpcrdma/rpc_message.h"

namespace iwarp::gateway {
namespace {

using Clock = std::chrono::steady_clock;

constexpr unsigned kWorkBudget = 16;
// Records taken in each of these rounds, and in one turn when all that is left to do is to drop them.
constexpr unsigned kRecordBudget = 64;
// More than any client's slot table.
constexpr std::size_t kMaxQueuedCalls = 1024;

rpcrdma::RequesterOptions requester_options(const Options& o) {
  rpcrdma::RequesterOptions r;
  r.credits = o.credits;
  r.inline_bytes = o.inline_bytes;
  // What waits is bounded by the memory for Calls. A low limit would hold up the backward Replies behind it in the TCP
  // stream.
  r.max_queued_calls = kMaxQueuedCalls;
  return r;
}

rpcrdma::BufferPool::Options pool_options(const Options& o) {
  auto p = rpcrdma::pool_options(requester_options(o));
  p.call_bytes = p.reply_bytes = o.memory_bytes;
  return p;
}

const char* text(rpcrdma::Requester::Failure why) {
  using F = rpcrdma::Requester::Failure;
  switch (why) {
    case F::kErrChunk:
      return "server answered ERR_CHUNK";
    case F::kErrVers:
      return "server does not speak RPC-over-RDMA version 1";
    case F::kBadReply:
      return "server's reply does not match its chunk";
    case F::kLocal:
      return "cannot expose memory";
  }
  return "unknown";
}

}  // namespace

TcpSession::TcpSession(cm::Engine& engine, const Options& options, Stats& stats, Refusals& refusals,
                       boost::asio::ip::tcp::socket client, Ended ended)
    : engine_(engine),
      options_(options),
      stats_(stats),
      refusals_(refusals),
      ended_(std::move(ended)),
      channel_(engine, options.stream, pool_options(options), options.policy.ord, options.keep_idle_memory),
      requester_options_(requester_options(options)),
      tcp_(std::make_shared<RecordStream>(std::move(client), RecordOptions{}, channel_.pool(),
                                          RecordStream::Purpose::kCall, stats)),
      timer_(engine.io()) {}

void TcpSession::connect(const HostPort& server, std::optional<boost::asio::ip::address> source) {
  cm::ConnectOptions o;
  o.host = server.host;
  o.port = server.port;
  o.policy = options_.policy;
  o.connect_timeout = options_.backend_timeout;
  if (source) o.local = boost::asio::ip::tcp::endpoint(*source, 0);
  const auto pd = rpcrdma::private_data(requester_options_).encode();  // req: RFC8797-4-1
  o.private_data.assign(pd.begin(), pd.end());
  cm::connect(engine_, channel_.qp(), o,  // req: RFC8166-2.2.3-1 RFC8167-2-2
              [self = shared_from_this()](const Error& error, const std::shared_ptr<cm::Connection>& c) {
                self->on_established(error, c);
              });
}

void TcpSession::on_established(const Error& error, const std::shared_ptr<cm::Connection>& connection) {
  if (over_) {  // stopped meanwhile
    if (connection) connection->abort();
    return;
  }
  if (error.code != Errc::kOk) {
    refusals_.add(
        RefuseReason::kBackendUnreachable,
        fmt::format("refused tcp_peer={} reason={}: {}", cm::to_string(tcp_->remote()), name(error.code), error.why),
        Clock::now());
    release();
    ended_(*this);
    return;
  }
  connection_ = connection;
  requester_.emplace(channel_.endpoint(), channel_.pool(),
                     rpcrdma::negotiate(rpcrdma::private_data(requester_options_),  // req: RFC8797-4-2 RFC8797-4-3
                                        rpcrdma::PrivateData::parse(connection_->private_data())),
                     requester_options_);
  stats_.connection_opened();
  spdlog::info("established {} tcp_local={} tcp_peer={}", connection_->to_string(), cm::to_string(tcp_->local()),
               cm::to_string(tcp_->remote()));
  connection_->async_wait_disconnected(
      [self = shared_from_this()](const stream::Disconnected& how) { self->on_disconnected(how); });
  if (auto ok = requester_->start(); !ok) return handle(rpcrdma::Requester::MustClose{ok.error()});
  tcp_->start([weak = weak_from_this()] {
    if (auto self = weak.lock()) self->resume();
  });
  tcp_->watch_for_reset();
  pump();
}

void TcpSession::pump() {
  if (pumping_ || over_ || !requester_) return;
  pumping_ = true;
  bool progress = true;
  for (unsigned round = 0; round < kWorkBudget && progress; ++round) {
    progress = channel_.poll([&](const rpcrdma::Completion& c) { requester_->on_completion(c); });
    while (auto event = requester_->poll_event()) {
      std::visit([&](auto& e) { handle(std::move(e)); }, *event);
      progress = true;
    }
    if (const auto releases = channel_.pool().releases(); releases != releases_seen_) {
      releases_seen_ = releases;
      requester_->progress();
    }
    progress = forward_to_tcp() || progress;
    progress = take_records() || progress;
    if (auto ok = channel_.endpoint().flush(); !ok) handle(rpcrdma::Requester::MustClose{ok.error()});
    progress = progress || channel_.pool().releases() != releases_seen_;
  }
  finish_if_drained();
  pumping_ = false;
  if (over_) return;
  channel_.after_turn(Clock::now());
  const auto unanswered = backward_.empty() ? std::nullopt : std::optional(backward_.front().expires);
  timer_.set(earliest({unanswered, channel_.deadline()}), [weak = weak_from_this()] {
    if (auto self = weak.lock()) self->on_deadline();
  });
  if (progress) return post_resume();
  channel_.arm([weak = weak_from_this()] {
    if (auto self = weak.lock()) self->pump();
  });
  if (channel_.poll([&](const rpcrdma::Completion& c) { requester_->on_completion(c); })) post_resume();
}

void TcpSession::resume() {
  delivery_ends_ ? deliver_rest() : pump();
}

void TcpSession::post_resume() {
  turn_.post(engine_.io(), weak_from_this(), &TcpSession::resume);
}

void TcpSession::handle(rpcrdma::Requester::ReplyReceived reply) {
  stats_.received(MessageKind::kReply);
  to_tcp_.push_back({std::move(reply.message), MessageKind::kReply});
}

// The client gets an RPC error: silence would make it wait, closing would make it try the same for ever.
void TcpSession::handle(const rpcrdma::Requester::CallFailed& failed) {
  spdlog::warn("call failed tcp_peer={} xid={:#x}: {}", cm::to_string(tcp_->remote()), failed.xid, text(failed.why));
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
  backward_.push_back({call.xid, call.token, Clock::now() + options_.backward_timeout});
  to_tcp_.push_back({std::move(call.message), MessageKind::kBackwardCall});
}

void TcpSession::handle(const rpcrdma::Requester::MustClose& must_close) {
  if (std::exchange(closing_, true)) return;
  // Flushed work only says that the connection is over, which is about to be told with its true reason.
  if (must_close.error.code == Errc::kFlushed) return;
  spdlog::warn("closing peer={} why=\"{}\"", cm::to_string(connection_->remote()), must_close.error.why);
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
  for (unsigned taken = 0; !closing_ && !tcp_->broken(); ++taken) {
    if (taken == kRecordBudget) return true;  // others have their turn
    if (!held_record_) held_record_ = tcp_->read();
    if (!held_record_) break;
    if (!give_to_rdma(*held_record_)) return progress;
    held_record_.reset();
    progress = true;
  }
  if (!closing_ && !draining_ && tcp_->ended()) {
    spdlog::info("client closed tcp_peer={} reason={}", cm::to_string(tcp_->remote()), name(tcp_->ended()->code));
    draining_ = true;  // a client that only ended its own sending still gets its Replies
  }
  if (!closing_ && tcp_->broken()) close_rdma();
  return progress;
}

bool TcpSession::give_to_rdma(rpcrdma::Buffer& record) {
  const auto direction = rpcrdma::rpc_direction(record.bytes());
  if (!direction) {
    stats_.received(MessageKind::kCall);
    stats_.dropped(MessageKind::kCall, DropReason::kMalformed);
    handle(rpcrdma::Requester::MustClose{
        make_error(Errc::kMalformedRpc, "the client sent a record that is no RPC message")});
    return true;
  }
  if (*direction == rpcrdma::RpcDirection::kCall) return give_call(record);
  give_backward_reply(record);
  return true;
}

bool TcpSession::give_call(rpcrdma::Buffer& record) {
  if (draining_ && !tcp_->ended()) {  // shutting down: the client sends it again on its next connection
    stats_.received(MessageKind::kCall);
    stats_.dropped(MessageKind::kCall, DropReason::kConnectionClosed);
    return true;
  }
  if (!requester_->can_take_call()) return false;
  // The server's backward Calls have to fit in line on this connection (RFC 8167 s5).
  (void)rpcrdma::clamp_back_channel(record.bytes(), requester_->max_backward_bytes());
  const auto sent = requester_->call(std::move(record));
  if (!sent && sent.error().code == Errc::kQueueFull) return false;
  stats_.received(MessageKind::kCall);
  if (sent) {
    stats_.forwarded(MessageKind::kCall);
  } else {
    stats_.dropped(MessageKind::kCall, sent.error().code == Errc::kNotConnected ? DropReason::kConnectionClosed
                                                                                : DropReason::kDuplicateXid);
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
  auto sent = requester_->reply_backward(call->token, std::move(record));
  stats_.received(MessageKind::kBackwardReply);
  if (sent) {
    stats_.forwarded(MessageKind::kBackwardReply);
  } else if (sent.error().code == Errc::kNotConnected) {
    stats_.dropped(MessageKind::kBackwardReply, DropReason::kConnectionClosed);
  } else {
    stats_.dropped(MessageKind::kBackwardReply, DropReason::kTooLong);
    spdlog::warn("backward reply refused tcp_peer={} xid={:#x} bytes={}: {}", cm::to_string(tcp_->remote()), *xid,
                 record.size(), sent.error().why);
    // Something shorter, so that the server need not wait.
    const auto error = rpcrdma::make_error_reply(*xid, rpcrdma::AcceptStat::kSystemErr);
    record.set_view(record.headroom(), error.size());
    std::copy(error.begin(), error.end(), record.bytes().begin());
    if (sent = requester_->reply_backward(call->token, std::move(record)); !sent)
      requester_->abandon_backward(call->token);
  }
  backward_.erase(call);
}

// The server gets an RPC error, which also gives its credit back; a late Reply of the client finds no Call.
void TcpSession::on_deadline() {
  if (over_) return;
  channel_.on_deadline(Clock::now());
  while (!backward_.empty() && backward_.front().expires <= Clock::now()) {
    const AtClient call = backward_.front();
    backward_.pop_front();
    spdlog::warn("backward call unanswered tcp_peer={} xid={:#x} after={}ms", cm::to_string(tcp_->remote()), call.xid,
                 options_.backward_timeout.count());
    auto error = make_error_record(call.xid);
    if (!error || !requester_->reply_backward(call.token, std::move(*error))) requester_->abandon_backward(call.token);
  }
  pump();
}

void TcpSession::close_rdma() {
  closing_ = true;
  if (auto ok = channel_.endpoint().flush(); !ok) spdlog::debug("flush: {}", ok.error().why);
  connection_->disconnect();
}

void TcpSession::on_disconnected(const stream::Disconnected& how) {
  if (std::exchange(over_, true)) return;
  spdlog::log(cm::ordinary_end(how) ? spdlog::level::info : spdlog::level::warn, "closed {}",
              cm::describe_end(*connection_, how));
  while (channel_.poll([&](const rpcrdma::Completion& c) { requester_->on_completion(c); })) {
  }
  requester_->on_disconnect();
  while (auto event = requester_->poll_event()) {
    if (auto* reply = std::get_if<rpcrdma::Requester::ReplyReceived>(&*event)) handle(std::move(*reply));
  }
  record_counters(stats_, connection_->counters());
  delivery_ends_ = Clock::now() + options_.delivery_timeout;
  timer_.set(delivery_ends_, [weak = weak_from_this()] {
    if (auto self = weak.lock()) self->deliver_rest();
  });
  deliver_rest();
}

void TcpSession::deliver_rest() {
  if (tcp_->closed()) return;
  (void)forward_to_tcp();
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
  if (record) post_resume();  // perhaps there are more
}

void TcpSession::end() {
  for (const Outgoing& o : to_tcp_) stats_.dropped(o.kind, DropReason::kConnectionClosed);
  release();  // the client reconnects and sends its Calls again
  stats_.connection_closed();
  ended_(*this);
}

void TcpSession::release() {
  over_ = true;
  tcp_->close(false);
  to_tcp_.clear();
  held_record_.reset();
}

void TcpSession::drain() {
  draining_ = true;
  finish_if_drained();
}

void TcpSession::finish_if_drained() {
  if (!draining_ || closing_ || !requester_ || !requester_->idle() || !to_tcp_.empty() || !tcp_->all_sent()) return;
  close_rdma();
}

void TcpSession::add_live_counters(Stats::Snapshot& to) const {
  if (connection_ && !over_) add_counters(to, connection_->counters());
}

void TcpSession::stop() {
  if (delivery_ends_ && !tcp_->closed()) return end();
  if (over_) return;
  closing_ = true;
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
