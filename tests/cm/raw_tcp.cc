#include "tests/cm/raw_tcp.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <stdexcept>
#include <system_error>

namespace iwarp::test {
namespace {

[[noreturn]] void fail(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_port = htons(port);
  a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return a;
}

bool ready(int fd, short events, int limit_ms) {
  pollfd p{fd, events, 0};
  return ::poll(&p, 1, limit_ms) == 1;
}

}  // namespace

RawTcp& RawTcp::operator=(RawTcp&& other) noexcept {
  if (this != &other) {
    close();
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}

RawTcp RawTcp::connect(std::uint16_t port) {
  RawTcp s(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in to = loopback(port);
  if (s.fd_ < 0 || ::connect(s.fd_, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) fail("connect");
  return s;
}

bool RawTcp::send(ConstBytes bytes) {
  while (!bytes.empty()) {
    if (!ready(fd_, POLLOUT, 30'000)) return false;
    const ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  return true;
}

Bytes RawTcp::read_some(std::size_t n, int limit_ms) {
  if (!ready(fd_, POLLIN, limit_ms)) return {};
  Bytes out(n);
  const ssize_t got = ::recv(fd_, out.data(), n, MSG_DONTWAIT);
  out.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return out;
}

Bytes RawTcp::read(std::size_t n, int limit_ms) {
  Bytes out;
  while (out.size() < n) {
    const Bytes more = read_some(n - out.size(), limit_ms);
    if (more.empty()) break;
    out = std::move(out) + more;
  }
  return out;
}

RawTcp::End RawTcp::end(int limit_ms) {
  Bytes sink(64 * 1024);
  for (int i = 0; i < 10'000; ++i) {
    if (!ready(fd_, POLLIN, limit_ms)) return End::kTimeout;
    const ssize_t n = ::recv(fd_, sink.data(), sink.size(), MSG_DONTWAIT);
    if (n == 0) return End::kFin;
    if (n < 0 && errno != EAGAIN) return End::kReset;
  }
  return End::kTooMuch;
}

void RawTcp::shutdown_write() {
  ::shutdown(fd_, SHUT_WR);
}

void RawTcp::close() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

void RawTcp::reset() {
  const linger l{1, 0};
  if (::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &l, sizeof l) != 0) fail("SO_LINGER");
  close();
}

RawListener::RawListener(int backlog) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in at = loopback(0);
  socklen_t size = sizeof at;
  if (fd_ < 0 || ::bind(fd_, reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0 || ::listen(fd_, backlog) != 0 ||
      ::getsockname(fd_, reinterpret_cast<sockaddr*>(&at), &size) != 0) {
    fail("listen");
  }
  port_ = ntohs(at.sin_port);
}

RawListener::~RawListener() {
  ::close(fd_);
}

bool RawListener::anybody(int within_ms) {
  return ready(fd_, POLLIN, within_ms);
}

RawTcp RawListener::accept(int limit_ms) {
  if (!anybody(limit_ms)) throw std::runtime_error("nobody connected");
  const int fd = ::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC);
  if (fd < 0) fail("accept");
  return RawTcp(fd);
}

mpa::StartupFrame good_request(ConstBytes private_data) {
  mpa::StartupFrame f;
  f.crc = f.enhanced = true;
  f.enhanced_data = {.peer_to_peer = true, .rtr_write = true, .rtr_read = true, .ird = 8, .ord = 8};
  f.private_data = private_data;
  return f;
}

mpa::StartupFrame refused_request() {
  mpa::StartupFrame f;
  f.crc = true;
  f.revision = 0;
  return f;
}

mpa::StartupFrame good_reply(ConstBytes private_data) {
  mpa::StartupFrame f = good_request(private_data);
  f.is_reply = true;
  return f;
}

Bytes octets(const mpa::StartupFrame& frame) {
  Bytes out(frame.size());
  frame.write_to(out);
  return out;
}

FrameRead read_frame(RawTcp& from, bool reply) {
  FrameRead r;
  r.bytes = from.read(mpa::kStartupHeaderBytes);
  if (r.bytes.size() < mpa::kStartupHeaderBytes) return r;
  const std::size_t private_bytes =
      std::to_integer<std::size_t>(r.bytes[18]) * 256 + std::to_integer<std::size_t>(r.bytes[19]);
  r.bytes = std::move(r.bytes) + from.read(private_bytes);
  const auto parsed = reply ? mpa::parse_reply(r.bytes) : mpa::parse_request(r.bytes);
  if (const auto* p = std::get_if<mpa::StartupFrame::Parsed>(&parsed)) {
    r.frame = p->frame;
    r.complete = true;
  }
  return r;
}

}  // namespace iwarp::test
