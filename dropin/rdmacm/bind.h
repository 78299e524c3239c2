// The port of an id.
#pragma once

#include <boost/asio/ip/tcp.hpp>

#include "dropin/rdmacm/cm_id.h"

namespace iwarp::dropin::rdmacm {

// A TCP socket that has the port, and nobody else can listen at: `got` is its address. Empty, with errno.
[[nodiscard]] Descriptor bind_socket(const boost::asio::ip::tcp::endpoint& local, bool v6_only,
                                     boost::asio::ip::tcp::endpoint& got);

// As rdma_bind_addr(): the port is this id's from now on, and known. -1, with errno.
[[nodiscard]] int bind_id(Id& id, const boost::asio::ip::tcp::endpoint& local);

}  // namespace iwarp::dropin::rdmacm
