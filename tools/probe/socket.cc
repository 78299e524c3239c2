#include "tools/probe/socket.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "iwarp/cm/socket_io.h"

namespace iwarp::tools::probe {
namespace {

using boost::asio::ip::tcp;
using Clock = std::chrono::steady_clock;

tcp::endpoint local_of(int fd, const tcp::endpoint& remote) {
  tcp::endpoint at = remote;
  auto size = static_cast<socklen_t>(at.capacity());
  return ::getsockname(fd, at.data(), &size) == 0 ? at : tcp::endpoint(remote.protocol(), 0);
}

}  // namespace

Socket::~Socket() {
  if (fd_ < 0) return;
  if (tap_ != nullptr && !ended_) tap_->sent_end(cm::ByteTap::End::kFin, Clock::now());
  ::close(fd_);
}

bool Socket::wait(short events, TimePoint deadline) const {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd p{fd_, events, 0};
    const int n = ::poll(&p, 1, left > 0 ? static_cast<int>(left) : 0);
    if (n == 1) return true;
    if (n == 0 || errno != EINTR) return false;
  }
}

bool Socket::connect(const tcp::endpoint& to, TimePoint deadline, const cm::TapMaker& tap_maker, std::string& why) {
  fd_ = ::socket(to.protocol().family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  int error = fd_ < 0 ? errno : 0;
  if (error == 0 && ::connect(fd_, to.data(), static_cast<socklen_t>(to.size())) != 0) error = errno;
  if (error == EINPROGRESS) {
    socklen_t size = sizeof error;
    if (!wait(POLLOUT, deadline)) {
      error = ETIMEDOUT;
    } else if (::getsockopt(fd_, SOL_SOCKET, SO_ERROR, &error, &size) != 0) {
      error = errno;
    }
  }
  if (error != 0) {
    why = std::strerror(error);
    return false;
  }
  const int on = 1;
  (void)::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (tap_maker) tap_ = tap_maker({.local = local_of(fd_, to), .remote = to, .initiator = true});
  return true;
}

void Socket::adopt(int fd, const tcp::endpoint& from, const cm::TapMaker& tap_maker) {
  fd_ = fd;
  const int on = 1;
  (void)::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (tap_maker) tap_ = tap_maker({.local = local_of(fd_, from), .remote = from, .initiator = false});
}

bool Socket::send(ConstBytes octets, TimePoint deadline) {
  while (!octets.empty()) {
    const ssize_t n = ::send(fd_, octets.data(), octets.size(), MSG_NOSIGNAL);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
      if (!wait(POLLOUT, deadline)) return false;
      continue;
    }
    if (n < 0) return false;  // the end shows when we read
    const auto taken = octets.first(static_cast<std::size_t>(n));
    if (tap_ != nullptr) tap_->sent({taken}, Clock::now());
    octets = octets.subspan(taken.size());
  }
  return true;
}

Socket::Read Socket::read_some(std::vector<std::byte>& into, std::size_t max, TimePoint deadline) {
  std::array<std::byte, 4096> some;
  for (;;) {
    if (!wait(POLLIN, deadline)) return Read::kTimeout;
    const ssize_t n = ::recv(fd_, some.data(), std::min(max, some.size()), 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (n > 0) {
      const auto got = ConstBytes(some).first(static_cast<std::size_t>(n));
      if (tap_ != nullptr) tap_->received({got}, Clock::now());
      into.insert(into.end(), got.begin(), got.end());
      return Read::kData;
    }
    if (const auto how = cm::end_of({.error = n == 0 ? 0 : errno}); how && tap_ != nullptr)
      tap_->received_end(*how, Clock::now());
    ended_ = n < 0;
    return n == 0 ? Read::kFin : Read::kReset;
  }
}

}  // namespace iwarp::tools::probe
