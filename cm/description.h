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

  // "tx_write=1/64 tx_read=1/64 tx_send=2/32 rx_send=2/32 tx_wake=1": messages/octets of RDMA Writes, Reads and Sends.
  // tx_read are the Reads that this side asked for, with the octets that came for them, rx_read those of the peer;
  // tx_wake counts the zero-length Writes that wake a peer, which tx_write does not. rx_early: segments that were
  // placed before others in front of them had come, and their octets (over SCTP). What is zero is left out. With
  // `columns`, so is what makes it longer, and "..." stands in its place.
  [[nodiscard]] std::string to_string(std::size_t columns = SIZE_MAX) const;
};

// Of a log line "closed ...", behind that word and what stands before it: so the line has 120 columns.
inline constexpr std::size_t kEndColumns = 95;

// "peer=10.0.0.1:50000 end="client closed" tx_write=10/640 ...": what happened, and the counters. `more`: fields that
// go behind the peer. An end is "client closed", "server closed", "done" (by this side, with disconnect()), "aborted",
// or the name of an error in words, with why="...". A Terminate is terminate_sent="..." or terminate_received="...".
// Counters are left out where the text gets longer than `columns`.
[[nodiscard]] std::string describe_end(const Connection& connection, const stream::Disconnected& how,
                                       std::size_t columns = SIZE_MAX, const std::string& more = {});
// What that says of a connection, for those that are not cm's.
struct EndFacts {
  boost::asio::ip::tcp::endpoint remote{};  // the peer
  bool initiator = false;                   // this end has connected
  Counters counters{};                      // at the end
};
// The same.
[[nodiscard]] std::string describe_end(const EndFacts& facts, const stream::Disconnected& how,
                                       std::size_t columns = SIZE_MAX, const std::string& more = {});
// Ended as connections should: by either side's orderly close, or by our own wish.
[[nodiscard]] bool ordinary_end(const stream::Disconnected& how);
// Or a server's client has left, however it did that: nothing that the server's operator could help.
[[nodiscard]] bool unremarkable_end(const Connection& connection, const stream::Disconnected& how);
// The same; `initiator`: this end has connected.
[[nodiscard]] bool unremarkable_end(bool initiator, const stream::Disconnected& how);

// "[::1]:20049" or "10.0.0.1:20049"
[[nodiscard]] std::string to_string(const boost::asio::ip::tcp::endpoint& endpoint);

}  // namespace iwarp::cm
