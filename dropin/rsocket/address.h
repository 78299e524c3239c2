// Addresses as the calls of sockets have them.
#pragma once

#include <sys/socket.h>

#include <boost/asio/ip/tcp.hpp>
#include <optional>

namespace iwarp::dropin::rsockets {

// As bind(2) and connect(2) take it: of IPv4 or IPv6, and of its full size. nullopt, with errno EINVAL or
// EAFNOSUPPORT.
[[nodiscard]] std::optional<boost::asio::ip::tcp::endpoint> endpoint_given(const sockaddr* address, socklen_t size);
// As getsockname(2) gives it: `size` is the room, and then what it takes. False, with errno EINVAL or EFAULT.
[[nodiscard]] bool give_endpoint(const boost::asio::ip::tcp::endpoint& endpoint, sockaddr* to, socklen_t* size);

}  // namespace iwarp::dropin::rsockets
