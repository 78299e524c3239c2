// What a call of libibverbs or librdmacm that failed says, as an Error; and addresses as these calls have them.
#pragma once

#include <netinet/in.h>

#include <boost/asio/ip/tcp.hpp>

#include "iwarp/base/error.h"

namespace iwarp::device {

// `errno_value`: positive, or as an event's status has it, negative. 0 and what nobody knows give `otherwise`, which
// must be static text.
[[nodiscard]] Error failure_of(int errno_value, const char* otherwise);

// Room for an IPv4 or IPv6 address.
union SocketAddress {
  sockaddr any;
  sockaddr_in v4;
  sockaddr_in6 v6;
};
[[nodiscard]] SocketAddress to_socket_address(const boost::asio::ip::tcp::endpoint& endpoint);
// Unspecified where it is neither IPv4 nor IPv6.
[[nodiscard]] boost::asio::ip::tcp::endpoint to_endpoint(const sockaddr& address);

// Makes reads of a descriptor fail with EAGAIN where they would wait. False: the system refuses.
[[nodiscard]] bool set_nonblocking(int descriptor);

}  // namespace iwarp::device
