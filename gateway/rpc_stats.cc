#include "iwarp/gateway/rpc_stats.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "iwarp/base/wire.h"

namespace iwarp::gateway {

RpcProgram rpc_program(std::uint32_t number) {
  switch (number) {
    case 100003:
      return RpcProgram::kNfs;
    case 100005:
      return RpcProgram::kMount;
    case 100021:
      return RpcProgram::kNlm;
    case 100024:
      return RpcProgram::kNsm;
    case 100227:
      return RpcProgram::kAcl;
    case 0x40000000:
      return RpcProgram::kCallback;
    case 100000:
      return RpcProgram::kPortmap;
    default:
      return RpcProgram::kOther;
  }
}

RpcProgram rpc_program(ConstBytes call) {
  constexpr std::size_t kProgramAt = 12;  // behind xid, direction and RPC version (RFC 5531 s9)
  if (call.size() < kProgramAt + 4) return RpcProgram::kOther;
  return rpc_program(load_be<std::uint32_t>(call.subspan(kProgramAt)));
}

const char* name(RpcProgram program) {
  constexpr std::array<const char*, kRpcPrograms> kNames = {"nfs", "mount",    "nlm",     "nsm",
                                                            "acl", "callback", "portmap", "other"};
  return kNames[static_cast<std::size_t>(program)];
}

void RpcStats::called(RpcProgram program, std::uint64_t bytes) {
  Counters& c = of(program);
  add(c.call_bytes, bytes);
  add(c.calls, 1);
}

void RpcStats::replied(RpcProgram program, std::uint64_t bytes, std::chrono::nanoseconds latency, ByRdma by_rdma) {
  Counters& c = of(program);
  const auto bucket = std::find_if(kLatencyLimits.begin(), kLatencyLimits.end(),
                                   [&](std::chrono::microseconds limit) { return latency <= limit; });
  add(c.reply_bytes, bytes);
  if (by_rdma.read > 0) add(c.read_bytes, by_rdma.read);
  if (by_rdma.write > 0) add(c.write_bytes, by_rdma.write);
  add(c.latency_ns, static_cast<std::uint64_t>(std::max<std::int64_t>(latency.count(), 0)));
  add(c.by_latency[static_cast<std::size_t>(bucket - kLatencyLimits.begin())], 1);
}

std::uint64_t RpcStats::Program::replies() const {
  return std::accumulate(by_latency.begin(), by_latency.end(), std::uint64_t{0});
}

std::uint64_t RpcStats::Program::outstanding() const {
  const std::uint64_t done = replies() + failed + unanswered;
  return calls > done ? calls - done : 0;
}

RpcStats::Program& RpcStats::Program::operator+=(const Program& other) {
  calls += other.calls;
  failed += other.failed;
  unanswered += other.unanswered;
  call_bytes += other.call_bytes;
  reply_bytes += other.reply_bytes;
  read_bytes += other.read_bytes;
  write_bytes += other.write_bytes;
  latency_ns += other.latency_ns;
  for (std::size_t b = 0; b < kLatencyBuckets; ++b) by_latency[b] += other.by_latency[b];
  return *this;
}

RpcStats::Snapshot RpcStats::snapshot() const {
  const auto value = [](const Counter& counter) { return counter.load(std::memory_order_acquire); };
  Snapshot out;
  for (std::size_t i = 0; i < kRpcPrograms; ++i) {
    const Counters& from = programs_[i];
    Program& to = out[i];
    // Ends before beginnings, as in Stats::snapshot().
    for (std::size_t b = 0; b < kLatencyBuckets; ++b) to.by_latency[b] = value(from.by_latency[b]);
    to.failed = value(from.failed);
    to.unanswered = value(from.unanswered);
    to.calls = value(from.calls);
    to.call_bytes = value(from.call_bytes);
    to.reply_bytes = value(from.reply_bytes);
    to.read_bytes = value(from.read_bytes);
    to.write_bytes = value(from.write_bytes);
    to.latency_ns = value(from.latency_ns);
  }
  return out;
}

bool RpcMeter::take(RpcProgram program) {
  std::uint32_t& out = outstanding_[static_cast<std::size_t>(program)];
  if (out == 0) return false;
  --out;
  return true;
}

void RpcMeter::called(RpcProgram program, std::uint64_t bytes) {
  ++outstanding_[static_cast<std::size_t>(program)];
  stats_.called(program, bytes);
}

void RpcMeter::replied(RpcProgram program, std::uint64_t bytes, std::chrono::nanoseconds latency, ByRdma by_rdma) {
  if (take(program)) stats_.replied(program, bytes, latency, by_rdma);
}

void RpcMeter::failed(RpcProgram program) {
  if (take(program)) stats_.failed(program);
}

void RpcMeter::end() {
  for (std::size_t i = 0; i < kRpcPrograms; ++i) {
    if (const std::uint32_t calls = std::exchange(outstanding_[i], 0))
      stats_.unanswered(static_cast<RpcProgram>(i), calls);
  }
}

}  // namespace iwarp::gateway
