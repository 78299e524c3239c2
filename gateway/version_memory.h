// Which servers of RPC-over-RDMA have refused version 2, or did not survive the question. Time is passed in.
// Thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "iwarp/base/time.h"
#include "iwarp/rpcrdma/server_versions.h"

namespace iwarp::gateway {

class VersionMemory {
 public:
  using End = rpcrdma::ServerVersions::End;
  // Servers remembered: the one that was learned of longest ago makes room.
  static constexpr std::size_t kServers = 64;

  // The version to ask `server` for, an address as the operator writes it: `wanted`, or what is known to be less.
  [[nodiscard]] std::uint32_t highest(const std::string& server, std::uint32_t wanted, TimePoint now) const {
    const std::lock_guard lock(mu_);
    const auto known = servers_.find(server);
    return known == servers_.end() ? wanted : known->second.highest(wanted, now);
  }
  // As ServerVersions::learn(), at the end of a connection to `server`.
  bool learn(const std::string& server, const rpcrdma::VersionNegotiation& versions, End how, TimePoint begun,
             TimePoint now) {
    const std::lock_guard lock(mu_);
    const bool lowered = servers_[server].learn(versions, how, begun, now);
    if (servers_.size() > kServers) {  // of whom nothing was learned come first
      servers_.erase(std::min_element(servers_.begin(), servers_.end(), [](const auto& a, const auto& b) {
        return a.second.since() < b.second.since();
      }));
    }
    return lowered;
  }

 private:
  mutable std::mutex mu_;
  std::map<std::string, rpcrdma::ServerVersions> servers_;  // guarded by it
};

}  // namespace iwarp::gateway
