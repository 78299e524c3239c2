// Listening, and the connections that come.
#include <algorithm>
#include <cerrno>

#include "dropin/rdmacm/address.h"
#include "dropin/rdmacm/bind.h"
#include "dropin/rdmacm/entry.h"
#include "dropin/rsocket/socket.h"
#include "dropin/verbs/interface.h"
#include "dropin/verbs/settings.h"

namespace iwarp::dropin::rsockets {
namespace {

using boost::asio::ip::tcp;
using rdmacm::fail;

constexpr int kMostBacklog = 4096;
// Of TCP, where nobody is told: who is left out there tries again a second later.
constexpr int kLeastTcpBacklog = 128;
// Whose startup is under way: a peer that asks for peer-to-peer and then says nothing takes its place for 10 s.
constexpr std::size_t kMostArriving = 128;

}  // namespace

int Socket::listen(int backlog) {
  const Turn turn(*this);
  backlog_ = static_cast<std::size_t>(std::clamp(backlog, 1, kMostBacklog));
  if (state_ == State::kListening) {
    wait_for_request();
    return 0;
  }
  if (state_ == State::kIdle) {
    const Endpoint any = local_;
    bound_ = rdmacm::bind_socket(any, options_.v6_only, local_);
    if (!bound_) return -1;
    state_ = State::kBound;
  }
  if (state_ != State::kBound) return fail(EINVAL);
  const int most = std::max(static_cast<int>(backlog_), kLeastTcpBacklog);
  cm::ListenOptions options;
  options.policy = startup_policy(settings());
  options.backlog = most;
  // The application sees errno, which the library tells in words only.
  if (::listen(bound_.get(), most) != 0) return -1;
  tcp::acceptor acceptor(engine().io());
  boost::system::error_code failed;
  acceptor.assign(local_.protocol(), bound_.get(), failed);
  if (failed) return fail(failed.value());
  (void)bound_.release();
  auto listener = cm::Listener::listen(engine(), std::move(acceptor), options);
  if (!listener) {
    state_ = State::kFailed;  // the port went with the attempt
    return fail(EADDRINUSE);
  }
  listener_ = std::move(listener).value();
  state_ = State::kListening;
  wait_for_request();
  return 0;
}

// Those who come when the backlog is full wait in the listener.
void Socket::wait_for_request() {
  if (asked_ || state_ != State::kListening) return;
  if (arriving_ >= kMostArriving || arrived_.size() >= backlog_) return;
  asked_ = true;
  listener_->accept([weak = weak_from_this()](const Error& error, std::unique_ptr<cm::ConnectRequest> request) {
    const auto self = weak.lock();
    if (self == nullptr) return;
    if (error || request == nullptr) {
      const Turn turn(*self);
      self->asked_ = false;
      return;
    }
    try {
      self->on_request(std::move(request));
    } catch (const std::exception&) {  // no memory, no descriptor: the peer is rejected
    }
    const Turn turn(*self);
    self->asked_ = false;
    self->wait_for_request();
  });
}

void Socket::on_request(std::unique_ptr<cm::ConnectRequest> request) {
  const auto peer = ConnectionData::parse(request->private_data());
  if (!peer) return request->reject();
  const auto child = std::make_shared<Socket>(family_, false);
  {
    const Turn turn(*this);
    if (state_ != State::kListening) return;  // rejected
    child->options_ = options_;
    ++arriving_;
  }
  child->options_.nonblocking = false;
  const auto arrived = [weak = weak_from_this(), child](bool well) {
    const auto self = weak.lock();
    if (self == nullptr) return;
    Turn turn(*self);
    --self->arriving_;
    if (well && self->state_ == State::kListening) {
      self->arrived_.push_back(child);
      turn.changed();
    }
    self->wait_for_request();
  };
  cm::ConnectRequest::AcceptOptions options;
  options.mpa = stream_options(settings());
  try {
    child->make_stream();
    child->stream_->set_peer(*peer);
    const auto own = child->stream_->connection_data().to_bytes();
    options.private_data.assign(own.begin(), own.end());
  } catch (...) {
    arrived(false);
    throw;
  }
  child->state_ = State::kConnecting;
  child->told_connected_ = true;
  child->local_ = request->local();
  child->peer_ = request->remote();
  const std::shared_ptr<cm::ConnectRequest> shared = std::move(request);
  shared->accept(child->stream_->queue_pair(), options,
                 [shared, child, arrived](const Error& error, const std::shared_ptr<cm::Connection>& connection) {
                   child->on_accepted(error, connection);
                   arrived(!error);
                 });
}

void Socket::on_accepted(const Error& error, const std::shared_ptr<cm::Connection>& connection) {
  Turn turn(*this);
  turn.changed();
  if (error) {
    state_ = State::kFailed;
    return;
  }
  state_ = State::kConnected;
  connection_ = connection;
  stream_->open();
  watch_end();
}

std::shared_ptr<Socket> Socket::accept() {
  Turn turn(*this);
  for (;;) {
    if (state_ != State::kListening) {
      errno = state_ == State::kClosed ? EBADF : EINVAL;
      return nullptr;
    }
    if (!arrived_.empty()) break;
    if (!waits(0)) {
      errno = EAGAIN;
      return nullptr;
    }
    if (!turn.wait()) return nullptr;
  }
  auto first = std::move(arrived_.front());
  arrived_.pop_front();
  wait_for_request();
  return first;
}

void Socket::give_back(std::shared_ptr<Socket> accepted) {
  Turn turn(*this);
  if (state_ != State::kListening) return;
  arrived_.push_front(std::move(accepted));
  turn.changed();
}

}  // namespace iwarp::dropin::rsockets
