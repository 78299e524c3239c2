#include "dropin/rsocket/socket.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <chrono>
#include <thread>

#include "dropin/verbs/interface.h"

namespace iwarp::dropin::rsockets {
namespace {

// A thread that waits moves the octets itself for so long before it sleeps: handing them from thread to thread costs
// more. No signal ends it meanwhile.
constexpr std::chrono::microseconds kLeads{200};
// Looks in vain in a row, of a thread, behind which it gives its processor away: where programs spin on all of them,
// the engine's own thread else runs when their time slice is over.
constexpr unsigned kVainPolls = 16;

thread_local unsigned vain_polls = 0;

}  // namespace

Socket::Socket(int family, bool nonblocking) : family_(family) {
  options_.nonblocking = nonblocking;
  const auto any = family == AF_INET6 ? boost::asio::ip::tcp::v6() : boost::asio::ip::tcp::v4();
  local_ = peer_ = Endpoint(any, 0);
}

Socket::~Socket() = default;

Socket::Turn::~Turn() {
  lock_.unlock();
  if (changed_) socket_.waiters_->wake();
}

void Socket::Turn::process() {
  seen_ = socket_.waiters_->wakes();  // before the look: what comes later wakes
  if (socket_.stream_ != nullptr && socket_.stream_->process()) changed_ = true;
}

void Socket::Turn::drive() {
  auto stream = socket_.stream_;
  if (stream == nullptr) return;
  lock_.unlock();
  engine().poll(stream->queue());
  stream.reset();
  if (++vain_polls % kVainPolls == 0) std::this_thread::yield();
  lock_.lock();
  process();
  if (changed_) vain_polls = 0;
}

bool Socket::Turn::wait() {
  const auto seen = seen_;
  const bool tell = std::exchange(changed_, false);
  lock_.unlock();
  bool woken = true;
  if (tell) {
    socket_.waiters_->wake();  // which makes this thread look again as well
  } else {
    const auto changed = [&] { return socket_.waiters_->wakes() != seen; };
    if (!engine().wait_until(changed, std::chrono::steady_clock::now() + kLeads)) woken = socket_.waiters_->sleep(seen);
  }
  const int error = errno;
  lock_.lock();
  seen_ = socket_.waiters_->wakes();
  errno = error;
  return woken;
}

void Socket::Turn::wait_until(TimePoint deadline) {
  const auto seen = seen_;
  lock_.unlock();
  if (std::exchange(changed_, false)) socket_.waiters_->wake();
  (void)engine().wait_until([&] { return socket_.waiters_->wakes() != seen; }, deadline);
  lock_.lock();
  seen_ = socket_.waiters_->wakes();
}

// What rings holds no socket, not even for a moment: where it is called the last reference must not go.
void Socket::make_stream() {
  auto ring = [weak = weak_from_this(), waiters = waiters_, &moves = engine()] {
    waiters->wake();
    moves.look_again();
    try {
      boost::asio::post(moves.io(), [weak] {
        if (const auto self = weak.lock()) self->rung();
      });
    } catch (const std::bad_alloc&) {  // the next call takes what has come
    }
  };
  stream_ = std::make_shared<Stream>(options_.sizes, std::move(ring));
}

void Socket::rung() {
  Turn turn(*this);
  turn.process();
}

bool Socket::waits(int flags) const {
  return !options_.nonblocking && (flags & MSG_DONTWAIT) == 0;
}

int Socket::await_connection(Turn& turn, int flags) {
  while (state_ == State::kConnecting) {
    if (!waits(flags)) return EAGAIN;
    if (!turn.wait()) return EINTR;
  }
  if (state_ == State::kConnected) return 0;
  if (state_ == State::kClosed) return EBADF;
  const int failure = take_failure();
  return failure != 0 ? failure : ENOTCONN;
}

bool Socket::nonblocking() {
  const std::lock_guard lock(mutex_);
  return options_.nonblocking;
}

void Socket::set_nonblocking(bool on) {
  const std::lock_guard lock(mutex_);
  options_.nonblocking = on;
}

Socket::Endpoint Socket::own_name() {
  const std::lock_guard lock(mutex_);
  return local_;
}

std::optional<Socket::Endpoint> Socket::peer_name() {
  const std::lock_guard lock(mutex_);
  if (state_ != State::kConnected) return std::nullopt;
  return peer_;
}

}  // namespace iwarp::dropin::rsockets
