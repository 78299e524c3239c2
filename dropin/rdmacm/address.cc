#include "dropin/rdmacm/address.h"

#include <netinet/in.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace iwarp::dropin::rdmacm {

using boost::asio::ip::tcp;

std::optional<tcp::endpoint> endpoint_of(const sockaddr* address) {
  if (address == nullptr) return std::nullopt;
  tcp::endpoint endpoint;
  switch (address->sa_family) {
    case AF_INET:
      endpoint = tcp::endpoint(tcp::v4(), 0);
      std::memcpy(endpoint.data(), address, sizeof(sockaddr_in));
      return endpoint;
    case AF_INET6:
      endpoint = tcp::endpoint(tcp::v6(), 0);
      std::memcpy(endpoint.data(), address, sizeof(sockaddr_in6));
      return endpoint;
    default:
      return std::nullopt;
  }
}

void store(sockaddr_storage& to, const tcp::endpoint& endpoint) {
  to = {};
  std::memcpy(&to, endpoint.data(), endpoint.size());
}

tcp::endpoint unmapped(const tcp::endpoint& endpoint) {
  if (!endpoint.address().is_v6() || !endpoint.address().to_v6().is_v4_mapped()) return endpoint;
  return {boost::asio::ip::make_address_v4(boost::asio::ip::v4_mapped, endpoint.address().to_v6()), endpoint.port()};
}

int route_to(const tcp::endpoint& to, tcp::endpoint& from) {
  const int probe = ::socket(to.protocol().family(), SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (probe < 0) return errno;
  tcp::endpoint target = to;
  if (target.port() == 0) target.port(9);  // nothing is sent
  sockaddr_storage found{};
  socklen_t size = sizeof found;
  int error = 0;
  if (::connect(probe, target.data(), static_cast<socklen_t>(target.size())) != 0 ||
      ::getsockname(probe, reinterpret_cast<sockaddr*>(&found), &size) != 0)
    error = errno;
  (void)::close(probe);
  if (error != 0) return error;
  const auto local = endpoint_of(reinterpret_cast<const sockaddr*>(&found));
  if (!local) return EAFNOSUPPORT;
  from = *local;
  from.port(0);
  return 0;
}

}  // namespace iwarp::dropin::rdmacm
