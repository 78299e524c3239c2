// Sending and receiving.
#include <cerrno>
#include <climits>

#include "dropin/rdmacm/entry.h"
#include "dropin/rsocket/socket.h"

namespace iwarp::dropin::rsockets {
namespace {

using rdmacm::fail;

// What a socket of TCP has, and this has not.
constexpr int kUnknownFlags = MSG_OOB | MSG_ERRQUEUE;

// A place in a list of pieces, which moves on.
class Cursor {
 public:
  explicit Cursor(std::span<const iovec> pieces) : rest_(pieces) { skip_empty(); }

  [[nodiscard]] bool at_end() const { return rest_.empty(); }
  // What is left of the present piece.
  [[nodiscard]] MutBytes now() const {
    return {static_cast<std::byte*>(rest_.front().iov_base) + done_, rest_.front().iov_len - done_};
  }
  void advance(std::size_t octets) {
    done_ += octets;
    if (done_ < rest_.front().iov_len) return;
    rest_ = rest_.subspan(1);
    done_ = 0;
    skip_empty();
  }

 private:
  void skip_empty() {
    while (!rest_.empty() && rest_.front().iov_len == 0) rest_ = rest_.subspan(1);
  }

  std::span<const iovec> rest_;
  std::size_t done_ = 0;
};

bool too_long(std::span<const iovec> pieces) {
  std::size_t total = 0;
  for (const iovec& piece : pieces)
    if (__builtin_add_overflow(total, piece.iov_len, &total) || total > SSIZE_MAX) return true;
  return false;
}

// What was done before it failed is told first.
ssize_t result(std::size_t done, int error) {
  return done > 0 ? static_cast<ssize_t>(done) : fail(error);
}

}  // namespace

ssize_t Socket::send(std::span<const iovec> pieces, int flags) {
  if ((flags & kUnknownFlags) != 0) return fail(EOPNOTSUPP);
  if (too_long(pieces)) return fail(EINVAL);
  Turn turn(*this);
  if (const int error = await_connection(turn, flags); error != 0) return fail(error);
  std::size_t done = 0;
  bool driven = false;
  for (Cursor at(pieces); !at.at_end();) {
    if (state_ == State::kClosed) return result(done, EBADF);
    std::size_t sent = stream_->send(at.now());
    if (sent == 0) {
      turn.process();
      sent = stream_->send(at.now());
    }
    if (sent > 0) {
      at.advance(sent);
      done += sent;
      continue;
    }
    if (const int error = stream_->why_not_send(); error != 0) {
      const int cause = stream_->take_error();
      return result(done, cause != 0 && error != EPIPE ? cause : error);
    }
    if (waits(flags)) {
      if (!turn.wait()) return result(done, EINTR);
    } else {
      if (done > 0 || driven) return result(done, EAGAIN);
      driven = true;
      turn.drive();
    }
  }
  return static_cast<ssize_t>(done);
}

ssize_t Socket::receive(std::span<const iovec> pieces, int flags) {
  if ((flags & kUnknownFlags) != 0) return fail(EOPNOTSUPP);
  if (too_long(pieces)) return fail(EINVAL);
  const bool peek = (flags & MSG_PEEK) != 0, all = (flags & MSG_WAITALL) != 0 && !peek;
  Turn turn(*this);
  if (const int error = await_connection(turn, flags); error != 0) return fail(error);
  std::size_t done = 0;
  bool driven = false;
  for (Cursor at(pieces); !at.at_end();) {
    if (state_ == State::kClosed) return result(done, EBADF);
    const std::size_t skip = peek ? done : 0;
    if (stream_->readable() == skip) turn.process();
    if (const std::size_t got = stream_->peek(at.now(), skip); got > 0) {
      if (!peek) stream_->read(got);
      at.advance(got);
      done += got;
      continue;
    }
    if (done > 0 && !all) break;
    if (stream_->at_end()) {
      if (const int error = done == 0 ? stream_->take_error() : 0; error != 0) return fail(error);
      break;
    }
    if (done > 0) turn.process();  // the peer may go on where this was read
    if (waits(flags)) {
      if (!turn.wait()) return result(done, EINTR);
    } else {
      if (done > 0 || driven) return result(done, EAGAIN);
      driven = true;
      turn.drive();
    }
  }
  if (done > 0 && !peek) turn.process();
  return static_cast<ssize_t>(done);
}

}  // namespace iwarp::dropin::rsockets
