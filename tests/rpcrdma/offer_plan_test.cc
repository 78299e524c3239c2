// plan_offer(): what travels how, from the Call alone.
#include "iwarp/rpcrdma/offer_plan.h"

#include "tests/rpcrdma/rpc_samples.h"
#include "tests/rpcrdma/wire_vectors.h"
#include "tests/support/covers.h"

namespace iwarp::rpcrdma::test {
namespace {

using iwarp::test::compound_call;
using iwarp::test::pattern;

constexpr std::size_t kMax = 1 << 20;

OfferPlan plan(const Bytes& call, const OfferPolicy& policy = {}, std::size_t inline_bytes = 4096) {
  return plan_offer(call, ResultBinding::for_call(call), policy, inline_bytes, inline_bytes, kMax);
}
std::size_t rest(const OfferPlan& p) {
  std::size_t n = 0;
  for (const ByteRange& r : p.rest) n += r.length;
  return n;
}
// COMPOUND of READs.
Bytes reads(std::initializer_list<std::uint32_t> counts) {
  auto out = compound_call(static_cast<std::uint32_t>(counts.size()));
  for (const std::uint32_t count : counts) out.words({25, 1, 2, 3, 4, 0, 0, count});
  return out.bytes();
}

TEST(OfferPlan, ShortCallsGoInLine) {
  const Bytes call = write_call(1, pattern(100));
  const OfferPlan p = plan(call);
  EXPECT_TRUE(p.in_line);
  EXPECT_TRUE(p.data.empty());
  EXPECT_EQ(rest(p), call.size());
  EXPECT_TRUE(p.write_chunks.empty());
  EXPECT_EQ(p.reply_chunk, 0u);
}

TEST(OfferPlan, DataOfLongCallsAreReadChunks) {
  COVERS("RFC8166-3.4.5-2");
  COVERS("RFC8166-3.4.5.2-1");
  for (const std::size_t size : {5000u, 5001u, 5003u}) {
    const Bytes call = write_call(1, pattern(size));
    const OfferPlan p = plan(call);
    EXPECT_TRUE(p.in_line);
    ASSERT_EQ(p.data.size(), 1u);
    EXPECT_EQ(p.data[0].length, size);
    EXPECT_EQ(p.data[0].position, write_call(1, {}).size());
    EXPECT_EQ(rest(p), write_call(1, {}).size());  // neither data nor padding
  }
}

void expect_one_chunk(const OfferPlan& p, const Bytes& call) {
  EXPECT_FALSE(p.in_line);
  EXPECT_TRUE(p.data.empty());
  ASSERT_EQ(p.rest.size(), 1u);
  EXPECT_EQ(p.rest[0].offset, 0u);
  EXPECT_EQ(p.rest[0].length, call.size());
}

TEST(OfferPlan, WhatIsStillTooLongIsAPositionZeroChunkBesideThemByPolicy) {
  auto call = compound_call(3);
  call.w(38).fill(16).d(0).w(2).opaque(2000);  // WRITE
  call.words({15}).opaque(3000);               // LOOKUP of a long name
  call.w(38).fill(16).d(0).w(2).opaque(1001);
  expect_one_chunk(plan(call.bytes(), {}, 1024), call.bytes());
  expect_one_chunk(plan(call.bytes(), {.read_chunks = 2}, 1024), call.bytes());
  expect_one_chunk(plan(call.bytes(), {.with_position_zero = true}, 1024), call.bytes());
  const OfferPlan p = plan(call.bytes(), {.read_chunks = 2, .with_position_zero = true}, 1024);
  EXPECT_FALSE(p.in_line);
  ASSERT_EQ(p.data.size(), 2u);
  EXPECT_EQ(p.data[1].length, 1001u);
  EXPECT_EQ(rest(p), call.size() - 2000 - 1004);
  EXPECT_EQ(p.rest.size(), 2u);
}

TEST(OfferPlan, MoreDataThanThePolicyHasChunksForAreOneChunk) {
  auto call = compound_call(2);
  for (int i = 0; i < 2; ++i) call.w(38).fill(16).d(0).w(2).opaque(3000);
  expect_one_chunk(plan(call.bytes()), call.bytes());
  const OfferPlan two = plan(call.bytes(), {.read_chunks = 2});
  EXPECT_TRUE(two.in_line);
  EXPECT_EQ(two.data.size(), 2u);
}

// The header goes in a Send, which has to fit as well.
TEST(OfferPlan, SoManyChunksThatTheHeaderIsTooLongAreOneChunk) {
  auto call = compound_call(200);
  for (int i = 0; i < 200; ++i) call.w(38).fill(16).d(0).w(2).opaque(512);
  expect_one_chunk(plan(call.bytes(), {.read_chunks = 1000, .with_position_zero = true}), call.bytes());
}

TEST(OfferPlan, WithoutABindingOrByPolicyLongCallsAreOneChunk) {
  const Bytes nfs = write_call(1, pattern(5000));
  const Bytes other = rpc_call(1, 400'000, 1, 1, pattern(5000));
  for (const OfferPlan& p : {plan(nfs, {.read_chunks = 0}), plan(other)}) {
    EXPECT_FALSE(p.in_line);
    EXPECT_TRUE(p.data.empty());
    EXPECT_EQ(p.rest.size(), 1u);
  }
  // Data too short for a chunk of their own.
  const Bytes call = write_call(1, pattern(1000));
  EXPECT_TRUE(plan(call, {.least_bytes = 1001}, 1024).data.empty());
  EXPECT_EQ(plan(call, {.least_bytes = 1000}, 1024).data.size(), 1u);
}

TEST(OfferPlan, AReadThatMayBeLongGetsAWriteChunkOfItsCount) {
  COVERS("RFC8166-3.4.6-2");
  COVERS("RFC8166-3.4.6.2-1");
  for (const std::uint32_t count : {5000u, 5001u, 65536u}) {
    const OfferPlan p = plan(read_call(1, count));
    ASSERT_EQ(p.write_chunks.size(), 1u);
    EXPECT_EQ(p.write_chunks[0], count);  // no room for padding
    EXPECT_EQ(p.reply_chunk, 0u);
    EXPECT_LE(p.reply_rest + kMinHeaderBytes + 24, 4096u);
  }
  EXPECT_TRUE(plan(read_call(1, 1000)).write_chunks.empty());
  EXPECT_EQ(plan(read_call(1, 1000)).reply_chunk, 0u);
}

TEST(OfferPlan, EveryOtherReplyThatMayBeLongGetsAReplyChunk) {
  COVERS("RFC8166-4.3.3-1");
  EXPECT_GT(plan(readdir_call(1)).reply_chunk, 65536u);
  EXPECT_LT(plan(readdir_call(1)).reply_chunk, 3 * 65536u);
  EXPECT_EQ(plan(rpc_call(1, 400'000, 1, 1)).reply_chunk, kMax);
  EXPECT_EQ(plan(rpc_call(1, kNfs, 3, 5, file_handle())).reply_chunk, kMax);  // READLINK
  const OfferPlan off = plan(read_call(1, 65536), {.write_chunks = 0});
  EXPECT_TRUE(off.write_chunks.empty());
  EXPECT_GT(off.reply_chunk, 65536u);
  const OfferPlan too_long = plan(read_call(1, kMax));  // more than there is room for
  EXPECT_TRUE(too_long.write_chunks.empty());
  EXPECT_EQ(too_long.reply_chunk, kMax);
}

// By policy only.
TEST(OfferPlan, APathOfReadlinkGetsAWriteChunk) {
  COVERS("RFC8267-4-4");
  COVERS("RFC8267-6.1-4");
  const Bytes v2 = rpc_call(1, kNfs, 2, 5, Bytes(32)), v3 = rpc_call(1, kNfs, 3, 5, file_handle());
  const Bytes v4 = compound_call(3).words({22}).opaque(64).words({27, 10}).bytes();
  for (const Bytes& call : {v3, v4}) {
    for (const std::uint32_t most : {4096u, 4095u, 2000u}) {
      const OfferPlan p = plan(call, {.readlink_bytes = most}, 2048);
      ASSERT_EQ(p.write_chunks.size(), 1u) << most;
      EXPECT_EQ(p.write_chunks[0], most);
      EXPECT_EQ(p.reply_chunk, 0u);
      EXPECT_FALSE(p.guessed);
      EXPECT_LT(p.reply_rest, 1024u);
    }
    const OfferPlan in_line = plan(call, {.readlink_bytes = 1000}, 4096);
    EXPECT_TRUE(in_line.write_chunks.empty());
    EXPECT_EQ(in_line.reply_chunk, 0u) << "it fits";
    EXPECT_EQ(plan(call, {.write_chunks = 0, .readlink_bytes = 4096}).reply_chunk,
              plan(call, {.write_chunks = 0, .readlink_bytes = 4095}).reply_chunk);
    EXPECT_LT(plan(call, {.write_chunks = 0, .readlink_bytes = 4096}).reply_chunk, 5000u) << "it bounds a Reply chunk";
    EXPECT_EQ(plan(call).reply_chunk, kMax);
  }
  EXPECT_EQ(plan(v2, {.readlink_bytes = 4096}).reply_chunk, 0u) << "1024 octets at most";
  ASSERT_EQ(plan(v2, {.readlink_bytes = 4096}, 1024).write_chunks.size(), 1u);
  EXPECT_EQ(plan(v2, {.readlink_bytes = 4096}, 1024).write_chunks[0], 1024u);
  // READ, READLINK, READ, as in section 6.4.3.
  auto three = compound_call(3);
  three.words({25, 1, 2, 3, 4, 0, 0, 8000}).words({27}).words({25, 1, 2, 3, 4, 0, 0, 9000});
  const OfferPlan several = plan(three.bytes(), {.write_chunks = 3, .readlink_bytes = 4096});
  ASSERT_EQ(several.write_chunks.size(), 3u);
  EXPECT_EQ(several.write_chunks[1], 4096u);
  const OfferPlan in_line = plan(three.bytes(), {.write_chunks = 3, .empty_write_chunks = true, .readlink_bytes = 500});
  ASSERT_EQ(in_line.write_chunks.size(), 3u);
  EXPECT_EQ(in_line.write_chunks[1], 0u);
}

TEST(OfferPlan, WhereTheCallMayBeSentAgainTheReplyChunkIsOfALikelySize) {
  COVERS("RFC8267-5.2-3");
  const Bytes getacl = rpc_call(1, 100227, 3, 1, file_handle() + words({15}));
  const OfferPlan likely = plan(getacl);
  EXPECT_TRUE(likely.guessed);
  EXPECT_LT(likely.reply_chunk, 32768u);
  const OfferPlan largest = plan(getacl, {.guess_replies = false});
  EXPECT_FALSE(largest.guessed);
  EXPECT_EQ(largest.reply_chunk, kMax);
  EXPECT_FALSE(plan(readdir_call(1)).guessed);
  EXPECT_FALSE(plan(rpc_call(1, kNfs, 3, 5, file_handle())).guessed);
  EXPECT_FALSE(plan_offer(getacl, {}, {}, 4096, 4096, 10'000).guessed) << "there is nothing larger";
}

TEST(OfferPlan, ASessionBoundsWhatNothingElseDoes) {
  COVERS("RFC8267-6.2.2-1");
  const Bytes readlink = compound_call(1).w(27).bytes();
  const Bytes read = reads({65536});
  const auto with_limit = [](const Bytes& call, std::optional<std::size_t> limit) {
    return plan_offer(call, ResultBinding::for_call(call), {}, 4096, 4096, kMax, nullptr, limit);
  };
  EXPECT_EQ(with_limit(readlink, std::nullopt).reply_chunk, kMax);
  EXPECT_EQ(with_limit(readlink, 70'000).reply_chunk, 70'000u);
  EXPECT_EQ(with_limit(readlink, kMax + 1).reply_chunk, kMax);
  EXPECT_EQ(with_limit(readlink, 4000).reply_chunk, 0u) << "fits in line";
  EXPECT_EQ(with_limit(read, 60'000).write_chunks.size(), 1u) << "a bound of its own";
}

TEST(OfferPlan, SeveralReadsGetSeveralChunksOrNone) {
  COVERS("RFC8166-4.3.2.1-3");
  const Bytes call = reads({8000, 9000});
  const OfferPlan one = plan(call);
  EXPECT_TRUE(one.write_chunks.empty());
  EXPECT_GT(one.reply_chunk, 17000u);
  const OfferPlan two = plan(call, {.write_chunks = 2});
  ASSERT_EQ(two.write_chunks.size(), 2u);
  EXPECT_EQ(two.write_chunks[0], 8000u);
  EXPECT_EQ(two.write_chunks[1], 9000u);
  EXPECT_EQ(two.reply_chunk, 0u);
  EXPECT_TRUE(
      plan(reads({8000, 8000, 8000, 8000, 8000}), {.write_chunks = 9}).write_chunks.empty());  // more than are kept
}

TEST(OfferPlan, BothOnlyByPolicy) {
  auto call = compound_call(10);
  call.words({25, 1, 2, 3, 4, 0, 0, 8000});
  call.words({10, 10, 10, 10, 10, 10, 10, 10});  // GETFH
  call.words({25, 1, 2, 3, 4, 0, 0, 9000});
  const OfferPlan never = plan(call.bytes(), {.write_chunks = 2}, 1024);
  EXPECT_TRUE(never.write_chunks.empty());
  EXPECT_GT(never.reply_chunk, 17000u);
  const OfferPlan both = plan(call.bytes(), {.write_chunks = 2, .with_reply_chunk = true}, 1024);
  EXPECT_EQ(both.write_chunks.size(), 2u);
  EXPECT_GT(both.reply_chunk, 0u);
  EXPECT_LT(both.reply_chunk, 8000u);
}

TEST(OfferPlan, AWriteChunkWhereTheRestJustFitsInLine) {
  const Bytes call = reads({8000});
  const auto with_inline = [&](std::size_t reply_inline) {
    return plan_offer(call, ResultBinding::for_call(call), {}, 4096, reply_inline, kMax);
  };
  const std::size_t least = plan(call).reply_rest + kMinHeaderBytes + 8 + Segment::kSize;
  EXPECT_EQ(with_inline(least).write_chunks.size(), 1u);
  const OfferPlan too_long = with_inline(least - 1);
  EXPECT_TRUE(too_long.write_chunks.empty());
  EXPECT_GT(too_long.reply_chunk, 8000u);
}

TEST(OfferPlan, FewDataAreNotWorthAWriteChunk) {
  const Bytes call = reads({100});
  const auto with_least = [&](std::size_t least) {
    const OfferPolicy policy{.with_reply_chunk = true, .least_bytes = least};
    return plan_offer(call, ResultBinding::for_call(call), policy, 4096, 300, kMax);
  };
  EXPECT_EQ(with_least(100).write_chunks.size(), 1u);
  EXPECT_TRUE(with_least(101).write_chunks.empty());
  EXPECT_GT(with_least(101).reply_chunk, 0u);
}

}  // namespace
}  // namespace iwarp::rpcrdma::test
