// rpcbind (RFC 1833), for netids that libtirpc's own calls refuse: rdma and rdma6 (RFC 8166 s5). Internal to tirpc.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "iwarp/base/result.h"

namespace iwarp::tirpc {

// An entry of rpcbind.
struct Registration {
  std::uint32_t program = 0, version = 0;
  std::string netid{};    // "rdma" or "rdma6"
  std::string address{};  // universal, such as "192.0.2.1.78.81" (RFC 5665 s5.2.3.3)
};

// Takes what there is away, and sets it. Errors: kNotConnected (nobody listens at the socket), kPeerRejected (another
// user's entry), kTimeout.
[[nodiscard]] Result<void> set(const std::string& socket, const Registration& what);
[[nodiscard]] Result<void> unset(const std::string& socket, const Registration& what);

// The port that the rpcbind of a host has for the program, of the netid of the host's first address, rdma or rdma6, or,
// where it has none, of the other: asked over TCP, or, where there is none and the host is this one, by its local
// socket. kNotConnected: it does not answer, or not all of it in `timeout`; kInvalidArgument: it knows no such;
// kResource: no thread to watch the time.
[[nodiscard]] Result<std::uint16_t> find_port(const std::string& host, std::uint32_t program, std::uint32_t version,
                                              std::chrono::milliseconds timeout, const std::string& socket);

// The universal address of an IP address, in numbers, and a port.
[[nodiscard]] std::string universal_address(const std::string& address, std::uint16_t port);
// Its port. kInvalidArgument: that is none.
[[nodiscard]] Result<std::uint16_t> port_of(const std::string& universal);

}  // namespace iwarp::tirpc
