// plan_reply(): the reply decisions where several chunks and results meet.
#include "iwarp/rpcrdma/reply_plan.h"

#include "tests/rpcrdma/rpc_samples.h"
#include "tests/support/covers.h"

namespace iwarp::rpcrdma::test {
namespace {

using iwarp::test::pattern;

constexpr std::uint32_t kReadOp = 25;
Segment seg(std::uint32_t stag, std::uint32_t length) {
  return {Stag{stag}, length, stag * 1000ull};
}

// COMPOUND of n READs.
Bytes compound_call(std::uint32_t n, std::uint32_t count) {
  Bytes out = rpc_call(1, kNfs, 4, 1, words({0, 1, n}));
  for (std::uint32_t i = 0; i < n; ++i) out = out + words({kReadOp, 1, 2, 3, 4, 0, 0, count});
  return out;
}
Bytes read_result(std::uint32_t size) {
  return words({kReadOp, 0, 1}) + opaque(pattern(size));
}
Bytes compound_reply(std::initializer_list<std::uint32_t> sizes) {
  Bytes out = rpc_reply(1, words({0, 0, static_cast<std::uint32_t>(sizes.size())}));
  for (const std::uint32_t size : sizes) out = out + read_result(size);
  return out;
}
ReplyPlan plan(const Bytes& call, const WriteList& chunks, const Bytes& reply, std::size_t inline_bytes = 4096,
               std::optional<WriteChunk> reply_chunk = std::nullopt) {
  Header h = header(1);
  h.write_list = chunks;
  h.reply_chunk = std::move(reply_chunk);
  return plan_reply(1, make_offer(h, ResultBinding::for_call(call)), reply, 64, inline_bytes);
}
std::size_t in_line(const ReplyPlan& p) {
  std::size_t n = 0;
  for (const ByteRange& r : p.in_line) n += r.length;
  return n;
}

TEST(ReplyPlan, PairsResultsWithChunksInOrder) {
  COVERS("D2005-3.7-4");
  COVERS("RFC8267-6.4.1-3");
  COVERS("RFC8267-6.4.1-4");
  COVERS("RFC8166-4.3.2.1-2");
  COVERS("RFC8166-3.4.4.4-1");
  const Bytes reply = compound_reply({101, 50, 7});
  const ReplyPlan p = plan(compound_call(3, 200), {{{seg(1, 200)}}, {{seg(2, 200)}}, {{seg(3, 200)}}}, reply);
  ASSERT_FALSE(p.error);
  ASSERT_EQ(p.writes.size(), 3u);
  const std::uint32_t sizes[] = {101, 50, 7};
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(p.writes[i].from.length, sizes[i]);
    EXPECT_EQ(p.writes[i].handle, Stag{static_cast<std::uint32_t>(i + 1)});
    EXPECT_EQ(p.header.write_list[i].length(), sizes[i]);
  }
  EXPECT_EQ(in_line(p), reply.size() - 104 - 52 - 8);  // padding is gone too
}

TEST(ReplyPlan, EmptyChunkAndMissingChunksLeaveTheirResultsInLine) {
  COVERS("RFC8267-6.4.1-5");
  COVERS("RFC8267-6.4.1-7");
  COVERS("RFC8267-6.4.3-1");
  const Bytes reply = compound_reply({100, 40, 60, 20});
  const ReplyPlan p = plan(compound_call(4, 200), {{{seg(1, 200)}}, {}, {{seg(3, 200)}}}, reply);
  ASSERT_FALSE(p.error);
  ASSERT_EQ(p.writes.size(), 2u);
  EXPECT_EQ(p.writes[1].handle, Stag{3});
  EXPECT_EQ(p.writes[1].from.length, 60u);
  EXPECT_TRUE(p.header.write_list[1].is_empty());
  EXPECT_EQ(in_line(p), reply.size() - 160);
}

TEST(ReplyPlan, AnOperationWithoutDataLeavesItsChunkUnused) {
  COVERS("RFC8166-4.3.2.2-3");
  const ReplyPlan p =
      plan(compound_call(3, 200), {{{seg(1, 200)}}, {{seg(2, 200)}}, {{seg(3, 200)}}}, compound_reply({100, 0, 60}));
  ASSERT_FALSE(p.error);
  EXPECT_EQ(p.header.write_list[1].length(), 0u);
  EXPECT_EQ(p.header.write_list[1].segments.size(), 1u);
  EXPECT_EQ(p.header.write_list[2].length(), 60u);
}

TEST(ReplyPlan, ReducesBeforeItComparesWithTheThreshold) {
  COVERS("RFC8166-3.5.3-6");
  COVERS("RFC8166-3.5.3-7");
  // Data into the Write chunk, what remains into the Reply chunk.
  const Bytes reply = compound_reply({3000, 900, 900});
  const ReplyPlan p =
      plan(compound_call(3, 4000), {{{seg(1, 4000)}}}, reply, 1024, WriteChunk{{seg(7, 1000), seg(8, 2000)}});
  ASSERT_FALSE(p.error);
  EXPECT_EQ(p.header.proc, Proc::kNomsg);
  EXPECT_EQ(p.header.write_list[0].length(), 3000u);
  EXPECT_EQ(p.reply_chunk_bytes, reply.size() - 3000);
  EXPECT_EQ(p.header.reply_chunk->segments[0].length, 1000u);
  EXPECT_EQ(p.header.reply_chunk->length(), reply.size() - 3000);
  EXPECT_TRUE(p.in_line.empty());
  // What is in front of the data, and what is behind it: without a gap, from one segment into the next.
  const std::size_t head = reply.size() - read_result(900).size() * 2 - 3000;
  EXPECT_EQ(p.writes, (RemoteWrites{{{head, 3000}, Stag{1}, 1000},
                                    {{0, head}, Stag{7}, 7000},
                                    {{head + 3000, 1000 - head}, Stag{7}, 7000 + head},
                                    {{4000, reply.size() - 4000}, Stag{8}, 8000}}));
}

TEST(ReplyPlan, EchoedListsCountAgainstTheThreshold) {
  COVERS("RFC8166-4.2.4-13");
  const Bytes reply = rpc_reply(1, Bytes(400));
  const std::size_t needed = 28 + (4 + 4 + 16) + reply.size();
  const WriteList one = {{{seg(1, 200)}}};
  EXPECT_FALSE(plan(read_call(1, 200), one, reply, needed).error);
  EXPECT_TRUE(plan(read_call(1, 200), one, reply, needed - 1).error);
  // A header that does not fit by itself cannot be helped by any Reply chunk.
  WriteChunk many;
  for (std::uint32_t i = 0; i < 64; ++i) many.segments.push_back(seg(i, 1000));
  EXPECT_TRUE(plan(read_call(1, 200), {}, rpc_reply(1), 1024, many).error);
}

TEST(ReplyPlan, ReducesNothingUnderIntegrityOrPrivacy) {
  COVERS("RFC8166-8.2.2.3-2");
  for (const std::uint32_t service : {1u, 2u, 3u}) {
    // The same READ with an RPCSEC_GSS credential: version, procedure, sequence, service, handle.
    const Bytes head = words({1, 0, 2, kNfs, 3, 6, 6, 24, 1, 0, 9, service, 4, 0xABCD, 0, 0});
    const Bytes call = head + file_handle() + words({0, 0, 200});
    const ReplyPlan p = plan(call, {{{seg(1, 200)}}}, read_reply(1, pattern(200)));
    ASSERT_FALSE(p.error);
    EXPECT_EQ(p.reduced_bytes, service == 1 ? 200u : 0u);
    EXPECT_EQ(p.header.write_list[0].length(), service == 1 ? 200u : 0u);
  }
}

TEST(ReplyPlan, FindsTheSoleHandleInAllChunks) {
  COVERS("RFC8797-4.1-2");
  Header h = header(1);
  EXPECT_FALSE(make_offer(h, {}).sole_handle);
  h.read_list = {{40, seg(5, 10)}, {40, seg(5, 0)}};
  EXPECT_EQ(make_offer(h, {}).sole_handle, Stag{5});
  h.reply_chunk = WriteChunk{{seg(5, 10)}};
  EXPECT_EQ(make_offer(h, {}).sole_handle, Stag{5});
  h.write_list.push_back({{seg(6, 10)}});
  EXPECT_FALSE(make_offer(h, {}).sole_handle);
}

}  // namespace
}  // namespace iwarp::rpcrdma::test
