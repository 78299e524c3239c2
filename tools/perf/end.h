// The two ends of a test. The active end measures, the passive one serves until the active end goes.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tools/perf/spec.h"

namespace iwarp::tools::perf {

// Set by SIGINT and SIGTERM: all loops end soon.
extern std::atomic<bool> interrupted;

struct Sample {
  std::uint64_t operations = 0;
  std::uint64_t octets = 0;
  double seconds = 0;               // from the first post until the other end has confirmed everything
  std::vector<float> microseconds;  // of each operation, latency tests only
};

// One connection's active end. Its functions throw std::runtime_error when the connection fails or the user interrupts.
class Active {
 public:
  virtual ~Active() = default;
  // Runs for this long, then waits until the other end has got everything.
  virtual Sample run(std::chrono::nanoseconds duration) = 0;
  // Moves data that both ends know and compares it; throws when it differs. Not timed.
  virtual void verify() = 0;
};

// Connects to a passive end of the same Spec.
[[nodiscard]] std::unique_ptr<Active> connect_raw(const Spec& spec, const std::string& host, std::uint16_t port);
[[nodiscard]] std::unique_ptr<Active> connect_rdma(const Spec& spec, const std::string& host, std::uint16_t port);

// One connection's passive end: listens from construction on, on `host` and any free port.
class Passive {
 public:
  virtual ~Passive() = default;
  [[nodiscard]] virtual std::uint16_t port() const = 0;
  // Serves one connection (any number for the connection tests), until it ends or `stop`. Throws std::runtime_error
  // when it fails.
  virtual void serve(const std::atomic<bool>& stop) = 0;
};

[[nodiscard]] std::unique_ptr<Passive> listen_raw(const Spec& spec, const std::string& host);
[[nodiscard]] std::unique_ptr<Passive> listen_rdma(const Spec& spec, const std::string& host);

// What a region holds in verification: a function of the position, different in every octet's neighbourhood.
void fill_pattern(std::byte* data, std::size_t size, std::uint64_t seed);
[[nodiscard]] bool has_pattern(const std::byte* data, std::size_t size, std::uint64_t seed);

}  // namespace iwarp::tools::perf
