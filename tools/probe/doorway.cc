#include "tools/probe/doorway.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <stdexcept>

#include "iwarp/cm/description.h"

namespace iwarp::tools::probe {
namespace {

using Clock = std::chrono::steady_clock;

sigset_t ending_signals() {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGINT);
  ::sigaddset(&set, SIGTERM);
  return set;
}

int milliseconds_to(std::optional<TimePoint> deadline) {
  if (!deadline) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*deadline - Clock::now()).count();
  return left > 0 ? static_cast<int>(left) : 0;
}

}  // namespace

Doorway::Doorway(const tcp::endpoint& at) {
  const auto failed = [&] {
    const std::string cause = std::strerror(errno);
    if (fd_ >= 0) ::close(fd_);
    throw std::runtime_error("cannot listen on " + cm::to_string(at) + ": " + cause);
  };
  fd_ = ::socket(at.protocol().family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd_ < 0) failed();
  const int on = 1, off = 0;
  (void)::setsockopt(fd_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (at.address().is_v6()) (void)::setsockopt(fd_, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  if (::bind(fd_, at.data(), static_cast<socklen_t>(at.size())) != 0) failed();
  if (::listen(fd_, SOMAXCONN) != 0) failed();
  const sigset_t set = ending_signals();
  if (::sigprocmask(SIG_BLOCK, &set, nullptr) != 0) failed();
  signals_ = ::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  if (signals_ < 0) failed();
}

Doorway::~Doorway() {
  ::close(fd_);
  // What has come is taken, or it would end the process when it is unblocked.
  signalfd_siginfo come;
  while (::read(signals_, &come, sizeof come) > 0) {
  }
  ::close(signals_);
  const sigset_t set = ending_signals();
  (void)::sigprocmask(SIG_UNBLOCK, &set, nullptr);
}

Doorway::tcp::endpoint Doorway::local() const {
  tcp::endpoint at;
  auto size = static_cast<socklen_t>(at.capacity());
  if (::getsockname(fd_, at.data(), &size) == 0) at.resize(size);
  return at;
}

Doorway::Came Doorway::accept(Socket& into, std::string& peer, std::optional<TimePoint> deadline,
                              const cm::TapMaker& tap_maker) {
  for (;;) {
    std::array<pollfd, 2> p{pollfd{fd_, POLLIN, 0}, pollfd{signals_, POLLIN, 0}};
    const int n = ::poll(p.data(), p.size(), milliseconds_to(deadline));
    if (n < 0 && errno == EINTR) continue;
    if (n == 0) return Came::kNobody;
    if (p[1].revents != 0) return Came::kInterrupted;
    tcp::endpoint from;
    auto size = static_cast<socklen_t>(from.capacity());
    const int fd = ::accept4(fd_, from.data(), &size, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0) {
      from.resize(size);
      peer = cm::to_string(from);
      into.adopt(fd, from, tap_maker);
      return Came::kSomebody;
    }
    // Others: the peer has gone before it was accepted.
    if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
      throw std::runtime_error(std::string("cannot accept a connection: ") + std::strerror(errno));
  }
}

}  // namespace iwarp::tools::probe
