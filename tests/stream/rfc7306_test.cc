// What RFC 7306 adds, between two connections, and what is refused where it is off.
#include <gtest/gtest.h>

#include "tests/support/covers.h"
#include "tests/support/pair.h"
#include "tests/support/raw_peer.h"

namespace iwarp::stream {
namespace {

using test::Bytes;
using test::hex;
using test::Pair;
using test::PairOptions;
using test::pattern;
using test::RawPeer;
using test::RawPeerOptions;
using test::send_segment;

TEST(Rfc7306, WriteWithImmediateDataIsOneCompletionAtEachEnd) {
  COVERS("RFC7306-6-1");
  COVERS("RFC7306-7-6");
  COVERS("RFC7306-6-2");
  PairOptions o;
  o.initiator.rfc7306 = o.responder.rfc7306 = true;
  Pair p(o);
  p.establish();
  auto& source = p.initiator.region(20000);
  auto& sink = p.responder.region(20000, test::kRemoteAll);
  source.fill(pattern(20000));
  for (const std::uint64_t id : {1, 2, 3}) p.responder.post(rdmap::RecvWr{.wr_id = id});
  p.initiator.post({.wr_id = 4, .op = rdmap::SendOp::kImmediate, .immediate = 0x1122334455667788});
  rdmap::SendWr write = test::write_wr(5, source.all(), sink);
  write.op = rdmap::SendOp::kWriteImmediate;
  write.immediate = 99;
  write.solicited = true;
  p.initiator.post(write);
  p.settle();
  ASSERT_EQ(p.responder.recvs.size(), 2U) << p.log();
  EXPECT_EQ(p.responder.recvs[0].immediate, 0x1122334455667788U);
  EXPECT_FALSE(p.responder.recvs[0].solicited);
  EXPECT_TRUE(p.responder.recvs[1].has_immediate);
  EXPECT_EQ(p.responder.recvs[1].immediate, 99U);
  EXPECT_TRUE(p.responder.recvs[1].solicited);
  EXPECT_EQ(sink.bytes(), pattern(20000)) << "all is placed when the Immediate Data completes";
  ASSERT_EQ(p.initiator.sends.size(), 2U);
  EXPECT_EQ(p.initiator.sends[1].op, rdmap::WcOp::kWrite);
}

TEST(Rfc7306, IsNeverSentWhereItIsOff) {
  COVERS("RFC7306-1.1-1");
  COVERS("RFC7306-1.1-2");
  RawPeer p;
  for (const auto op : {rdmap::SendOp::kImmediate, rdmap::SendOp::kWriteImmediate}) {
    const auto refused = p.end.conn().post_send({.wr_id = 1, .op = op});
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, Errc::kInvalidArgument);
    EXPECT_NE(std::string(refused.error().why).find("stream::Options::rfc7306"), std::string::npos);
  }
  EXPECT_TRUE(p.ulpdus().empty());
}

TEST(Rfc7306, IsRefusedAsAnUnknownOpcodeWhereItIsOff) {
  COVERS("RFC7306-1.1-4");
  COVERS("RFC7306-8.1-3");
  RawPeer p;
  p.end.post(rdmap::RecvWr{.wr_id = 1});
  const Bytes ulpdu = send_segment(pattern(8), {}, rdmap::Opcode::kImmediate);
  p.feed_ulpdu(ulpdu);
  EXPECT_EQ(p.terminate(), "0206c000001a" + test::to_hex(Bytes(ulpdu.begin(), ulpdu.begin() + 18)));
  ASSERT_EQ(p.end.recvs.size(), 1U);
  EXPECT_EQ(p.end.recvs[0].status, Errc::kFlushed);
}

TEST(Rfc7306, ImmediateDataThatIsTooShortEndsTheConnection) {
  COVERS("RFC7306-6.1-3");
  COVERS("RFC7306-8.1-1");
  COVERS("RFC7306-8.1-3");
  RawPeerOptions o;
  o.stream.rfc7306 = true;
  RawPeer p(o);
  p.end.post(rdmap::RecvWr{.wr_id = 1});
  p.end.post(rdmap::RecvWr{.wr_id = 2});
  const Bytes ulpdu = send_segment(pattern(7), {}, rdmap::Opcode::kImmediate);
  p.feed_ulpdu(ulpdu);
  EXPECT_EQ(p.terminate(), "02ffc0000019" + test::to_hex(Bytes(ulpdu.begin(), ulpdu.begin() + 18)));
  ASSERT_EQ(p.end.recvs.size(), 2U);
  EXPECT_EQ(p.end.recvs[0].status, Errc::kMalformedImmediate);
  EXPECT_EQ(p.end.recvs[1].status, Errc::kFlushed);
}

TEST(Rfc7306, ImmediateDataHasNoMemory) {
  RawPeerOptions o;
  o.stream.rfc7306 = true;
  RawPeer p(o);
  rdmap::SendWr wr = test::send_wr(1, p.end.region(8).all());
  wr.op = rdmap::SendOp::kImmediate;
  EXPECT_EQ(p.end.conn().post_send(wr).error().code, Errc::kInvalidArgument);
}

}  // namespace
}  // namespace iwarp::stream
