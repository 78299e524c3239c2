// The port of an id.
#pragma once

#include <boost/asio/ip/tcp.hpp>

#include "dropin/rdmacm/cm_id.h"

namespace iwarp::dropin::rdmacm {

// As rdma_bind_addr(): the port is this id's from now on, and known. -1, with errno.
[[nodiscard]] int bind_id(Id& id, const boost::asio::ip::tcp::endpoint& local);

}  // namespace iwarp::dropin::rdmacm
