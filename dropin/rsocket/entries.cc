// The calls of librdmacm.so.1 that programs know: descriptors, and the C side of Socket.
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/select.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdarg>
#include <vector>

#include "dropin/rdmacm/entry.h"
#include "dropin/rsocket/address.h"
#include "dropin/rsocket/poll.h"
#include "dropin/rsocket/table.h"

namespace iwarp::dropin::rsockets {
namespace {

using rdmacm::fail;
using rdmacm::guarded;

// What `act` gives for the socket; -1, with errno. Else errno is as it was: rstream looks at it where it receives
// nothing.
template <class Act>
auto with(int descriptor, const Act& act) noexcept {
  using Result = decltype(act(std::declval<Socket&>()));
  const int before = errno;
  const Result result = guarded([&]() -> Result {
    const auto socket = table().find(descriptor);
    return socket != nullptr ? act(*socket) : Result(-1);
  });
  if (result != Result(-1)) errno = before;
  return result;
}

iovec piece(const void* octets, std::size_t size) {
  return {const_cast<void*>(octets), size};
}

ssize_t send_pieces(int descriptor, const iovec* pieces, std::size_t count, int flags) {
  if (count > IOV_MAX) return fail(EMSGSIZE);
  return with(descriptor, [&](Socket& s) { return s.send({pieces, count}, flags); });
}

ssize_t receive_pieces(int descriptor, const iovec* pieces, std::size_t count, int flags) {
  if (count > IOV_MAX) return fail(EMSGSIZE);
  return with(descriptor, [&](Socket& s) { return s.receive({pieces, count}, flags); });
}

int make(int domain, int type, int protocol) {
  const int kind = type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (domain != AF_INET && domain != AF_INET6) return fail(EAFNOSUPPORT);
  if (kind != SOCK_STREAM || (protocol != 0 && protocol != IPPROTO_TCP)) return fail(EPROTONOSUPPORT);
  return table().add(std::make_shared<Socket>(domain, (type & SOCK_NONBLOCK) != 0));
}

int accept_one(Socket& listener, sockaddr* address, socklen_t* size) {
  auto accepted = listener.accept();
  if (accepted == nullptr) return -1;
  const auto peer = accepted->peer_name();
  int descriptor = -1;
  try {
    descriptor = table().add(accepted);
  } catch (...) {
    listener.give_back(std::move(accepted));
    throw;
  }
  if (address != nullptr && peer) (void)give_endpoint(*peer, address, size);
  return descriptor;
}

// One set of select(2).
struct Set {
  fd_set* set;
  short events;  // of poll(2) that are asked for
  short tells;   // that it is told of
};

int select_ready(int count, fd_set* readable, fd_set* writable, fd_set* exceptional, timeval* timeout) {
  if (count < 0 || count > FD_SETSIZE) return fail(EINVAL);
  if (timeout != nullptr && (timeout->tv_sec < 0 || timeout->tv_usec < 0)) return fail(EINVAL);
  const Set sets[] = {{readable, POLLIN, POLLIN | POLLHUP | POLLERR},
                      {writable, POLLOUT, POLLOUT | POLLERR},
                      {exceptional, POLLPRI, POLLPRI}};
  std::vector<pollfd> watched;
  for (int descriptor = 0; descriptor < count; ++descriptor) {
    pollfd one{.fd = descriptor, .events = 0, .revents = 0};
    for (const Set& s : sets)
      if (s.set != nullptr && FD_ISSET(descriptor, s.set)) one.events = static_cast<short>(one.events | s.events);
    if (one.events != 0) watched.push_back(one);
  }
  std::optional<std::chrono::nanoseconds> limit;
  if (timeout != nullptr) limit = std::chrono::seconds{timeout->tv_sec} + std::chrono::microseconds{timeout->tv_usec};
  if (poll(watched, limit) < 0) return -1;
  for (const pollfd& one : watched)
    if ((one.revents & POLLNVAL) != 0) return fail(EBADF);
  int found = 0;
  for (const Set& s : sets) {
    if (s.set == nullptr) continue;
    for (const pollfd& one : watched) {
      if (!FD_ISSET(one.fd, s.set)) continue;
      if ((one.revents & s.tells) != 0) {
        ++found;
      } else {
        FD_CLR(one.fd, s.set);
      }
    }
  }
  return found;
}

int control(int descriptor, int command, int argument) {
  return with(descriptor, [&](Socket& s) {
    switch (command) {
      case F_GETFL:
        return O_RDWR | (s.nonblocking() ? O_NONBLOCK : 0);
      case F_SETFL:
        s.set_nonblocking((argument & O_NONBLOCK) != 0);
        return 0;
      case F_GETFD:
        return ::fcntl(descriptor, F_GETFD);
      case F_SETFD:
        return ::fcntl(descriptor, F_SETFD, argument);
      default:
        return fail(EOPNOTSUPP);
    }
  });
}

}  // namespace
}  // namespace iwarp::dropin::rsockets

