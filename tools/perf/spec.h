// What one performance test does, as both ends must know it. Plain values; they travel as JSON on the control
// connection.
#pragma once

#include <chrono>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace iwarp::tools::perf {

enum class Test : std::uint8_t {
  kTcpBw,       // octets over plain TCP
  kTcpLat,      // ping-pong over plain TCP
  kTcpRate,     // frames over plain TCP, one send() each
  kTcpConnect,  // TCP connect and one octet there and back
  kTcpRpcNull,  // RPC Calls over plain TCP, with record marks
  kTcpRpcRead,
  kTcpRpcWrite,
  kWriteBw,
  kReadBw,
  kSendBw,
  kSendRate,
  kWriteLat,
  kReadLat,
  kSendLat,
  kConnectRate,
  kRpcNull,
  kRpcRead,
  kRpcWrite,
};

// Receives that each end of send_lat keeps posted.
inline constexpr std::size_t kLatencyReceives = 4;

// RPC Calls that a connection may have outstanding.
inline constexpr std::uint32_t kMostRpcCalls = 200;

inline constexpr std::chrono::milliseconds kLongestSample{3'600'000};

enum class Unit : std::uint8_t { kOctetsPerSecond, kOperationsPerSecond, kMicroseconds };

// All tests, in the order of presentation.
[[nodiscard]] const std::vector<Test>& all_tests();
[[nodiscard]] std::string_view name(Test test);
[[nodiscard]] std::optional<Test> test_named(std::string_view name);
// One line for --help.
[[nodiscard]] std::string_view describe(Test test);
[[nodiscard]] bool is_raw(Test test);
// The raw TCP test that a test is measured against; itself for a raw one.
[[nodiscard]] Test baseline_of(Test test);
[[nodiscard]] Unit unit_of(Test test);
// Whether it makes RPC Calls, over iWARP or plain TCP.
[[nodiscard]] bool is_rpc(Test test);
// False for the connection tests and rpc_null, which move nothing of the user's.
[[nodiscard]] bool has_size(Test test);
// Octets per operation when the user does not choose.
[[nodiscard]] std::vector<std::uint32_t> default_sizes(Test test);
// Those of a sweep, as perftest has them: 2, 4, 8 ... 8 Mi.
[[nodiscard]] std::vector<std::uint32_t> all_sizes();
// Operations outstanding when the user does not choose.
[[nodiscard]] std::uint32_t default_depth(Test test, std::uint32_t size);
// Work requests that a test posts by one call, if nothing is said.
[[nodiscard]] std::uint32_t default_list(Test test, std::uint32_t depth);

struct Spec {
  Test test = Test::kWriteBw;
  std::uint32_t size = 65536;     // octets per operation, 1 to 16 Mi; raw tests may be longer by the framing of iwarp
  std::uint32_t depth = 16;       // operations outstanding at a time, per thread
  std::uint32_t threads = 1;      // connections, each with a thread of its own at both ends
  std::uint32_t list = 1;         // send_rate, write_bw, read_bw: work requests posted by one call
  std::uint32_t call = 65536;     // raw tests: octets given to one sending call
  std::uint32_t receive = 65536;  // raw tests: octets that one receiving call may take
  bool nodelay = true;            // tcp_rate: TCP_NODELAY
  bool fetch = false;             // tcp_bw: the passive end sends, as in read_bw
  bool crc = true;
  bool markers = false;              // both ends ask for MPA Markers; else as the profile has it
  bool manual = false;               // manual progress, or for raw tests: spinning instead of blocking
  bool direct = true;                // with CRC off, receive large payloads straight into their place
  bool stable = true;                // read tests: the memory read is registered as one that nothing changes meanwhile
  std::string llp = "tcp";           // what carries iwarp's connections: tcp or sctp; plain TCP is what it is
  std::uint16_t sctp_packet = 1452;  // over sctp: octets of a packet that is sent, at most
  std::string fpdu = "max";
  std::string profile = "generic";   // of both ends, a name of stream::profiles(); crc and fpdu go before it
  std::uint32_t milliseconds = 500;  // length of a sample, at most kLongestSample: the passive end waits no longer
  std::string congestion{};  // TCP congestion control of both ends' sockets, [a-z0-9_-]{0,15}; empty: each system's own
  int cpu = -1;              // processor for the passive end's threads; -1: any

  // Octets of each end's region: what `depth` operations touch, and no less than the test needs to go on. Raw tests
  // receive into one of the same size.
  [[nodiscard]] std::size_t region_bytes() const;
};

// What `spec` is measured against, before the best calls have been looked for: for send_rate, frames of plain TCP that
// are as long as what a message takes in the TCP stream. A raw test is its own.
[[nodiscard]] Spec baseline_spec(const Spec& spec);

void to_json(nlohmann::json& j, const Spec& spec);
// Throws nlohmann::json::exception or std::invalid_argument when a field is missing or out of range.
void from_json(const nlohmann::json& j, Spec& spec);

}  // namespace iwarp::tools::perf
