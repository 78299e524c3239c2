// Addresses of the C interface as those of Asio, and which of this host's addresses leads where.
#pragma once

#include <sys/socket.h>

#include <boost/asio/ip/tcp.hpp>
#include <optional>

namespace iwarp::dropin::rdmacm {

// nullopt: neither IPv4 nor IPv6, or null.
[[nodiscard]] std::optional<boost::asio::ip::tcp::endpoint> endpoint_of(const sockaddr* address);
void store(sockaddr_storage& to, const boost::asio::ip::tcp::endpoint& endpoint);
// IPv4 where a socket for both families has it as ::ffff:a.b.c.d.
[[nodiscard]] boost::asio::ip::tcp::endpoint unmapped(const boost::asio::ip::tcp::endpoint& endpoint);
// The address of this host from which `to` is reached, port 0. An errno value: there is none.
[[nodiscard]] int route_to(const boost::asio::ip::tcp::endpoint& to, boost::asio::ip::tcp::endpoint& from);

}  // namespace iwarp::dropin::rdmacm
