#include "bench/rpc_load/stream.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "bench/rpc_load/messages.h"

namespace iwarp::bench {
namespace {

::sockaddr_in loopback(std::uint16_t port) {
  ::sockaddr_in out{};
  out.sin_family = AF_INET;
  out.sin_port = htons(port);
  out.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return out;
}

}  // namespace

void die(const char* what) {
  std::fprintf(stderr, "bench_rpc_load: %s: %s\n", what, std::strerror(errno));
  std::exit(1);
}

int connect_to(std::uint16_t port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const auto to = loopback(port);
  if (fd < 0 || ::connect(fd, reinterpret_cast<const ::sockaddr*>(&to), sizeof to) != 0) die("connect");
  const int one = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  return fd;
}

int listen_on(std::uint16_t& port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int one = 1;
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  auto at = loopback(port);
  ::socklen_t size = sizeof at;
  if (fd < 0 || ::bind(fd, reinterpret_cast<const ::sockaddr*>(&at), sizeof at) != 0 || ::listen(fd, 64) != 0)
    die("listen");
  ::getsockname(fd, reinterpret_cast<::sockaddr*>(&at), &size);
  port = ntohs(at.sin_port);
  return fd;
}

bool write_all(int fd, std::vector<::iovec>& pieces) {
  constexpr std::size_t kMaxGather = 1024;
  std::size_t at = 0;
  while (at < pieces.size()) {
    ::msghdr message{};
    message.msg_iov = &pieces[at];
    message.msg_iovlen = std::min(kMaxGather, pieces.size() - at);
    const ::ssize_t sent = ::sendmsg(fd, &message, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return false;
    auto n = static_cast<std::size_t>(sent);
    while (n > 0 && n >= pieces[at].iov_len) n -= pieces[at++].iov_len;
    if (n == 0) continue;
    pieces[at].iov_base = static_cast<std::byte*>(pieces[at].iov_base) + n;
    pieces[at].iov_len -= n;
  }
  pieces.clear();
  return true;
}

ConstBytes RecordHeads::receive_some(int fd) {
  for (;;) {
    const ::ssize_t n = ::recv(fd, chunk_.data(), chunk_.size(), 0);
    if (n < 0 && errno == EINTR) continue;
    return ConstBytes(chunk_).first(n > 0 ? static_cast<std::size_t>(n) : 0);
  }
}

std::size_t RecordHeads::take(ConstBytes in) {
  const std::size_t want = seen_ < kMarkBytes ? kMarkBytes - seen_ : record_bytes() - seen_;
  const std::size_t n = std::min(want, in.size());
  if (seen_ < kept_) {
    const std::size_t keep = std::min(n, kept_ - seen_);
    std::copy_n(in.begin(), keep, head_.begin() + static_cast<std::ptrdiff_t>(seen_));
  }
  seen_ += n;
  return n;
}

bool RecordHeads::complete() const {
  return seen_ >= kMarkBytes && seen_ == record_bytes();
}

std::size_t RecordHeads::record_bytes() const {
  return kMarkBytes + (load_be<std::uint32_t>(head_) & 0x7FFFFFFF);
}

}  // namespace iwarp::bench
