#include "tools/perf/tcp_socket.h"

#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "iwarp/cm/socket_options.h"
#include "tools/perf/end.h"

namespace iwarp::tools::perf {
namespace {

using boost::asio::ip::tcp;

[[noreturn]] void fail(const char* what) {
  throw std::runtime_error(std::string("plain TCP: ") + what + ": " + std::strerror(errno));
}

void set(int fd, int level, int option, int value) {
  if (::setsockopt(fd, level, option, &value, sizeof value) != 0) fail("cannot set socket options");
}

void set_congestion_control(int fd, const std::string& name) {
  if (const auto ok = cm::set_congestion_control(fd, name); !ok)
    throw std::runtime_error("plain TCP: " + name + ": " + ok.error().why);
}

// After a call that failed: whether to try again.
bool again() {
  return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

}  // namespace

std::string congestion_control() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return "unknown";
  std::array<char, 17> name{};  // the kernel's names have 15 characters at most
  socklen_t size = name.size() - 1;
  const bool told = ::getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name.data(), &size) == 0;
  ::close(fd);
  return told ? name.data() : "unknown";
}

void give_up_vanished_peer(int descriptor) {
  constexpr int kIdleSeconds = 15;
  constexpr int kGiveUpMilliseconds = 60'000;
  set(descriptor, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(descriptor, IPPROTO_TCP, TCP_KEEPIDLE, kIdleSeconds);
  set(descriptor, IPPROTO_TCP, TCP_KEEPINTVL, kIdleSeconds);
  set(descriptor, IPPROTO_TCP, TCP_USER_TIMEOUT, kGiveUpMilliseconds);
}

TcpSocket::TcpSocket(int descriptor, bool spin, const std::atomic<bool>* stop)
    : fd_(descriptor), flags_(spin ? MSG_DONTWAIT : 0), stop_(stop) {
  set_nodelay(true);
  // A blocking call returns now and then, to see an interrupt or `stop`.
  const timeval patience{0, 200000};
  ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  ::setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
}

TcpSocket::TcpSocket(TcpSocket&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), flags_(other.flags_), stop_(other.stop_) {}

TcpSocket& TcpSocket::operator=(TcpSocket&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(flags_, other.flags_);
  std::swap(stop_, other.stop_);
  return *this;
}

TcpSocket::~TcpSocket() {
  if (fd_ >= 0) ::close(fd_);
}

TcpSocket TcpSocket::connect(const std::string& host, std::uint16_t port, bool spin, const std::string& congestion) {
  boost::asio::io_context io;
  const auto found = tcp::resolver(io).resolve(host, std::to_string(port));
  for (auto at = found.begin();;) {
    try {
      TcpSocket socket = connect(at->endpoint(), spin, congestion);
      give_up_vanished_peer(socket.fd_);
      return socket;
    } catch (const std::runtime_error&) {
      if (interrupted || ++at == found.end()) throw;
    }
  }
}

TcpSocket TcpSocket::connect(const tcp::endpoint& peer, bool spin, const std::string& congestion) {
  const int fd = ::socket(peer.protocol().family(), SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP);
  if (fd < 0) fail("socket");
  TcpSocket socket(fd, spin);
  set_congestion_control(fd, congestion);
  while (!socket.stopped() && ::connect(fd, peer.data(), static_cast<socklen_t>(peer.size())) != 0) {
    if (errno == EISCONN) break;  // a call before took longer than the socket's patience
    if (!again() && errno != EINPROGRESS && errno != EALREADY) fail("connect");
  }
  return socket;
}

TcpSocket TcpSocket::listen(const std::string& host, const std::string& congestion) {
  boost::asio::io_context io;
  tcp::acceptor acceptor(io, {boost::asio::ip::make_address(host), 0});
  set_congestion_control(acceptor.native_handle(), congestion);
  return {acceptor.release(), false};
}

TcpSocket TcpSocket::accept(bool spin, const std::atomic<bool>* stop) const {
  const int accepted = ::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC);
  if (accepted < 0) return {};
  return {accepted, spin, stop};
}

void TcpSocket::make_room() const {
  cm::make_room(fd_, cm::SocketOptions{}.receive_window);
}

bool TcpSocket::stopped() const {
  if (interrupted) throw std::runtime_error("interrupted");
  return stop_ != nullptr && *stop_;
}

tcp::endpoint TcpSocket::local() const {
  tcp::endpoint at;
  auto size = static_cast<socklen_t>(at.capacity());
  if (::getsockname(fd_, at.data(), &size) != 0) fail("getsockname");
  return at;
}

tcp::endpoint TcpSocket::peer() const {
  tcp::endpoint at;
  auto size = static_cast<socklen_t>(at.capacity());
  if (::getpeername(fd_, at.data(), &size) != 0) fail("getpeername");
  return at;
}

void TcpSocket::set_nodelay(bool on) const {
  const int value = on ? 1 : 0;
  ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &value, sizeof value);
}

std::size_t TcpSocket::send_some(const std::byte* data, std::size_t size) const {
  for (;;) {
    if (stopped()) throw Gone();
    const ssize_t n = ::send(fd_, data, size, flags_ | MSG_NOSIGNAL);
    if (n > 0) return static_cast<std::size_t>(n);
    if (n < 0 && (errno == EPIPE || errno == ECONNRESET)) throw Gone();
    if (n < 0 && !again()) fail("send");
  }
}

void TcpSocket::send_all(const std::byte* data, std::size_t size) const {
  while (size > 0) {
    const std::size_t n = send_some(data, size);
    data += n;
    size -= n;
  }
}

std::size_t TcpSocket::receive_some(std::byte* data, std::size_t size) const {
  while (!stopped()) {
    const ssize_t n = ::recv(fd_, data, size, flags_);
    if (n >= 0) return static_cast<std::size_t>(n);
    if (again()) continue;
    if (errno == ECONNRESET) return 0;
    fail("recv");
  }
  return 0;
}

bool TcpSocket::receive_all(std::byte* data, std::size_t size) const {
  while (size > 0) {
    const std::size_t n = receive_some(data, size);
    if (n == 0) return false;
    data += n;
    size -= n;
  }
  return true;
}

void TcpSocket::reset() {
  const linger now{1, 0};
  ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  ::close(std::exchange(fd_, -1));
}

}  // namespace iwarp::tools::perf
