// A connection and its end in words: for log lines.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <string>

#include "iwarp/stream/connection.h"

namespace iwarp::cm {

class Connection;

// Octets and messages of one connection.
struct Counters {
  rdmap::TxCounters tx;  // what was sent
  rdmap::RxCounters rx;  // what was received

  // "tx_send=1 tx_send_bytes=16 rx_send=... rx_read_bytes=0 tx_wake=0"; tx_wake counts
  // the zero-length Writes that wake a peer, which tx_write does not
  [[nodiscard]] std::string to_string() const;
};

// "peer=... reason=peer_closed tx_send=... rx_read_bytes=..." and, where they apply, terminate_sent="...",
// terminate_received="...", why="...".
[[nodiscard]] std::string describe_end(const Connection& connection, const stream::Disconnected& how);
// Ended as connections should: by either side's orderly close, or by our own wish.
[[nodiscard]] bool ordinary_end(const stream::Disconnected& how);

// "[::1]:20049" or "10.0.0.1:20049"
[[nodiscard]] std::string to_string(const boost::asio::ip::tcp::endpoint& endpoint);

}  // namespace iwarp::cm
