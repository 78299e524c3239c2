#include "iwarp/device/failure.h"

#include <fcntl.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace iwarp::device {

using boost::asio::ip::tcp;

Error failure_of(int errno_value, const char* otherwise) {
  const int number = std::abs(errno_value);
  switch (number) {
    case EADDRINUSE:
      return make_error(Errc::kSystem, "Address already in use: choose another port, or end who listens there");
    case EADDRNOTAVAIL:
    case ENODEV:
      return make_error(Errc::kSystem, "no RDMA device has that address: see `rdma link` for what each is attached to");
    case ENOMEM:
    case EAGAIN:
      return make_error(Errc::kResource,
                        "Cannot allocate memory: perhaps the limit of locked memory is too low (ulimit -l)");
    case EMFILE:
      return make_error(Errc::kResource, "Too many open files: raise the limit (ulimit -n)");
    case EACCES:
    case EPERM:
      return make_error(Errc::kSystem,
                        "Permission denied: /dev/infiniband must be readable and writable for this user");
    case ECONNREFUSED:
      return make_error(Errc::kConnectionRefused, "Connection refused: nothing listens there");
    case ETIMEDOUT:
      return make_error(Errc::kTimeout, "Connection timed out: check the address, the network and its firewalls");
    default:
      break;
  }
  const char* const text = number == 0 ? nullptr : ::strerrordesc_np(number);
  return make_error(Errc::kSystem, text != nullptr ? text : otherwise);
}

SocketAddress to_socket_address(const tcp::endpoint& endpoint) {
  SocketAddress out{};
  if (endpoint.address().is_v4()) {
    std::memcpy(&out.v4, endpoint.data(), sizeof out.v4);
  } else {
    std::memcpy(&out.v6, endpoint.data(), sizeof out.v6);
  }
  return out;
}

tcp::endpoint to_endpoint(const sockaddr& address) {
  tcp::endpoint out;
  if (address.sa_family == AF_INET) {
    std::memcpy(out.data(), &address, sizeof(sockaddr_in));
  } else if (address.sa_family == AF_INET6) {
    out = tcp::endpoint(tcp::v6(), 0);
    std::memcpy(out.data(), &address, sizeof(sockaddr_in6));
  }
  return out;
}

bool set_nonblocking(int descriptor) {
  const int flags = ::fcntl(descriptor, F_GETFL);
  return flags >= 0 && ::fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) == 0;
}

}  // namespace iwarp::device
