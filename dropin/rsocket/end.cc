// Shutting down and closing.
#include <cerrno>
#include <chrono>

#include "dropin/rdmacm/entry.h"
#include "dropin/rsocket/socket.h"

namespace iwarp::dropin::rsockets {
namespace {

using rdmacm::fail;

// Until TCP has all that was sent, where SO_LINGER says nothing.
constexpr std::chrono::seconds kUsualLinger{60};
// For the peer to end the connection as well, so that a process that ends behind it takes nothing from the peer.
constexpr std::chrono::milliseconds kFarewell{500};
constexpr std::chrono::milliseconds kLook{10};

}  // namespace

int Socket::shut(int how) {
  if (how != SHUT_RD && how != SHUT_WR && how != SHUT_RDWR) return fail(EINVAL);
  Turn turn(*this);
  if (state_ != State::kConnected) return fail(state_ == State::kClosed ? EBADF : ENOTCONN);
  turn.process();
  stream_->shut(how != SHUT_WR, how != SHUT_RD);
  turn.changed();
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
      const auto connection = connection_;
      turn.lock().unlock();
      connection->disconnect();  // behind what was posted
      turn.lock().lock();
      const auto until = [&](TimePoint deadline, const auto& done) {
        for (auto now = std::chrono::steady_clock::now(); now < deadline; now = std::chrono::steady_clock::now()) {
          if (state_ != State::kConnected) return;  // closed twice
          turn.process();
          if (done() || stream_->over()) return;
          turn.wait_until(std::min(deadline, now + kLook));
        }
      };
      const auto now = std::chrono::steady_clock::now();
      const auto linger = options_.linger ? std::chrono::seconds(*options_.linger) : kUsualLinger;
      until(now + linger, [&] { return stream_->all_sent(); });
      until(std::min(now + linger, std::chrono::steady_clock::now() + kFarewell), [] { return false; });
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
