// The counters of a gateway as Prometheus reads them: text exposition format 0.0.4. docs/GATEWAY-METRICS.md lists the
// names, and a test compares it with what is written here.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "iwarp/gateway/stats.h"

namespace iwarp::gateway {

struct ListenerMetrics {
  // Labels; those of which name and direction are the same are added up.
  std::string name;
  std::string direction;  // "rdma-to-tcp" or "tcp-to-rdma"
  std::string local;      // address it listens on
  std::string backend;    // HOST:PORT of the server
  Stats::Snapshot stats{};
};

struct ProcessMetrics {
  std::string version;
  std::uint64_t memory_limit_bytes = 0;  // for registered memory of all listeners; 0: none
};

// Every family is there with HELP and TYPE, whatever its values are. Label values may hold any octets.
[[nodiscard]] std::string metrics_text(const std::vector<ListenerMetrics>& listeners, const ProcessMetrics& process);

inline constexpr const char* kMetricsContentType = "text/plain; version=0.0.4; charset=utf-8";

}  // namespace iwarp::gateway
