// Which servers of RPC-over-RDMA have refused version 2, or did not survive the question: asked again each time, their
// connections would end for ever (draft-cel-nfsv4-rpcrdma-version-two-00 section 5.2). Time is passed in. Thread-safe.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "iwarp/base/time.h"
#include "iwarp/rpcrdma/version_negotiation.h"

namespace iwarp::gateway {

class VersionMemory {
 public:
  // Then they are asked again.
  static constexpr std::chrono::minutes kFor = rpcrdma::kVersionMemoryTime;
  // Servers remembered: the one that was learned of longest ago makes room.
  static constexpr std::size_t kServers = 64;

  // The version to ask `server` for, an address as the operator writes it: `wanted`, or what is known to be less.
  [[nodiscard]] std::uint32_t highest(const std::string& server, std::uint32_t wanted, TimePoint now) const {
    const std::lock_guard lock(mu_);
    const auto known = servers_.find(server);
    if (known == servers_.end() || now - known->second.since > kFor) return wanted;
    return std::min(wanted, known->second.highest);
  }
  // What VersionNegotiation::for_next_connection() has told at the end of a connection.
  void learned(const std::string& server, std::uint32_t highest, TimePoint now) {
    const std::lock_guard lock(mu_);
    if (servers_.size() >= kServers && !servers_.contains(server)) {
      servers_.erase(std::min_element(servers_.begin(), servers_.end(),
                                      [](const auto& a, const auto& b) { return a.second.since < b.second.since; }));
    }
    servers_[server] = {highest, now};
  }

 private:
  struct Known {
    std::uint32_t highest = 0;
    TimePoint since{};
  };

  mutable std::mutex mu_;
  std::map<std::string, Known> servers_;  // guarded by it
};

}  // namespace iwarp::gateway
