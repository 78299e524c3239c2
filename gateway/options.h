// What the operator of a gateway decides.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <string>

#include "iwarp/gateway/access.h"
#include "iwarp/mpa/policy.h"
#include "iwarp/stream/connection.h"

namespace iwarp::gateway {

struct HostPort {
  std::string host;
  std::uint16_t port = 0;

  // "host:port", "10.0.0.1:2049" or "[::1]:2049". The error says what is wrong and what would be right.
  [[nodiscard]] static Parsed<HostPort> parse(std::string_view text);
  [[nodiscard]] std::string to_string() const;
};

struct Options {
  mpa::Policy policy{};
  stream::Options stream{};
  // Whom to serve; default loopback only, because behind a gateway the server's own export rules see only the gateway.
  AccessList allow{};
  // Local address of the backend connection by client.
  SourceMap source_map{};
  // RPCs that a client may have outstanding, 1..96. Default 64, as Linux grants.
  std::uint32_t credits = 64;
  // Inline threshold, octets, 1024..65536 in steps of 1024. Default 4096, as Linux uses.
  std::uint32_t inline_bytes = 4096;
  // Registered memory for Calls and for Replies of one connection, octets each. Default 16 MiB: 15 transfers of 1 MiB
  // at a time. Work beyond it waits. Must hold one Call or Reply of 1 MiB and its headers.
  std::size_t memory_bytes = std::size_t{16} << 20;
  // A connection of which no buffer has come back for so long gives the memory of past bursts back. Default 10 s. Lower
  // registers anew for every burst, higher keeps up to 4 MiB of an idle connection for longer.
  std::chrono::milliseconds keep_idle_memory{10000};
  // Connections served at a time.
  std::size_t max_connections = 1024;
  // From a client's arrival to a connected backend. Default 5 s: siw gives up after 10.
  std::chrono::milliseconds backend_timeout{5000};
  // How long an RPC of the back channel may go unanswered, before its caller gets an RPC error. Default 60 s, as the
  // Linux server.
  std::chrono::milliseconds backward_timeout{60000};
  // After one side has closed: how long the other may take to receive what is complete. Default 5 s: reconnecting
  // clients must not wait for much longer.
  std::chrono::milliseconds delivery_timeout{5000};
  // After SIGTERM: how long outstanding RPCs may take to finish.
  std::chrono::milliseconds drain_timeout{10000};
};

}  // namespace iwarp::gateway
