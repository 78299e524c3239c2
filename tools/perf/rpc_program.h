// The RPC program of rpc_null, rpc_read and rpc_write, whatever carries it: 0x20000045, version 1.
//
//   0 NULL
//   1 READ(seed, count) -> opaque<>   so many octets: of the pattern of that seed
//   2 WRITE(seed, opaque<>) -> word   1: the octets are of that pattern, 0: they are not
//
// Seed 0 is for Calls that are measured: the octets are the same ones each time, and nobody compares them.
#pragma once

#include <optional>

#include "iwarp/rpc/message.h"
#include "iwarp/rpcrdma/declared_binding.h"
#include "tools/perf/end.h"

namespace iwarp::tools::perf {

inline constexpr std::uint32_t kRpcProgram = 0x20000045, kRpcVersion = 1;
inline constexpr std::uint32_t kRpcNull = 0, kRpcRead = 1, kRpcWrite = 2;

// Of the test, or of its baseline.
[[nodiscard]] rpc::Procedure rpc_procedure_of(Test test);
// Most octets of an RPC message beside the data.
inline constexpr std::size_t kRpcHeadBytes = 1024;
// The opaque<> of READ and WRITE travels in chunks of its own, of so many octets at most.
[[nodiscard]] std::shared_ptr<const rpcrdma::DeclaredBinding> rpc_binding(std::uint32_t size);

// What the passive end answers. Any number of threads.
class RpcProgram {
 public:
  explicit RpcProgram(const Spec& spec);

  // The results; nothing: the procedure is called with other arguments than its own, or there is none of that number.
  [[nodiscard]] std::optional<rpc::Octets> answer(std::uint32_t procedure, ConstBytes arguments) const;
  // Of a READ that is measured, when answer() would say so: what is the same each time.
  [[nodiscard]] const rpc::Octets* same_each_time(std::uint32_t procedure, ConstBytes arguments) const;

 private:
  std::uint32_t size_;
  rpc::Octets ready_;
};

// What the active end calls, and what it expects.
class RpcUse {
 public:
  explicit RpcUse(const Spec& spec);

  [[nodiscard]] rpc::Procedure procedure() const { return rpc_procedure_of(test_); }
  // Of a Call that is measured, or of one that compares the data of a seed.
  [[nodiscard]] const rpc::Octets& arguments() const { return ready_; }
  [[nodiscard]] rpc::Octets arguments(std::uint32_t seed) const;
  // Most octets of results.
  [[nodiscard]] std::size_t most_results() const;
  // Octets of data of a Call.
  [[nodiscard]] std::uint64_t payload() const;
  // Whether the results are those of a Call that is measured: as many as asked for, and the first is looked at.
  [[nodiscard]] bool answered(ConstBytes results) const;
  // Whether they are those of that seed, octet by octet.
  [[nodiscard]] bool answered(ConstBytes results, std::uint32_t seed) const;

 private:
  Test test_;
  std::uint32_t size_;
  rpc::Octets ready_;
};

}  // namespace iwarp::tools::perf
