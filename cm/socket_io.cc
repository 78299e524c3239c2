#include "iwarp/cm/socket_io.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace iwarp::cm {
namespace {

// What sendmsg() and recvmsg() take.
struct Message {
  template <class Span>
  explicit Message(std::span<const Span> pieces) {
    header.msg_iov = iovecs.data();
    header.msg_iovlen = std::min(pieces.size(), iovecs.size());
    for (std::size_t i = 0; i < header.msg_iovlen; ++i) {
      iovecs[i] = {const_cast<std::byte*>(pieces[i].data()), pieces[i].size()};  // NOLINT: iovec has no const form
      octets += pieces[i].size();
    }
  }
  std::array<iovec, kMaxPieces> iovecs;  // not initialised: it is large, and a message mostly small
  msghdr header{};
  std::size_t octets = 0;
};

Transfer result(ssize_t n, std::size_t asked) {
  if (n < 0) return {.error = errno};
  const auto moved = static_cast<std::size_t>(n);
  return {.n = moved, .whole = moved == asked};
}

}  // namespace

bool Transfer::would_block() const {
  return error == EAGAIN || error == EWOULDBLOCK;
}

std::optional<stream::TcpEnd> end_of(const Transfer& failed) {
  switch (failed.error) {
    case 0:
      return stream::TcpEnd::kFin;
    case ECONNRESET:
    case EPIPE:
      return stream::TcpEnd::kReset;
    case ETIMEDOUT:
    case EHOSTUNREACH:
    case ENETUNREACH:
      return stream::TcpEnd::kSilence;
    default:
      return std::nullopt;
  }
}

const char* cause_of(const Transfer& failed) {
  const char* text = ::strerrordesc_np(failed.error);
  return text != nullptr ? text : "TCP failed";
}

SocketEnd end_behind(int fd) {
  pollfd look{.fd = fd, .events = POLLRDHUP, .revents = 0};
  if (::poll(&look, 1, 0) <= 0) return {};
  SocketEnd end{.hung_up = (look.revents & POLLHUP) != 0, .fin = (look.revents & POLLRDHUP) != 0};
  if ((look.revents & POLLERR) == 0) return end;
  socklen_t bytes = sizeof end.error;
  if (::getsockopt(fd, SOL_SOCKET, SO_ERROR, &end.error, &bytes) != 0) end.error = errno;
  return end;
}

// A single piece takes the shorter way through the kernel, which shows in the latency of small messages.
Transfer send_pieces(int fd, std::span<const ConstBytes> pieces) {
  constexpr int kFlags = MSG_NOSIGNAL | MSG_DONTWAIT;
  if (pieces.size() == 1) return result(::send(fd, pieces[0].data(), pieces[0].size(), kFlags), pieces[0].size());
  const Message message(pieces);
  return result(::sendmsg(fd, &message.header, kFlags), message.octets);
}

Transfer receive_pieces(int fd, std::span<const MutBytes> pieces) {
  if (pieces.size() == 1) return result(::recv(fd, pieces[0].data(), pieces[0].size(), MSG_DONTWAIT), pieces[0].size());
  Message message(pieces);
  return result(::recvmsg(fd, &message.header, MSG_DONTWAIT), message.octets);
}

}  // namespace iwarp::cm
