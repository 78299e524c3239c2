// Messages to rpcbind (RFC 1833 s2.2), to set and unset where a program is reached. Made by hand, since libtirpc's
// rpcb_set() takes only netids of /etc/netconfig, where the RDMA ones of RFC 8166 s8.3 are not. Pure.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "iwarp/base/bytes.h"

namespace iwarp::gateway {

// A program, where it is reached, and who says so: struct rpcb.
struct RpcbindEntry {
  std::uint32_t program = 0;
  std::uint32_t version = 0;
  std::string netid;    // "rdma" or "rdma6"
  std::string address;  // universal address
  std::string owner;    // rpcbind puts in who is at its socket

  friend bool operator==(const RpcbindEntry&, const RpcbindEntry&) = default;
};

enum class RpcbindProcedure : std::uint32_t { kSet = 1, kUnset = 2 };

// Of whoever calls: an AUTH_SYS credential.
struct RpcbindCaller {
  std::string host;  // 255 octets at most
  std::uint32_t uid = 0, gid = 0;
};

// A Call of rpcbind version 3, behind its record mark.
[[nodiscard]] std::vector<std::byte> rpcbind_call(std::uint32_t xid, RpcbindProcedure procedure,
                                                  const RpcbindEntry& entry, const RpcbindCaller& caller);
// What rpcbind answers: true or false. Nothing: this is no Reply to that Call, or an RPC error. `reply`: without the
// record mark.
[[nodiscard]] std::optional<bool> rpcbind_answer(ConstBytes reply, std::uint32_t xid);

// "rdma", or "rdma6" for IPv6.
[[nodiscard]] const char* rdma_netid(const boost::asio::ip::address& address);
// The address, and two octets of the port: "0.0.0.0.78.81", "::1.78.81" (RFC 5665 s5.2.3).
[[nodiscard]] std::string universal_address(const boost::asio::ip::tcp::endpoint& at);

}  // namespace iwarp::gateway
