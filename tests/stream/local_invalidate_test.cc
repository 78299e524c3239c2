// Local Invalidate and RDMA Read with Local Invalidate between two connections, and at the end of one.
#include <gtest/gtest.h>

#include "tests/support/covers.h"
#include "tests/support/pair.h"
#include "tests/support/raw_peer.h"

namespace iwarp::stream {
namespace {

using test::Bytes;
using test::Pair;
using test::pattern;
using test::RawPeer;

rdmap::SendWr local_invalidate(std::uint64_t id, Stag stag) {
  return {.wr_id = id, .op = rdmap::SendOp::kLocalInvalidate, .local_stag = stag};
}

// The Send is in the gather list, its octets are still needed: the STag dies when the last of them has left.
TEST(LocalInvalidate, ComesWhenTheSendsBeforeItHaveLeft) {
  RawPeer p({.we_initiate = true});
  auto& outbox = p.end.region(3000);
  outbox.fill(pattern(3000));
  p.end.post(test::send_wr(1, outbox.all()));
  p.end.post(local_invalidate(2, outbox.stag()));
  p.end.post(local_invalidate(3, outbox.stag()));
  EXPECT_EQ(p.drain(2000), 2000U);
  EXPECT_TRUE(p.end.stags().valid(outbox.stag()));
  const auto ulpdus = p.ulpdus();
  EXPECT_EQ(ulpdus.size(), 3U);
  EXPECT_FALSE(p.end.stags().valid(outbox.stag()));
  ASSERT_EQ(p.end.sends.size(), 3U) << p.end.log();
  EXPECT_EQ(p.end.sends[0].status, Errc::kOk);
  for (const std::size_t i : {1, 2}) {
    EXPECT_EQ(p.end.sends[i].op, rdmap::WcOp::kLocalInvalidate);
    EXPECT_EQ(p.end.sends[i].status, Errc::kOk);
    EXPECT_TRUE(p.end.sends[i].invalidated);
    EXPECT_EQ(p.end.sends[i].invalidated_stag, outbox.stag());
  }
}

// RPC-over-RDMA and its like: exposed memory is fenced before anybody looks at it.
TEST(LocalInvalidate, KeepsThePeerOut) {
  COVERS("RFC5040-8.1.1-5");
  RawPeer p({.we_initiate = true});
  auto& exposed = p.end.region(100, test::kRemoteAll);
  p.end.post(local_invalidate(1, exposed.stag()));
  (void)p.ulpdus();
  ASSERT_EQ(p.end.sends.size(), 1U);
  p.feed_ulpdu(test::write_segment(exposed.stag(), exposed.to(), pattern(8)));
  EXPECT_EQ(p.terminate().substr(0, 4), "1100") << "DDP, tagged, invalid STag";
  EXPECT_EQ(exposed.bytes(), Bytes(100));
}

TEST(LocalInvalidate, OfAForeignStagEndsTheConnection) {
  RawPeer p({.we_initiate = true});
  auto& foreign = p.end.region(100, test::kLocal, 0x10000, ddp::StreamKey{PdId{99}, ddp::StreamId{1}});
  p.end.post(local_invalidate(1, foreign.stag()));
  (void)p.ulpdus();
  ASSERT_EQ(p.end.sends.size(), 1U);
  EXPECT_EQ(p.end.sends[0].status, Errc::kLocalProtection);
  EXPECT_TRUE(p.end.stags().valid(foreign.stag()));
  EXPECT_GT(p.end.conn().phase(), Phase::kFull);
}

TEST(LocalInvalidate, TakesNoMemory) {
  RawPeer p({.we_initiate = true});
  auto& region = p.end.region(100);
  rdmap::SendWr wr = local_invalidate(1, region.stag());
  wr.sges = region.all();
  EXPECT_EQ(p.end.conn().post_send(wr).error().code, Errc::kInvalidArgument);
  wr = test::read_wr(1, test::list({region.sge(0, 1), region.sge(1, 1)}), region);
  wr.op = rdmap::SendOp::kReadInvalidate;
  EXPECT_EQ(p.end.conn().post_send(wr).error().code, Errc::kInvalidArgument);
  wr.sges = {};
  EXPECT_EQ(p.end.conn().post_send(wr).error().code, Errc::kInvalidArgument);
}

// Nothing is sent any more after it, and the orderly end comes all the same.
TEST(LocalInvalidate, IsTheLastThingBeforeAnOrderlyEnd) {
  Pair p;
  p.establish();
  auto& region = p.initiator.region(100);
  p.initiator.post(local_invalidate(1, region.stag()));
  p.initiator.conn().disconnect(p.now);
  p.settle();
  ASSERT_EQ(p.initiator.sends.size(), 1U) << p.log();
  EXPECT_EQ(p.initiator.sends[0].status, Errc::kOk);
  EXPECT_FALSE(p.initiator.stags().valid(region.stag()));
  EXPECT_TRUE(p.to_responder.fin_sent);
}

TEST(LocalInvalidate, WaitsForTheConnectionAndIsFlushedWithoutIt) {
  RawPeer p({.finish_startup = false});
  auto& region = p.end.region(100);
  p.end.post(local_invalidate(1, region.stag()));
  EXPECT_TRUE(p.end.stags().valid(region.stag()));
  p.end.conn().abort(make_error(Errc::kAborted));
  p.end.collect();
  ASSERT_EQ(p.end.sends.size(), 1U);
  EXPECT_EQ(p.end.sends[0].status, Errc::kFlushed);
  EXPECT_FALSE(p.end.sends[0].invalidated);
  EXPECT_TRUE(p.end.stags().valid(region.stag()));
}

TEST(ReadInvalidate, RevokesItsSinkOfWhateverLength) {
  for (const std::size_t size : {0U, 1U, 300U, 20000U}) {
    Pair p;
    p.establish();
    auto& source = p.responder.region(20000, test::kRemoteAll);
    source.fill(pattern(20000));
    auto& sink = p.initiator.region(20000);
    rdmap::SendWr read = test::read_wr(1, sink.sge(0, size), source);
    read.op = rdmap::SendOp::kReadInvalidate;
    p.initiator.post(read);
    p.initiator.post(local_invalidate(2, sink.stag()));  // of what is dead by then
    p.settle();
    ASSERT_EQ(p.initiator.sends.size(), 2U) << p.log();
    EXPECT_EQ(p.initiator.sends[0].op, rdmap::WcOp::kRead);
    EXPECT_EQ(p.initiator.sends[0].byte_len, size);
    EXPECT_EQ(p.initiator.sends[0].status, Errc::kOk);
    EXPECT_TRUE(p.initiator.sends[0].invalidated);
    EXPECT_EQ(p.initiator.sends[0].invalidated_stag, sink.stag());
    EXPECT_EQ(p.initiator.sends[1].status, Errc::kOk);
    EXPECT_FALSE(p.initiator.stags().valid(sink.stag()));
    EXPECT_TRUE(std::equal(sink.bytes().begin(), sink.bytes().begin() + static_cast<std::ptrdiff_t>(size),
                           source.bytes().begin()));
  }
}

}  // namespace
}  // namespace iwarp::stream
