// Connects to the TCP server behind the gateway, from a chosen source address and port where that matters, bounded in
// time.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <functional>
#include <optional>

#include "iwarp/base/error.h"
#include "iwarp/gateway/options.h"
#include "iwarp/gateway/source_ports.h"

namespace iwarp::gateway {

struct BackendRequest {
  HostPort server;
  std::optional<boost::asio::ip::address> source{};  // nothing: the system chooses
  SourcePorts source_ports{ReservedPort::kOff, std::nullopt, {}, 0};
  std::chrono::milliseconds timeout{5000};
};

// `handler` is called once, on the event loop, with a connected socket (TCP_NODELAY, keepalive) or an error:
// kInvalidArgument when none of the ports allowed is to be had.
void connect_backend(boost::asio::io_context& io, const BackendRequest& request,
                     std::function<void(Error, boost::asio::ip::tcp::socket)> handler);

}  // namespace iwarp::gateway
