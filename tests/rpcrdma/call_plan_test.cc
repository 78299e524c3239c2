// plan_call(): what goes where in a Call with Read chunks; CreditWindow.
#include "iwarp/rpcrdma/call_assembly.h"
#include "iwarp/rpcrdma/credits.h"
#include "tests/rpcrdma/rpc_samples.h"
#include "tests/support/covers.h"

namespace iwarp::rpcrdma::test {
namespace {

constexpr std::size_t kMax = 1 << 20;
Segment seg(std::uint32_t stag, std::uint32_t length, std::uint64_t offset = 0) {
  return {Stag{stag}, length, offset};
}

CallPlan plan(const Header& h, std::size_t inline_bytes) {
  auto p = plan_call(h, inline_bytes, kMax);
  if (!std::holds_alternative<CallPlan>(p)) throw std::runtime_error("no plan");
  return std::get<CallPlan>(p);
}
PlanFault fault(const Header& h, std::size_t inline_bytes, std::size_t max = kMax) {
  auto p = plan_call(h, inline_bytes, max);
  if (!std::holds_alternative<PlanFault>(p)) throw std::runtime_error("no fault");
  return std::get<PlanFault>(p);
}

TEST(CallPlan, InsertsChunksAtPositionsOfTheUnreducedStream) {
  COVERS("RFC8166-3.4.5-2");
  COVERS("RFC8166-3.4.5-5");
  COVERS("RFC8166-3.4.4-1");
  COVERS("RFC8166-3.4.5-1");
  COVERS("RFC8166-6.1-7");
  Header h = header(1);
  // Two chunks, listed in the wrong order; the first of 3 + 2 octets and 3 of padding.
  h.read_list = {{60, seg(2, 8)}, {40, seg(1, 3, 100)}, {40, seg(1, 2, 200)}};
  const CallPlan p = plan(h, 40 + 12 + 16);
  EXPECT_EQ(p.total_bytes, 40u + 8 + 12 + 8 + 16);
  const SmallVector<RemoteRead, 4> reads = {{40, 3, Stag{1}, 100}, {43, 2, Stag{1}, 200}, {60, 8, Stag{2}, 0}};
  EXPECT_EQ(p.reads, reads);
  const SmallVector<CallPlan::Copy, 4> copies = {{0, 0, 40}, {40, 48, 12}, {52, 68, 16}};
  EXPECT_EQ(p.copies, copies);
  const SmallVector<ByteRange, 2> zeros = {{45, 3}};
  EXPECT_EQ(p.zeros, zeros);
}

TEST(CallPlan, SplitsThePositionZeroChunkAroundOthers) {
  Header h = header(1, Proc::kNomsg);
  h.read_list = {{0, seg(1, 30, 1000)}, {0, seg(1, 0)}, {0, seg(2, 34, 2000)}, {40, seg(3, 4)}};
  const CallPlan p = plan(h, 12);  // octets behind an RDMA_NOMSG header mean nothing
  EXPECT_EQ(p.total_bytes, 68u);
  const SmallVector<RemoteRead, 4> reads = {
      {0, 30, Stag{1}, 1000}, {30, 10, Stag{2}, 2000}, {40, 4, Stag{3}, 0}, {44, 24, Stag{2}, 2010}};
  EXPECT_EQ(p.reads, reads);
  EXPECT_TRUE(p.copies.empty());
}

TEST(CallPlan, RefusesImpossiblePositions) {
  COVERS("RFC8166-3.4.5.1-1");
  Header h = header(1);
  h.read_list = {{44, seg(1, 8)}};
  EXPECT_EQ(fault(h, 40), PlanFault::kBadPositions);
  EXPECT_EQ(plan(h, 44).total_bytes, 52u);
  h.read_list = {{40, seg(1, 8)}, {44, seg(2, 4)}};
  EXPECT_EQ(fault(h, 100), PlanFault::kBadPositions);
  h.read_list = {{0xFFFFFFFC, seg(1, 8)}};
  EXPECT_EQ(fault(h, 100), PlanFault::kBadPositions);
}

TEST(CallPlan, BoundsTheTotal) {
  COVERS("RFC8166-3.4.4-3");
  Header h = header(1);
  h.read_list = {{40, seg(1, 59)}};
  EXPECT_TRUE(std::holds_alternative<CallPlan>(plan_call(h, 40, 100)));
  EXPECT_EQ(fault(h, 40, 99), PlanFault::kTooLong);  // padding counts
  h.read_list = {};
  for (int i = 0; i < 200; ++i) h.read_list.push_back({40, seg(1, 0xFFFFFFFF)});
  EXPECT_EQ(fault(h, 40), PlanFault::kTooLong);
}

TEST(CheckChunks, TakesOnlyEligibleArgumentsOfTheRightSize) {
  COVERS("RFC8166-6.1-8");
  COVERS("RFC8166-3.4.5.2-2");
  COVERS("RFC8166-3.4.5.2-4");
  const Bytes call = write_call(1, iwarp::test::pattern(101));
  const auto at = static_cast<std::uint32_t>(write_call_head(1, 101).size());
  const auto verdict = [&](std::uint32_t position, std::uint64_t length) {
    CallPlan p;
    p.chunks = {{position, length}};
    return check_chunks(call, p);
  };
  EXPECT_EQ(verdict(at, 101), ChunkVerdict::kFine);
  EXPECT_EQ(verdict(at, 104), ChunkVerdict::kFine);
  EXPECT_EQ(verdict(at, 102), ChunkVerdict::kWrongSize);
  EXPECT_EQ(verdict(at, 100), ChunkVerdict::kWrongSize);
  EXPECT_EQ(verdict(at - 4, 101), ChunkVerdict::kNotEligible);
  EXPECT_EQ(verdict(at + 4, 101), ChunkVerdict::kNotEligible);
  EXPECT_EQ(check_chunks(rpc_call(1, 100005, 3, 1, Bytes(100)), {.chunks = {{40, 4}}}), ChunkVerdict::kNotEligible);
  EXPECT_EQ(check_chunks(getattr_call(1), {}), ChunkVerdict::kFine);
  // Its three octets of padding stayed in line, behind those that were filled in.
  EXPECT_EQ(check_chunks(call + Bytes(3), {.chunks = {{at, 101}}}), ChunkVerdict::kWrongSize);
}

// COMPOUND of two WRITEs; only the second one's data came in a chunk.
TEST(CheckChunks, TakesAMixOfReducedAndInLineArguments) {
  COVERS("RFC8166-3.5.2-1");
  const Bytes write = words({38, 1, 2, 3, 4, 0, 0, 2}) + opaque(iwarp::test::pattern(50));
  const Bytes call = rpc_call(1, kNfs, 4, 1, words({0, 1, 2})) + write + write;
  const auto second = static_cast<std::uint32_t>(call.size() - 52);
  const auto first = static_cast<std::uint32_t>(second - write.size());
  EXPECT_EQ(check_chunks(call, {.chunks = {{second, 50}}}), ChunkVerdict::kFine);
  EXPECT_EQ(check_chunks(call, {.chunks = {{first, 50}}}), ChunkVerdict::kFine);
  EXPECT_EQ(check_chunks(call, {.chunks = {{first, 50}, {second, 50}}}), ChunkVerdict::kFine);
  EXPECT_EQ(check_chunks(call, {.chunks = {{second - 8, 50}}}), ChunkVerdict::kNotEligible);
}

TEST(CreditWindow, IsAbsoluteAndNeverStuck) {
  COVERS("RFC8166-3.3.3-2");
  COVERS("RFC8166-3.3.1-5");
  CreditWindow w(8);
  EXPECT_EQ(w.available(), 1u);
  w.on_call_sent();
  EXPECT_EQ(w.available(), 0u);
  w.on_grant(100);
  EXPECT_EQ(w.available(), 7u);  // min(requested, granted) - in flight
  w.on_grant(3);
  EXPECT_EQ(w.available(), 2u);
  w.on_call_sent();
  w.on_call_sent();
  w.on_grant(1);  // over a lowered grant: nothing new
  EXPECT_EQ(w.available(), 0u);
  w.on_call_done();
  w.on_call_done();
  w.on_call_done();
  w.on_grant(0);
  EXPECT_EQ(w.available(), 1u);
  EXPECT_EQ(CreditWindow(0).requested(), 1u);
}

}  // namespace
}  // namespace iwarp::rpcrdma::test
