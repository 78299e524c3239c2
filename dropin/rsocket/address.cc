#include "dropin/rsocket/address.h"

#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "dropin/rdmacm/address.h"

namespace iwarp::dropin::rsockets {

using boost::asio::ip::tcp;

std::optional<tcp::endpoint> endpoint_given(const sockaddr* address, socklen_t size) {
  errno = EINVAL;
  if (address == nullptr || size < sizeof(sa_family_t)) return std::nullopt;
  const bool six = address->sa_family == AF_INET6;
  if (!six && address->sa_family != AF_INET) {
    errno = EAFNOSUPPORT;
    return std::nullopt;
  }
  if (size < (six ? sizeof(sockaddr_in6) : sizeof(sockaddr_in))) return std::nullopt;
  return rdmacm::endpoint_of(address);
}

bool give_endpoint(const tcp::endpoint& endpoint, sockaddr* to, socklen_t* size) {
  if (to == nullptr || size == nullptr) {
    errno = EFAULT;
    return false;
  }
  const auto whole = static_cast<socklen_t>(endpoint.size());
  std::memcpy(to, endpoint.data(), std::min(*size, whole));
  *size = whole;
  return true;
}

}  // namespace iwarp::dropin::rsockets
