// rgetsockopt() and rsetsockopt().
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <rdma/rsocket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "dropin/rdmacm/entry.h"
#include "dropin/rsocket/socket.h"

namespace iwarp::dropin::rsockets {
namespace {

using rdmacm::fail;

constexpr int kSegment = 2048;  // TCP_MAXSEG, as Debian's library has it without a route

// Options that are kept, told again, and change nothing: connections are reliable and have no delay.
bool is_switch(int level, int name) {
  if (level == SOL_SOCKET) return name == SO_REUSEADDR || name == SO_KEEPALIVE || name == SO_OOBINLINE;
  return level == IPPROTO_TCP && name == TCP_NODELAY;
}

// As set: Linux has it twice, for its own needs.
std::uint32_t doubled(int octets) {
  return static_cast<std::uint32_t>(
      std::clamp<std::int64_t>(std::int64_t{octets} * 2, Stream::kLeastOctets, Stream::kMostOctets));
}

std::uint16_t requests(int n) {
  return static_cast<std::uint16_t>(std::clamp<int>(n, Stream::kLeastRequests, Stream::kMostRequests));
}

int give(const void* from, std::size_t from_size, void* to, socklen_t* size) {
  *size = std::min(*size, static_cast<socklen_t>(from_size));
  std::memcpy(to, from, *size);
  return 0;
}

}  // namespace

int Socket::set_option(int level, int name, const void* value, socklen_t size) {
  if (value == nullptr) return fail(EFAULT);
  if (level == SOL_RDMA && name == RDMA_ROUTE) return 0;  // TCP finds its way itself
  if (size < sizeof(int)) return fail(EINVAL);
  int number = 0;
  std::memcpy(&number, value, sizeof number);
  const Turn turn(*this);
  if (is_switch(level, name)) {
    if (number != 0) {
      options_.switches.emplace(level, name);
    } else {
      options_.switches.erase({level, name});
    }
    return 0;
  }
  if (level == SOL_SOCKET) {
    if (name == SO_SNDBUF) options_.sizes.send_octets = doubled(number);
    if (name == SO_RCVBUF) options_.sizes.receive_octets = doubled(number);
    if (name == SO_SNDBUF || name == SO_RCVBUF) return 0;
    if (name != SO_LINGER) return fail(ENOPROTOOPT);
    linger told{};
    if (size < sizeof told) return fail(EINVAL);
    std::memcpy(&told, value, sizeof told);
    options_.linger = told.l_onoff != 0 ? std::optional(told.l_linger) : std::nullopt;
    return 0;
  }
  if (level == IPPROTO_TCP) {
    if (name == TCP_KEEPCNT || name == TCP_KEEPINTVL || name == TCP_MAXSEG) return 0;
    if (name != TCP_KEEPIDLE) return fail(ENOPROTOOPT);
    if (number <= 0) return fail(EINVAL);
    options_.keepalive_seconds = number;
    return 0;
  }
  if (level == IPPROTO_IPV6) {
    if (name != IPV6_V6ONLY) return fail(ENOPROTOOPT);
    if (state_ != State::kIdle) return fail(EINVAL);
    options_.v6_only = number != 0;
    return 0;
  }
  if (level != SOL_RDMA) return fail(ENOPROTOOPT);
  if (state_ != State::kIdle && state_ != State::kBound && state_ != State::kListening) return fail(EINVAL);
  switch (name) {
    case RDMA_SQSIZE:
      options_.sizes.send_requests = requests(number);
      return 0;
    case RDMA_RQSIZE:
      options_.sizes.receive_requests = requests(number);
      return 0;
    case RDMA_INLINE:
      options_.inline_octets = std::max(number, 0);
      return 0;
    case RDMA_IOMAPSIZE:
      options_.sizes.mappings = sayable(static_cast<std::uint32_t>(std::max(number, 0)));
      return 0;
    default:
      return fail(ENOPROTOOPT);
  }
}

int Socket::get_option(int level, int name, void* value, socklen_t* size) {
  if (value == nullptr || size == nullptr) return fail(EFAULT);
  const Turn turn(*this);
  const auto give_int = [&](auto number) {
    const int told = static_cast<int>(number);
    return give(&told, sizeof told, value, size);
  };
  if (is_switch(level, name)) return give_int(options_.switches.contains({level, name}));
  if (level == SOL_SOCKET) {
    switch (name) {
      case SO_SNDBUF:
        return give_int(options_.sizes.send_octets);
      case SO_RCVBUF:
        return give_int(options_.sizes.receive_octets);
      case SO_TYPE:
        return give_int(SOCK_STREAM);
      case SO_DOMAIN:
        return give_int(family_);
      case SO_ACCEPTCONN:
        return give_int(state_ == State::kListening);
      case SO_ERROR:
        if (const int failure = take_failure(); failure != 0) return give_int(failure);
        return give_int(stream_ != nullptr ? stream_->take_error() : 0);
      case SO_LINGER: {
        const linger told{.l_onoff = options_.linger.has_value(), .l_linger = options_.linger.value_or(0)};
        return give(&told, sizeof told, value, size);
      }
      default:
        return fail(ENOPROTOOPT);
    }
  }
  if (level == IPPROTO_TCP) {
    if (name == TCP_KEEPCNT || name == TCP_KEEPINTVL) return give_int(1);
    if (name == TCP_KEEPIDLE) return give_int(options_.keepalive_seconds);
    return name == TCP_MAXSEG ? give_int(kSegment) : fail(ENOPROTOOPT);
  }
  if (level == IPPROTO_IPV6) return name == IPV6_V6ONLY ? give_int(options_.v6_only) : fail(ENOPROTOOPT);
  if (level != SOL_RDMA) return fail(ENOPROTOOPT);
  switch (name) {
    case RDMA_SQSIZE:
      return give_int(options_.sizes.send_requests);
    case RDMA_RQSIZE:
      return give_int(options_.sizes.receive_requests);
    case RDMA_INLINE:
      return give_int(options_.inline_octets);
    case RDMA_IOMAPSIZE:
      return give_int(options_.sizes.mappings);
    case RDMA_ROUTE:  // none
      *size = 0;
      return 0;
    default:
      return fail(ENOPROTOOPT);
  }
}

}  // namespace iwarp::dropin::rsockets
