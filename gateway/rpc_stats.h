// Counters by RPC program: Calls, what became of them, octets, and how long the server took. For every program
// calls == replied + failed + unanswered + outstanding. A Call costs two additions and a Reply three, without a lock or
// memory: some 50 ns together. RpcStats is thread-safe; a snapshot taken while others count may be a Call apart.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "iwarp/base/bytes.h"

namespace iwarp::gateway {

// Peers choose the program: so many labels and no more.
enum class RpcProgram : std::uint8_t {
  kNfs,       // 100003
  kMount,     // 100005
  kNlm,       // 100021, locks of NFSv3
  kNsm,       // 100024, their recovery
  kAcl,       // 100227
  kCallback,  // 0x40000000, or any backward Call
  kPortmap,   // 100000
  kOther,
};
inline constexpr std::size_t kRpcPrograms = 8;

[[nodiscard]] RpcProgram rpc_program(std::uint32_t number);
// Of a Call; kOther when it ends before its program.
[[nodiscard]] RpcProgram rpc_program(ConstBytes call);
[[nodiscard]] const char* name(RpcProgram program);

// Upper limits of the latency buckets; one more bucket takes what is above the last.
inline constexpr std::array<std::chrono::microseconds, 18> kLatencyLimits = {
    std::chrono::microseconds(50),      std::chrono::microseconds(100),      std::chrono::microseconds(250),
    std::chrono::microseconds(500),     std::chrono::microseconds(1000),     std::chrono::microseconds(2500),
    std::chrono::microseconds(5000),    std::chrono::microseconds(10000),    std::chrono::microseconds(25000),
    std::chrono::microseconds(50000),   std::chrono::microseconds(100000),   std::chrono::microseconds(250000),
    std::chrono::microseconds(500000),  std::chrono::microseconds(1000000),  std::chrono::microseconds(2500000),
    std::chrono::microseconds(5000000), std::chrono::microseconds(10000000), std::chrono::microseconds(30000000)};
inline constexpr std::size_t kLatencyBuckets = kLatencyLimits.size() + 1;

// Of an answered Call and its Reply, what did not travel in Sends. Octets.
struct ByRdma {
  std::uint64_t read = 0;   // of the Call, by RDMA Read
  std::uint64_t write = 0;  // of the Reply, by RDMA Write
};

class RpcStats {
 public:
  // `bytes`: of the RPC message, without transport headers.
  void called(RpcProgram program, std::uint64_t bytes);
  // `latency`: from the whole Call at the gateway to the whole Reply there.
  void replied(RpcProgram program, std::uint64_t bytes, std::chrono::nanoseconds latency, ByRdma by_rdma = {});
  // The gateway answered with an RPC error, since the server's Reply cannot be had or used.
  void failed(RpcProgram program) { add(of(program).failed, 1); }
  // The connection ended first.
  void unanswered(RpcProgram program, std::uint64_t calls) { add(of(program).unanswered, calls); }

  struct Program {
    std::uint64_t calls = 0;
    std::uint64_t failed = 0;
    std::uint64_t unanswered = 0;
    std::uint64_t call_bytes = 0;
    std::uint64_t reply_bytes = 0;
    std::uint64_t read_bytes = 0;  // ByRdma, summed up
    std::uint64_t write_bytes = 0;
    std::uint64_t latency_ns = 0;                             // of all Replies together
    std::array<std::uint64_t, kLatencyBuckets> by_latency{};  // Replies: each in one bucket

    [[nodiscard]] std::uint64_t replies() const;
    [[nodiscard]] std::uint64_t outstanding() const;
    Program& operator+=(const Program& other);
    friend bool operator==(const Program&, const Program&) = default;
  };
  using Snapshot = std::array<Program, kRpcPrograms>;
  [[nodiscard]] Snapshot snapshot() const;

 private:
  using Counter = std::atomic<std::uint64_t>;
  struct Counters {
    Counter calls{0}, failed{0}, unanswered{0}, call_bytes{0}, reply_bytes{0}, read_bytes{0}, write_bytes{0},
        latency_ns{0};
    std::array<Counter, kLatencyBuckets> by_latency{};
  };

  static void add(Counter& counter, std::uint64_t n) { counter.fetch_add(n, std::memory_order_release); }
  Counters& of(RpcProgram program) { return programs_[static_cast<std::size_t>(program)]; }

  std::array<Counters, kRpcPrograms> programs_;
};

// The Calls of one connection: those that it ends with are unanswered. One thread.
class RpcMeter {
 public:
  // `stats` must live until end().
  explicit RpcMeter(RpcStats& stats) : stats_(stats) {}

  void called(RpcProgram program, std::uint64_t bytes);
  void replied(RpcProgram program, std::uint64_t bytes, std::chrono::nanoseconds latency, ByRdma by_rdma = {});
  void failed(RpcProgram program);
  // The connection is over. A second time does nothing.
  void end();

 private:
  // False: no such Call is out.
  [[nodiscard]] bool take(RpcProgram program);

  RpcStats& stats_;
  std::array<std::uint32_t, kRpcPrograms> outstanding_{};
};

}  // namespace iwarp::gateway
