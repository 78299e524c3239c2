// A Server calls its clients (RFC 8167).
#include <algorithm>
#include <boost/asio/post.hpp>
#include <chrono>

#include "iwarp/base/wire.h"
#include "iwarp/rpc/server_core.h"

namespace iwarp::rpc {

void Caller::begin(cm::Engine& engine, const std::weak_ptr<ServerSession>& session, Octets message, Done done,
                   const std::shared_ptr<cm::Canceller>& cancel) {
  if (const auto alive = session.lock()) return alive->call_back(std::move(message), std::move(done), cancel);
  boost::asio::post(engine.io(), [done = std::move(done)] { done(make_error(Errc::kConnectionLost), {}); });
}

Caller Call::caller() const {
  return call_->caller();
}

Caller ServedCall::caller() const {
  return {core_->engine(), session_};
}

void ServerSession::call_back(Octets message, Caller::Done done, const std::shared_ptr<cm::Canceller>& cancel) {
  Work work;
  std::uint32_t xid = 0;
  {
    const std::lock_guard lock(mu_);
    const auto send = [&]() -> Result<void> {
      if (over_) return make_error(Errc::kConnectionLost);
      while (backward_.contains(next_backward_xid_)) ++next_backward_xid_;
      xid = next_backward_xid_++;
      store_be(MutBytes(message).first(4), xid);
      if (!pool_.can_hold(message.size(), rpcrdma::BufferPool::Purpose::kBackward)) {
        return make_error(Errc::kInvalidArgument, "longer than the memory for backward Calls");
      }
      auto room = pool_.acquire(message.size(), rpcrdma::BufferPool::Purpose::kBackward);
      if (!room) return make_error(Errc::kResource, "no memory for a backward Call");
      std::copy(message.begin(), message.end(), room->bytes().begin());
      channel_->disarm();
      return responder_.send_backward_call(std::move(*room), std::chrono::steady_clock::now());
    };
    if (const auto sent = send(); !sent) {
      work.told.push_back([done = std::move(done), error = sent.error()] { done(error, {}); });
    } else {
      backward_[xid] = std::move(done);
    }
    if (!over_) round(work);
  }
  leave_later(std::move(work));
  if (!cancel) return;
  cancel->set([weak = weak_from_this(), xid] {
    if (const auto self = weak.lock()) self->cancel_backward(xid);
  });
}

void ServerSession::end_backward(std::uint32_t xid, const Error& error, rpcrdma::Buffer message, Work& work) {
  auto ended = backward_.extract(xid);
  if (ended.empty()) return;
  struct Ending {
    Caller::Done done;
    Error error{};
    Reply reply{};
  };
  const auto ending = std::make_shared<Ending>(Ending{std::move(ended.mapped()), error});
  if (!error) {
    if (const auto head = rpcrdma::RpcReply::parse(message.bytes()); head) {
      ending->reply = Reply(HeldBuffer(shared_from_this(), std::move(message)), *head);
    } else {
      ending->error = head.error();
    }
  }
  work.told.push_back([ending] { ending->done(ending->error, std::move(ending->reply)); });
}

void ServerSession::cancel_backward(std::uint32_t xid) {
  Work work;
  {
    const std::lock_guard lock(mu_);
    if (!backward_.contains(xid)) return;
    responder_.cancel_backward_call(xid);
    end_backward(xid, make_error(Errc::kAborted, cm::kCancelledWhy), {}, work);
  }
  leave_later(std::move(work));
}

}  // namespace iwarp::rpc
