// TCP client - `iwarp gateway` - relay - `iwarp gateway` - TCP server, each but the client and the relay a process of
// its own that can be killed and started again at the port it had.
#pragma once

#include <array>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "tests/cm/raw_tcp.h"
#include "tests/faults/held_port.h"
#include "tests/faults/relay.h"
#include "tests/tools/subprocess.h"

namespace iwarp::faults {

class Chain {
 public:
  enum Process : std::size_t { kStore, kRdmaFront, kTcpFront };

  // `more`: arguments for both gateways.
  explicit Chain(std::vector<std::string> more = {});
  ~Chain();

  [[nodiscard]] test::Subprocess& operator[](Process which) { return *processes_[which]; }
  [[nodiscard]] std::uint16_t port(Process which) const { return ports_[which].port(); }
  [[nodiscard]] Relay& relay() { return relay_; }
  void kill(Process which);
  // Throws when it does not come up.
  void start(Process which);
  // Takes what the processes have written: one whose log nobody reads comes to a halt.
  void read_logs();
  // The counters of a gateway (iwarp/gateway/stats.h) as it prints them on SIGUSR1. Throws when it does not.
  [[nodiscard]] nlohmann::json counters(Process which);
  // It holds no connection, and no more descriptors than when it had just begun to listen.
  [[nodiscard]] bool at_rest(Process which);
  // What the store has applied, one line each.
  [[nodiscard]] std::vector<std::string> applied() const;

 private:
  [[nodiscard]] std::vector<std::string> arguments(Process which) const;

  std::vector<std::string> more_;
  std::string file_;
  Relay relay_;
  std::array<HeldPort, 3> ports_;
  std::array<std::unique_ptr<test::Subprocess>, 3> processes_;
  std::array<std::size_t, 3> descriptors_at_start_{};
};

// A TCP RPC client that waits for what it asked.
class RpcClient {
 public:
  // Throws when nobody listens.
  explicit RpcClient(std::uint16_t port) : tcp_(test::RawTcp::connect(port)) {}

  // False when the connection is over.
  bool send(const test::Bytes& record);
  // Octets as they are.
  bool send_raw(const test::Bytes& octets) { return tcp_.send(octets); }
  // The next record; nothing when the connection ends, or none comes in time.
  [[nodiscard]] std::optional<test::Bytes> receive(int limit_ms = 30'000);
  // Whether the next record answers the Call as the store does.
  [[nodiscard]] bool answered(const test::Bytes& call, int limit_ms = 30'000);
  // How the connection ends.
  [[nodiscard]] test::RawTcp::End end(std::chrono::milliseconds limit) {
    return tcp_.end(static_cast<int>(limit.count()));
  }
  void reset() { tcp_.reset(); }

 private:
  test::RawTcp tcp_;
};

}  // namespace iwarp::faults
