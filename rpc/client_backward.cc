// A Client serves the server that it calls (RFC 8167).
#include <algorithm>
#include <array>
#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include "iwarp/base/wire.h"
#include "iwarp/rpc/client_core.h"
#include "iwarp/rpc/refusal.h"

namespace iwarp::rpc {
namespace {

using rpcrdma::AcceptStat;

// A backward Call under way.
class BackwardServed final : public IncomingCall {
 public:
  BackwardServed(std::shared_ptr<ClientSession> session, std::unique_ptr<Places::Place> place, rpcrdma::CallToken token,
                 HeldBuffer message, const rpcrdma::RpcCall& head)
      : place_(std::move(place)),
        session_(std::move(session)),
        token_(token),
        message_(std::move(message)),
        head_(head) {}
  ~BackwardServed() override {
    if (!answered_) send(encode_reply(head_.xid, AcceptStat::kSystemErr, {}));
  }

  [[nodiscard]] ConstBytes message() const override { return message_.bytes(); }
  [[nodiscard]] const rpcrdma::RpcCall& head() const override { return head_; }
  [[nodiscard]] const std::string& peer() const override { return session_->channel->peer(); }
  [[nodiscard]] std::uint16_t peer_port() const override { return session_->channel->peer_port(); }
  void done_reading() override { message_.reset(); }
  // Whether nobody hears the answer.
  [[nodiscard]] bool is_over() const { return session_->is_over(); }
  [[nodiscard]] Result<void> answer(Octets reply) override {
    if (rpcrdma::rpc_direction(reply) != rpcrdma::RpcDirection::kReply) {
      return make_error(Errc::kInvalidArgument, "not an RPC Reply");
    }
    if (answered_.exchange(true)) return make_error(Errc::kInvalidArgument, "the Call is answered already");
    store_be(MutBytes(reply).first(4), head_.xid);
    send(reply);
    return {};
  }

 private:
  void send(ConstBytes reply) {
    message_.reset();
    place_.reset();  // the server may use the credit at once
    session_->answer_backward(token_, reply);
  }

  std::unique_ptr<Places::Place> place_;
  const std::shared_ptr<ClientSession> session_;
  const rpcrdma::CallToken token_;
  HeldBuffer message_;
  rpcrdma::RpcCall head_;
  std::atomic<bool> answered_{false};
};

boost::asio::awaitable<void> serve_backward(std::shared_ptr<const Handler> handler,
                                            std::shared_ptr<BackwardServed> call) {
  if (call->is_over()) co_return;
  Answer answer(AcceptStat::kSystemErr);
  try {
    answer = co_await (*handler)(Call(call));
  } catch (...) {
  }
  (void)call->answer(encode_reply(0, answer.stat, answer.octets()));
}

}  // namespace

void ClientSession::put_backward(rpcrdma::CallToken token, ConstBytes reply) {
  const auto put = [&](ConstBytes octets) {
    auto room = pool.acquire(octets.size(), rpcrdma::BufferPool::Purpose::kBackward);
    if (!room) return false;
    std::copy(octets.begin(), octets.end(), room->bytes().begin());
    return requester.reply_backward(token, std::move(*room)).ok();
  };
  if (over || put(reply)) return;
  // It is too long, or there is no memory for it.
  const auto error = rpcrdma::make_error_reply(rpcrdma::rpc_xid(reply).value_or(0), AcceptStat::kSystemErr);
  if (!put(error)) requester.abandon_backward(token);
}

bool ClientSession::is_over() const {
  const std::lock_guard lock(*mu_);
  return over;
}

void ClientSession::answer_backward(rpcrdma::CallToken token, ConstBytes reply) {
  {
    const std::lock_guard lock(*mu_);
    put_backward(token, reply);
  }
  if (const auto core = core_.lock()) core->turn_for_application();
}

void ClientCore::serve(std::uint32_t program, std::uint32_t version, Handler handler) {
  auto kept = std::make_shared<const Handler>(std::move(handler));
  const std::lock_guard lock(*mu_);
  programs_[{program, version}] = std::move(kept);
}

void ClientCore::on_backward(rpcrdma::Requester::BackwardCall call, Acts& acts) {
  const auto head = rpcrdma::RpcCall::parse(call.message.bytes());
  if (!head) return session_->put_backward(call.token, refusal(call.message.bytes()));
  if (const auto found = programs_.find({head->program, head->version}); found != programs_.end()) {
    auto place = Places::take(backward_places_);
    if (!place) return session_->put_backward(call.token, encode_reply(call.xid, AcceptStat::kSystemErr, {}));
    auto served = std::make_shared<BackwardServed>(session_, std::move(place), call.token,
                                                   HeldBuffer(session_, std::move(call.message)), *head);
    acts.push_back([&io = io_, handler = found->second, served = std::move(served)] {
      boost::asio::co_spawn(io, serve_backward(handler, served), boost::asio::detached);
    });
    return;
  }
  const auto first = programs_.lower_bound({head->program, 0});
  const auto last = programs_.upper_bound({head->program, UINT32_MAX});
  if (first == last) return session_->put_backward(call.token, encode_reply(call.xid, AcceptStat::kProgUnavail, {}));
  std::array<std::byte, 8> range{};
  WriteCursor out(range);
  out.be(first->first.second);
  out.be(std::prev(last)->first.second);
  session_->put_backward(call.token, encode_reply(call.xid, AcceptStat::kProgMismatch, range));
}

}  // namespace iwarp::rpc
