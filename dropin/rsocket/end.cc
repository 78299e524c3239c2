// Shutting down and closing.
#include <algorithm>
#include <cerrno>
#include <chrono>

#include "dropin/rdmacm/entry.h"
#include "dropin/rsocket/socket.h"

namespace iwarp::dropin::rsockets {
namespace {

using rdmacm::fail;
using Clock = std::chrono::steady_clock;

// Until TCP has all that was sent, where SO_LINGER says nothing.
constexpr std::chrono::seconds kUsualLinger{60};
// For the peer to end the connection as well, so that a process that ends behind it takes nothing from the peer.
constexpr std::chrono::milliseconds kFarewell{500};
constexpr std::chrono::milliseconds kLook{10};

}  // namespace

// Also until somebody else closes it. Signals do not end it.
void Socket::linger_until(Turn& turn, TimePoint deadline, std::optional<std::uint64_t> completed) {
  for (auto now = Clock::now(); now < deadline; now = Clock::now()) {
    if (state_ != State::kConnected) return;
    turn.process();
    if (stream_->over() || (completed && stream_->completed() >= *completed)) return;
    turn.wait_until(std::min(deadline, now + kLook));
  }
}

TimePoint Socket::linger_deadline() const {
  return Clock::now() + (options_.linger ? std::chrono::seconds(*options_.linger) : kUsualLinger);
}

int Socket::shut(int how) {
  if (how != SHUT_RD && how != SHUT_WR && how != SHUT_RDWR) return fail(EINVAL);
  Turn turn(*this);
  if (state_ != State::kConnected) return fail(state_ == State::kClosed ? EBADF : ENOTCONN);
  turn.process();
  stream_->shut(how != SHUT_WR, how != SHUT_RD);
  turn.changed();
  // A program may end behind it.
  if (how != SHUT_RD) linger_until(turn, linger_deadline(), stream_->posted());
  return 0;
}

void Socket::close() {
  // These go without the lock.
  std::unique_ptr<cm::Listener> listener;
  std::deque<std::shared_ptr<Socket>> arrived;
  std::shared_ptr<cm::Canceller> canceller;
  std::shared_ptr<Stream> stream;
  {
    Turn turn(*this);
    turn.changed();
    if (state_ == State::kConnected && !stream_->over()) {
      turn.process();
      stream_->shut(true, true);
      const std::uint64_t posted = stream_->posted();
      const auto connection = connection_;
      turn.lock().unlock();
      connection->disconnect();  // behind what was posted
      turn.lock().lock();
      const TimePoint deadline = linger_deadline();
      linger_until(turn, deadline, posted);
      linger_until(turn, std::min(deadline, Clock::now() + kFarewell), std::nullopt);
    }
    state_ = State::kClosed;
    listener = std::move(listener_);
    arrived.swap(arrived_);
    canceller = std::move(canceller_);
    stream = std::move(stream_);
    connection_.reset();
    bound_ = {};
  }
  listener.reset();
  if (canceller != nullptr) canceller->cancel();
}

}  // namespace iwarp::dropin::rsockets