using namespace iwarp::dropin::rsockets;
using iwarp::dropin::rdmacm::fail;
using iwarp::dropin::rdmacm::guarded;

IWARP_ENTRY int iwarp_rsocket(int domain, int type, int protocol) {
  return guarded([&] { return make(domain, type, protocol); });
}

IWARP_ENTRY int iwarp_rbind(int descriptor, const sockaddr* address, socklen_t size) {
  return with(descriptor, [&](Socket& s) {
    const auto local = endpoint_given(address, size);
    return local ? s.bind(*local) : -1;
  });
}

IWARP_ENTRY int iwarp_rlisten(int descriptor, int backlog) {
  return with(descriptor, [&](Socket& s) { return s.listen(backlog); });
}

IWARP_ENTRY int iwarp_raccept(int descriptor, sockaddr* address, socklen_t* size) {
  return with(descriptor, [&](Socket& s) { return accept_one(s, address, size); });
}

IWARP_ENTRY int iwarp_rconnect(int descriptor, const sockaddr* address, socklen_t size) {
  return with(descriptor, [&](Socket& s) {
    const auto peer = endpoint_given(address, size);
    return peer ? s.connect(*peer) : -1;
  });
}

IWARP_ENTRY int iwarp_rshutdown(int descriptor, int how) {
  return with(descriptor, [&](Socket& s) { return s.shut(how); });
}

IWARP_ENTRY int iwarp_rclose(int descriptor) {
  return guarded([&] {
    const auto socket = table().remove(descriptor);
    if (socket == nullptr) return -1;
    socket->close();
    (void)::close(descriptor);
    return 0;
  });
}

IWARP_ENTRY ssize_t iwarp_rsend(int descriptor, const void* octets, std::size_t size, int flags) {
  const iovec one = piece(octets, size);
  return send_pieces(descriptor, &one, 1, flags);
}

// The peer is the one that it is connected to, as on TCP.
IWARP_ENTRY ssize_t iwarp_rsendto(int descriptor, const void* octets, std::size_t size, int flags,
                                  const sockaddr* /*address*/, socklen_t /*address_size*/) {
  return iwarp_rsend(descriptor, octets, size, flags);
}

IWARP_ENTRY ssize_t iwarp_rsendmsg(int descriptor, const msghdr* message, int flags) {
  if (message == nullptr) return fail(EFAULT);
  if (message->msg_control != nullptr && message->msg_controllen != 0) return fail(EOPNOTSUPP);
  return send_pieces(descriptor, message->msg_iov, message->msg_iovlen, flags);
}

IWARP_ENTRY ssize_t iwarp_rwrite(int descriptor, const void* octets, std::size_t size) {
  return iwarp_rsend(descriptor, octets, size, 0);
}

IWARP_ENTRY ssize_t iwarp_rwritev(int descriptor, const iovec* pieces, int count) {
  return count < 0 ? fail(EINVAL) : send_pieces(descriptor, pieces, static_cast<std::size_t>(count), 0);
}

IWARP_ENTRY ssize_t iwarp_rrecv(int descriptor, void* octets, std::size_t size, int flags) {
  const iovec one = piece(octets, size);
  return receive_pieces(descriptor, &one, 1, flags);
}

