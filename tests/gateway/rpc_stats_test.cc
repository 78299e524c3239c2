#include "iwarp/gateway/rpc_stats.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/rpcrdma/rpc_samples.h"

namespace iwarp::gateway {
namespace {

using namespace std::chrono_literals;

RpcStats::Program of(const RpcStats& stats, RpcProgram program) {
  return stats.snapshot()[static_cast<std::size_t>(program)];
}

TEST(RpcStats, NamesProgramsByNumber) {
  const std::vector<std::pair<std::uint32_t, RpcProgram>> numbers = {
      {100003, RpcProgram::kNfs},     {100005, RpcProgram::kMount},     {100021, RpcProgram::kNlm},
      {100024, RpcProgram::kNsm},     {100227, RpcProgram::kAcl},       {0x40000000, RpcProgram::kCallback},
      {100000, RpcProgram::kPortmap}, {100011, RpcProgram::kOther},     {0, RpcProgram::kOther},
      {100004, RpcProgram::kOther},   {0xFFFFFFFF, RpcProgram::kOther},
  };
  for (const auto& [number, program] : numbers) {
    EXPECT_EQ(rpc_program(number), program) << number;
    EXPECT_EQ(rpc_program(ConstBytes(rpcrdma::test::rpc_call(1, number, 3, 0))), program) << number;
  }
  const auto call = rpcrdma::test::rpc_call(1, 100003, 3, 0);
  EXPECT_EQ(rpc_program(ConstBytes(call).first(15)), RpcProgram::kOther);
  EXPECT_EQ(rpc_program(ConstBytes(call).first(16)), RpcProgram::kNfs);
  EXPECT_EQ(rpc_program(ConstBytes{}), RpcProgram::kOther);
  std::set<std::string> names;
  for (std::size_t i = 0; i < kRpcPrograms; ++i) names.insert(name(static_cast<RpcProgram>(i)));
  EXPECT_EQ(names.size(), kRpcPrograms);
}

TEST(RpcStats, AddsUp) {
  RpcStats stats;
  RpcMeter meter(stats);
  for (int i = 0; i < 5; ++i) meter.called(RpcProgram::kNfs, 100);
  meter.called(RpcProgram::kMount, 7);
  meter.replied(RpcProgram::kNfs, 1000, 60us);
  meter.failed(RpcProgram::kNfs);
  const auto nfs = of(stats, RpcProgram::kNfs);
  EXPECT_EQ(nfs.calls, 5u);
  EXPECT_EQ(nfs.replies(), 1u);
  EXPECT_EQ(nfs.failed, 1u);
  EXPECT_EQ(nfs.outstanding(), 3u);
  EXPECT_EQ(nfs.call_bytes, 500u);
  EXPECT_EQ(nfs.reply_bytes, 1000u);
  EXPECT_EQ(nfs.latency_ns, 60000u);
  EXPECT_EQ(of(stats, RpcProgram::kMount).outstanding(), 1u);
  meter.end();
  meter.end();
  EXPECT_EQ(of(stats, RpcProgram::kNfs).unanswered, 3u);
  EXPECT_EQ(of(stats, RpcProgram::kNfs).outstanding(), 0u);
  EXPECT_EQ(of(stats, RpcProgram::kMount).unanswered, 1u);
  // What comes after the end, or to no Call, counts nowhere.
  meter.replied(RpcProgram::kNfs, 1, 1us);
  meter.failed(RpcProgram::kOther);
  EXPECT_EQ(of(stats, RpcProgram::kNfs).replies(), 1u);
  EXPECT_EQ(of(stats, RpcProgram::kOther), RpcStats::Program{});
}

TEST(RpcStats, PutsEachReplyIntoOneBucket) {
  RpcStats stats;
  for (const auto limit : kLatencyLimits) {
    stats.replied(RpcProgram::kNfs, 0, limit);                                // the limit belongs to its bucket
    stats.replied(RpcProgram::kNfs, 0, limit + std::chrono::nanoseconds(1));  // and what is above, to the next
  }
  stats.replied(RpcProgram::kNfs, 0, 0ns);
  stats.replied(RpcProgram::kNfs, 0, 1h);
  const auto nfs = of(stats, RpcProgram::kNfs);
  for (const std::uint64_t n : nfs.by_latency) EXPECT_EQ(n, 2u);
  EXPECT_EQ(nfs.replies(), 2 * kLatencyBuckets);
  EXPECT_TRUE(std::is_sorted(kLatencyLimits.begin(), kLatencyLimits.end()));
}

TEST(RpcStats, LosesNothingBetweenThreads) {
  constexpr int kEach = 5000;
  RpcStats stats;
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      RpcMeter meter(stats);
      for (int i = 0; i < kEach; ++i) {
        meter.called(RpcProgram::kNfs, 2);
        if (i % 2 == 0) meter.replied(RpcProgram::kNfs, 3, 1ms);
      }
      meter.end();
    });
  }
  for (int i = 0; i < 100; ++i) {
    const auto nfs = of(stats, RpcProgram::kNfs);
    EXPECT_LE(nfs.replies() + nfs.unanswered, nfs.calls);
  }
  for (auto& t : threads) t.join();
  const auto nfs = of(stats, RpcProgram::kNfs);
  EXPECT_EQ(nfs.calls, 3u * kEach);
  EXPECT_EQ(nfs.replies(), nfs.unanswered);
  EXPECT_EQ(nfs.call_bytes, 6u * kEach);
}

}  // namespace
}  // namespace iwarp::gateway
