#include "iwarp/rpc/server_core.h"

#include <array>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include "iwarp/base/wire.h"

namespace iwarp::rpc {
namespace {

using Clock = std::chrono::steady_clock;
using rpcrdma::AcceptStat;

// A handler throws: SYSTEM_ERR.
boost::asio::awaitable<void> run(std::shared_ptr<const Server::Handler> handler, std::shared_ptr<ServedCall> call) {
  Answer answer(AcceptStat::kSystemErr);
  try {
    answer = co_await (*handler)(Call(call));
  } catch (...) {
  }
  call->answer(std::move(answer));
}

}  // namespace

// --- ServedCall

ServedCall::ServedCall(std::shared_ptr<ServerCore> core, std::shared_ptr<ServerSession> session,
                       rpcrdma::CallToken token, HeldBuffer message, const rpcrdma::RpcCall& head)
    : core_(std::move(core)), session_(std::move(session)), token_(token), message_(std::move(message)), head_(head) {}

ServedCall::~ServedCall() {
  message_.reset();
  if (!answered_.exchange(true)) send(rpcrdma::make_error_reply(head_.xid, AcceptStat::kSystemErr), {});
}

bool ServedCall::is_new() {
  const auto key = core_->replays().key_of(message_.bytes());
  if (!key) return true;
  const ReplayCache::Asker asker{session_, token_};
  if (core_->replays().begin(session_->peer(), *key, asker, Clock::now()) != ReplayCache::Verdict::kNew) {
    answered_ = true;  // by others
    message_.reset();
    return false;
  }
  key_ = key;
  return true;
}

void ServedCall::send(ConstBytes head, ConstBytes body) {
  note_answer(head, body);
  session_->reply(token_, head, body);
}

void ServedCall::note_answer(ConstBytes head, ConstBytes body) {
  message_.reset();
  core_->count_reply();
  if (key_) core_->replays().finish(session_->peer(), *key_, head, body, Clock::now());
}

Result<void> ServedCall::answer(Octets reply) {
  if (rpcrdma::rpc_direction(reply) != rpcrdma::RpcDirection::kReply) {
    return make_error(Errc::kInvalidArgument, "not an RPC Reply");
  }
  if (answered_.exchange(true)) return make_error(Errc::kInvalidArgument, "the Call is answered already");
  store_be(MutBytes(reply).first(4), head_.xid);
  send(reply, {});
  return {};
}

void ServedCall::answer(Answer answer) {
  if (answered_.exchange(true)) return;
  const auto head = rpcrdma::make_error_reply(head_.xid, answer.stat);
  if (!answer.registered || answer.octets().empty()) return send(head, answer.octets());
  WholeMessage whole(head, std::move(*answer.registered));
  note_answer(std::as_const(whole).bytes(), {});
  session_->reply(token_, std::move(whole));
}

// --- ServerCore

ServerCore::ServerCore(cm::Engine& engine, ServerOptions options)
    : engine_(engine),
      options_(std::move(options)),
      places_(std::make_shared<Places>(options_.max_connections)),
      replays_(
          {options_.remembered_calls, options_.remembered_bytes, options_.remembered_clients, options_.remembered_for}),
      threads_(options_.threads > 0 ? HandlerThreads::start(options_.threads) : nullptr) {
  engine.start();
}

ServerCore::~ServerCore() = default;

void ServerCore::serve(std::uint32_t program, std::uint32_t version, Server::Handler handler) {
  auto kept = std::make_shared<const Server::Handler>(std::move(handler));
  const std::lock_guard lock(mu_);
  programs_[{program, version}] = std::move(kept);
}

void ServerCore::serve_messages(Server::MessageHandler handler) {
  auto kept = std::make_shared<const Server::MessageHandler>(std::move(handler));
  const std::lock_guard lock(mu_);
  messages_ = std::move(kept);
}

Result<void> ServerCore::listen(std::shared_ptr<ServerTransport> transport) {
  {
    const std::lock_guard lock(mu_);
    if (stopped_) return make_error(Errc::kAborted, "the Server has stopped");
  }
  if (auto failed = transport->listen([weak = weak_from_this()](Incoming incoming) {
        if (const auto self = weak.lock()) self->on_incoming(std::move(incoming));
      });
      !failed) {
    return failed;
  }
  {
    const std::lock_guard lock(mu_);
    if (!stopped_) {
      transports_.push_back(std::move(transport));
      return {};
    }
  }
  transport->stop();  // stop() came too early for it
  return make_error(Errc::kAborted, "the Server has stopped");
}

void ServerCore::on_incoming(Incoming incoming) {
  auto place = Places::take(places_);
  if (!place) return;  // refused
  const auto session =
      std::make_shared<ServerSession>(weak_from_this(), std::move(place), engine_, std::move(incoming), options_);
  {
    const std::lock_guard lock(mu_);
    if (stopped_) return;  // likewise
    sessions_.insert(session);
  }
  ++connections_;
  session->accept();
}

void ServerCore::remove(ServerSession* session) {
  std::shared_ptr<ServerSession> gone;  // without the lock
  const std::lock_guard lock(mu_);
  for (auto it = sessions_.begin(); it != sessions_.end(); ++it) {
    if (it->get() != session) continue;
    gone = *it;
    sessions_.erase(it);
    return;
  }
}

void ServerCore::drop_connections() {
  std::vector<std::shared_ptr<ServerSession>> all;
  {
    const std::lock_guard lock(mu_);
    all.assign(sessions_.begin(), sessions_.end());
  }
  for (const auto& session : all) session->close();
}

void ServerCore::stop() {
  std::vector<std::shared_ptr<ServerTransport>> transports;
  {
    const std::lock_guard lock(mu_);
    stopped_ = true;
    transports.swap(transports_);
  }
  for (const auto& transport : transports) transport->stop();
  drop_connections();
  if (!threads_) return;
  threads_->stop();
  threads_->join();
}

Server::Stats ServerCore::stats() const {
  return {calls_, replies_, recognized_, connections_};
}

Octets ServerCore::objection(const rpcrdma::RpcCall& head) {
  std::uint32_t low = 0, high = 0;
  {
    const std::lock_guard lock(mu_);
    const auto first = programs_.lower_bound({head.program, 0});
    const auto last = programs_.upper_bound({head.program, UINT32_MAX});
    if (first == last) return encode_reply(head.xid, AcceptStat::kProgUnavail, {});
    low = first->first.second;
    high = std::prev(last)->first.second;
  }
  std::array<std::byte, 8> range{};
  WriteCursor out(range);
  out.be(low);
  out.be(high);
  return encode_reply(head.xid, AcceptStat::kProgMismatch, range);
}

void ServerCore::dispatch(const std::shared_ptr<ServedCall>& call) {
  std::shared_ptr<const Server::Handler> handler;
  std::shared_ptr<const Server::MessageHandler> messages;
  {
    const std::lock_guard lock(mu_);
    if (stopped_) return;
    const auto found = programs_.find({call->head().program, call->head().version});
    if (found != programs_.end()) {
      handler = found->second;
    } else {
      messages = messages_;
    }
  }
  // Once, whatever connection it comes on.
  if (!call->is_new()) {
    ++recognized_;
    return;
  }
  if (handler) {
    ++calls_;
    const boost::asio::any_io_executor where =
        threads_ ? boost::asio::any_io_executor(threads_->get_executor()) : engine_.get_executor();
    boost::asio::co_spawn(where, run(handler, call), boost::asio::detached);
  } else if (messages) {
    ++calls_;
    (*messages)(call);
  } else {
    (void)call->answer(objection(call->head()));
  }
}

}  // namespace iwarp::rpc