IWARP_ENTRY ssize_t iwarp_rrecvfrom(int descriptor, void* octets, std::size_t size, int flags, sockaddr* address,
                                    socklen_t* address_size) {
  const iovec one = piece(octets, size);
  const ssize_t got = receive_pieces(descriptor, &one, 1, flags);
  if (got < 0 || address == nullptr) return got;
  return with(descriptor, [&](Socket& s) {
    if (const auto peer = s.peer_name()) (void)give_endpoint(*peer, address, address_size);
    return got;
  });
}

IWARP_ENTRY ssize_t iwarp_rrecvmsg(int descriptor, msghdr* message, int flags) {
  if (message == nullptr) return fail(EFAULT);
  if (message->msg_control != nullptr && message->msg_controllen != 0) return fail(EOPNOTSUPP);
  message->msg_flags = 0;
  return receive_pieces(descriptor, message->msg_iov, message->msg_iovlen, flags);
}

IWARP_ENTRY ssize_t iwarp_rread(int descriptor, void* octets, std::size_t size) {
  return iwarp_rrecv(descriptor, octets, size, 0);
}

IWARP_ENTRY ssize_t iwarp_rreadv(int descriptor, const iovec* pieces, int count) {
  return count < 0 ? fail(EINVAL) : receive_pieces(descriptor, pieces, static_cast<std::size_t>(count), 0);
}

// Programs of rdma_cm call it as well, without a single rsocket: then it is poll(2), and a cancellation point as that.
IWARP_ENTRY int iwarp_rpoll(pollfd* watched, nfds_t count, int timeout) {
  const std::span<pollfd> all(watched, count);
  bool plain = true;
  if (guarded([&] { return (plain = table().find(all).empty()) ? 0 : 1; }) < 0) return -1;
  if (plain) return ::poll(watched, count, timeout);
  std::optional<std::chrono::nanoseconds> limit;
  if (timeout >= 0) limit = std::chrono::milliseconds{timeout};
  return guarded([&] { return iwarp::dropin::rsockets::poll(all, limit); });
}

IWARP_ENTRY int iwarp_rselect(int count, fd_set* readable, fd_set* writable, fd_set* exceptional, timeval* timeout) {
  return guarded([&] { return select_ready(count, readable, writable, exceptional, timeout); });
}

IWARP_ENTRY int iwarp_rgetpeername(int descriptor, sockaddr* address, socklen_t* size) {
  return with(descriptor, [&](Socket& s) {
    const auto peer = s.peer_name();
    if (!peer) return fail(ENOTCONN);
    return give_endpoint(*peer, address, size) ? 0 : -1;
  });
}

IWARP_ENTRY int iwarp_rgetsockname(int descriptor, sockaddr* address, socklen_t* size) {
  return with(descriptor, [&](Socket& s) { return give_endpoint(s.own_name(), address, size) ? 0 : -1; });
}

IWARP_ENTRY int iwarp_rsetsockopt(int descriptor, int level, int name, const void* value, socklen_t size) {
  return with(descriptor, [&](Socket& s) { return s.set_option(level, name, value, size); });
}

IWARP_ENTRY int iwarp_rgetsockopt(int descriptor, int level, int name, void* value, socklen_t* size) {
  return with(descriptor, [&](Socket& s) { return s.get_option(level, name, value, size); });
}

IWARP_ENTRY int iwarp_rfcntl(int descriptor, int command, ...) {
  std::va_list arguments;
  va_start(arguments, command);
  const int argument = command == F_SETFL || command == F_SETFD ? va_arg(arguments, int) : 0;
  va_end(arguments);
  return control(descriptor, command, argument);
}

IWARP_ENTRY off_t iwarp_riomap(int descriptor, void* memory, std::size_t size, int protection, int /*flags*/,
                               off_t offset) {
  return with(descriptor, [&](Socket& s) { return s.map(memory, size, protection, offset); });
}

IWARP_ENTRY int iwarp_riounmap(int descriptor, void* memory, std::size_t size) {
  return with(descriptor, [&](Socket& s) { return s.unmap(memory, size); });
}

IWARP_ENTRY std::size_t iwarp_riowrite(int descriptor, const void* octets, std::size_t size, off_t offset, int flags) {
  return static_cast<std::size_t>(
      with(descriptor, [&](Socket& s) { return s.write_mapped(octets, size, offset, flags); }));
}
