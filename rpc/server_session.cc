#include <algorithm>
#include <array>
#include <boost/asio/post.hpp>
#include <chrono>
#include <iterator>

#include "iwarp/base/wire.h"
#include "iwarp/rpc/delivery.h"
#include "iwarp/rpc/refusal.h"
#include "iwarp/rpc/server_core.h"

namespace iwarp::rpc {
namespace {

using Clock = std::chrono::steady_clock;
using rpcrdma::BufferPool;
using rpcrdma::Responder;

// When the system refuses memory, what needs it tries again so often.
constexpr std::chrono::milliseconds kRetryMemory{100};

// Unused memory that a connection keeps for the next burst.
constexpr std::size_t kIdleBytes = std::size_t{16} << 20;

BufferPool::Options memory_for(const ServerOptions& options) {
  auto out = rpcrdma::pool_options(options.responder);
  out.call_bytes = out.reply_bytes = options.memory_bytes;
  out.idle_bytes = kIdleBytes;
  return out;
}

// Nobody would take what extensions bring.
rpcrdma::ResponderOptions without_extensions(rpcrdma::ResponderOptions options) {
  options.extensions = {};
  return options;
}

}  // namespace

ServerSession::ServerSession(std::weak_ptr<ServerCore> core, std::unique_ptr<Places::Place> place, cm::Engine& engine,
                             Incoming incoming, const ServerOptions& options)
    : place_(std::move(place)),
      core_(std::move(core)),
      io_(engine.io()),
      incoming_(std::move(incoming)),
      channel_(std::move(incoming_.channel)),
      peer_(channel_->peer()),
      options_(without_extensions(options.responder)),
      pool_(channel_->registrar(), memory_for(options)),
      responder_(
          channel_->endpoint(), pool_,
          rpcrdma::negotiate(rpcrdma::PrivateData::parse(channel_->peer_data()), rpcrdma::private_data(options_)),
          options_),
      timer_(io_) {}

ServerSession::~ServerSession() {
  channel_->close();  // nobody uses the memory any more
}

void ServerSession::accept() {
  const auto accept = std::exchange(incoming_.accept, {});
  {
    const std::lock_guard lock(mu_);
    if (over_) return;  // `accept` goes: refused
    channel_->set_wake([weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->turn();
    });
    if (!responder_.start() || !channel_->flush()) return finish();  // likewise
  }
  const auto announce = rpcrdma::private_data(options_).encode();
  accept(announce, [self = shared_from_this()](const Error& error) { error ? self->close() : self->turn(); });
}

void ServerSession::turn() {
  Work work;
  {
    const std::lock_guard lock(mu_);
    round(work);
  }
  leave(std::move(work));
}

void ServerSession::leave(Work work) {
  try {
    deliver(io_, std::exchange(work.told, {}));
    if (work.calls) hand_over_arrived();
  } catch (...) {  // the application's: the others' Calls have nothing to do with it
    leave_later(std::move(work));
    throw;
  }
}

// By the event loop: this is a thread of the application.
void ServerSession::leave_later(Work work) {
  if (work.empty()) return;
  boost::asio::post(io_, [self = shared_from_this(), parcel = std::make_shared<Work>(std::move(work))] {
    self->leave(std::move(*parcel));
  });
}

// For the application's threads.
void ServerSession::turn_later() {
  boost::asio::post(io_, [self = shared_from_this()] { self->turn(); });
}

void ServerSession::round(Work& work) {
  if (!over_) channel_->disarm();
  while (!over_) {
    const bool fine = take_events(work);
    if (const auto releases = pool_.releases(); releases != releases_seen_) {
      releases_seen_ = releases;
      responder_.progress();
      pay_owed();
    }
    if (!fine || !take_events(work) || !channel_->flush()) return finish();
    if (feed()) continue;  // such as what was just sent
    channel_->arm();
    if (!feed()) break;
  }
  if (over_) return;
  // No memory need be on its way back then.
  if (const auto shortages = pool_.shortages(); shortages != shortages_seen_) {
    shortages_seen_ = shortages;
    timer_.at(Clock::now() + kRetryMemory, weak_from_this());
  }
  if (const auto deadline = responder_.deadline()) timer_.at(*deadline, weak_from_this());
}

void ServerSession::on_timer() {
  Work work;
  {
    const std::lock_guard lock(mu_);
    timer_.rung();
    if (over_) return;
    responder_.on_deadline(Clock::now());
    pool_.wake_waiting();
    round(work);
  }
  leave(std::move(work));
}

bool ServerSession::feed() {
  const std::size_t n = channel_->poll(polled_);
  for (std::size_t i = 0; i < n; ++i) responder_.on_completion(polled_[i]);
  return n > 0;
}

// False: the connection has to be closed. A Call that is repeated while it is under way is dropped by the Responder.
bool ServerSession::take_events(Work& work) {
  while (auto event = responder_.poll_event()) {
    if (auto* call = std::get_if<Responder::CallReceived>(&*event)) {
      ++delivered_;
      arrived_.push_back({call->token, std::move(call->message)});
      work.calls = true;
    } else if (auto* reply = std::get_if<Responder::BackwardReply>(&*event)) {
      end_backward(reply->xid, {}, std::move(reply->message), work);
    } else if (const auto* failed = std::get_if<Responder::BackwardFailed>(&*event)) {
      end_backward(failed->xid,
                   failed->timed_out ? make_error(Errc::kTimeout, "the client does not answer in time")
                                     : make_error(Errc::kRecordTooLong, "the client cannot take the Call"),
                   {}, work);
    } else if (std::holds_alternative<Responder::MustClose>(*event)) {
      return false;
    }
  }
  return true;
}

// Programs count on the order, such as those that batch Calls.
void ServerSession::hand_over_arrived() {
  std::unique_lock lock(mu_);
  if (handing_over_) return;  // who does sees what has come meanwhile
  handing_over_ = true;
  while (!arrived_.empty()) {
    handed_.swap(arrived_);
    lock.unlock();
    std::size_t next = 0;
    try {
      while (next < handed_.size()) hand_over(std::move(handed_[next++]));
    } catch (...) {
      lock.lock();
      const auto rest = handed_.begin() + static_cast<std::ptrdiff_t>(next);
      arrived_.insert(arrived_.begin(), std::make_move_iterator(rest), std::make_move_iterator(handed_.end()));
      handed_.clear();
      handing_over_ = false;
      throw;
    }
    lock.lock();
    handed_.clear();
  }
  handing_over_ = false;
}

void ServerSession::hand_over(Arrived call) {
  HeldBuffer message(shared_from_this(), std::move(call.message));
  const auto core = core_.lock();
  const auto head = rpcrdma::RpcCall::parse(message.bytes());
  if (!head || !core) return reply(call.token, refusal(message.bytes()), {});
  core->dispatch(std::make_shared<ServedCall>(core, shared_from_this(), call.token, std::move(message), *head));
}

void ServerSession::reply(rpcrdma::CallToken token, ConstBytes head, ConstBytes body) {
  Work work;
  {
    const std::lock_guard lock(mu_);
    if (over_) return;
    channel_->disarm();  // what this itself completes wakes nobody
    if (!owed_.empty() || !try_reply(token, head, body)) {
      Octets both;
      both.reserve(head.size() + body.size());
      both.insert(both.end(), head.begin(), head.end());
      both.insert(both.end(), body.begin(), body.end());
      owed_.push_back({token, std::move(both)});
    }
    round(work);
  }
  leave_later(std::move(work));
}

void ServerSession::reply(rpcrdma::CallToken token, WholeMessage whole) {
  Work work;
  {
    const std::lock_guard lock(mu_);
    if (over_) return;
    channel_->disarm();
    if (!owed_.empty() || !try_reply(token, whole)) owed_.push_back({token, std::move(whole)});
    round(work);
  }
  leave_later(std::move(work));
}

bool ServerSession::try_reply(rpcrdma::CallToken token, ConstBytes head, ConstBytes body) {
  const std::size_t octets = head.size() + body.size();
  if (!pool_.can_hold(octets, BufferPool::Purpose::kReply)) {
    const auto error = rpcrdma::make_error_reply(rpcrdma::rpc_xid(head).value_or(0), rpcrdma::AcceptStat::kSystemErr);
    if (octets > error.size()) return try_reply(token, error, {});
    responder_.abandon(token);  // cannot be: no pool is that small
    --delivered_;
    return true;
  }
  auto room = pool_.acquire(octets, BufferPool::Purpose::kReply);
  if (!room) return false;
  const auto end = std::copy(head.begin(), head.end(), room->bytes().begin());
  std::copy(body.begin(), body.end(), end);
  (void)responder_.reply(token, std::move(*room), Clock::now());  // fails when the connection has ended
  --delivered_;
  return true;
}

bool ServerSession::try_reply(rpcrdma::CallToken token, const WholeMessage& whole) {
  if (!whole.in_place()) return try_reply(token, whole.bytes(), {});
  auto room = whole.put_into(pool_, BufferPool::Purpose::kReply);
  if (!room) return false;
  (void)responder_.reply(token, std::move(*room), Clock::now());  // fails when the connection has ended
  --delivered_;
  return true;
}

void ServerSession::pay_owed() {
  while (!owed_.empty() && try_reply(owed_.front().token, owed_.front().reply)) owed_.pop_front();
}

void ServerSession::give_back(rpcrdma::Buffer&& buffer) noexcept {
  bool wanted = false;
  {
    const std::lock_guard lock(mu_);
    buffer.reset();
    // Calls whose chunks may wait for memory, and Replies that are owed.
    wanted = !over_ && (!owed_.empty() || responder_.outstanding_calls() > delivered_);
  }
  if (wanted) turn_later();
}

void ServerSession::finish() {
  if (std::exchange(over_, true)) return;
  timer_.cancel();
  channel_->close();
  while (feed()) {
  }
  responder_.on_disconnect();
  Work work;
  while (auto event = responder_.poll_event()) {  // Replies that came before the end
    auto* reply = std::get_if<Responder::BackwardReply>(&*event);
    if (reply != nullptr) end_backward(reply->xid, {}, std::move(reply->message), work);
  }
  for (auto& told : work.told) boost::asio::post(io_, std::move(told));
  owed_.clear();
  for (auto& [xid, done] : backward_) {
    boost::asio::post(io_, [done = std::move(done)] { done(make_error(Errc::kConnectionLost), {}); });
  }
  backward_.clear();
  boost::asio::post(io_, [core = core_, self = shared_from_this()] {
    if (const auto alive = core.lock()) alive->remove(self.get());
  });
}

void ServerSession::close() {
  const std::lock_guard lock(mu_);
  finish();
}

}  // namespace iwarp::rpc
