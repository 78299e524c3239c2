// Messages without octets: no memory is needed or looked at, and STag 0 is nobody's.
#include <gtest/gtest.h>

#include "tests/support/covers.h"
#include "tests/support/pair.h"
#include "tests/support/raw_peer.h"

namespace iwarp::stream {
namespace {

using test::Bytes;
using test::Pair;
using test::PairOptions;
using test::RawPeer;
using test::RawPeerOptions;

// Each operation with no piece, with pieces of no registered memory, at a remote STag of 0 and of nobody.
TEST(ZeroLength, EveryOperation) {
  COVERS("RFC5040-5.1-10");
  COVERS("RFC5040-5.2.1-13");
  COVERS("RFC5040-5.2.1-16");
  COVERS("RFC5040-5.2.1-17");
  COVERS("RFC5040-5.3-11");
  COVERS("RFC5040-5.3-12");
  COVERS("RFC5041-5.2-16");
  using rdmap::SendOp;
  for (const bool crc : {true, false}) {
    PairOptions o;
    o.initiator_policy.crc = o.responder_policy.crc = crc ? mpa::Policy::Crc::kOn : mpa::Policy::Crc::kPreferOff;
    o.initiator.rfc7306 = o.responder.rfc7306 = true;
    o.initiator.sq_depth = o.responder.rq_depth = 64;
    Pair p(o);
    p.establish();
    const rdmap::Sge nowhere{nullptr, 0, Stag{}};
    std::uint64_t id = 0, arriving = 0;
    for (const SendOp op : {SendOp::kSend, SendOp::kWrite, SendOp::kRead, SendOp::kWriteImmediate}) {
      for (const rdmap::SgeList& sges : {rdmap::SgeList(), rdmap::SgeList(nowhere), test::list({nowhere, nowhere})}) {
        for (const bool inlined : {false, true}) {
          if (inlined && op == SendOp::kRead) continue;
          for (const Stag stag : {Stag{}, Stag{0xFFFFFFFF}}) {
            if (op == SendOp::kSend || op == SendOp::kWriteImmediate) {
              p.responder.post(
                  rdmap::RecvWr{++arriving, arriving % 2 == 0 ? rdmap::SgeList() : rdmap::SgeList(nowhere)});
            }
            p.initiator.post({.wr_id = ++id,
                              .op = op,
                              .sges = sges,
                              .remote_stag = stag,
                              .remote_to = ~std::uint64_t{0},
                              .inline_data = inlined});
          }
        }
      }
    }
    p.settle();
    ASSERT_EQ(p.initiator.sends.size(), id) << p.log();
    ASSERT_EQ(p.responder.recvs.size(), arriving);
    for (const auto* completions : {&p.initiator.sends, &p.responder.recvs}) {
      for (const auto& c : *completions) {
        EXPECT_EQ(c.status, Errc::kOk);
        EXPECT_EQ(c.byte_len, 0U);
      }
    }
  }
}

TEST(ZeroLength, SendWithInvalidateStillInvalidates) {
  Pair p;
  p.establish();
  auto& exposed = p.responder.region(10, test::kRemoteAll | ddp::Access::kRemoteInvalidate, 0x10000, p.responder.key());
  p.responder.post(rdmap::RecvWr{.wr_id = 1});
  p.initiator.post({.wr_id = 2, .op = rdmap::SendOp::kSendInvalidate, .remote_stag = exposed.stag()});
  p.settle();
  ASSERT_EQ(p.responder.recvs.size(), 1U) << p.log();
  EXPECT_TRUE(p.responder.recvs[0].invalidated);
  EXPECT_FALSE(p.responder.stags().valid(exposed.stag()));
}

TEST(ZeroLength, StagZeroIsTakenFromPeers) {
  COVERS("RFC5040-5.2.1-16");
  COVERS("RFC5040-5.2.1-17");
  COVERS("RFC5041-5.2-16");
  RawPeerOptions o;
  o.we_initiate = true;
  RawPeer p(o);
  p.feed_ulpdu(test::write_segment(Stag{}, 0, {}));
  p.feed_ulpdu(test::write_segment(Stag{}, ~std::uint64_t{0}, {}, false));
  p.feed_ulpdu(test::write_segment(Stag{}, 0, {}));
  p.feed_ulpdu(test::read_request_segment({Stag{}, 7, 0, Stag{}, ~std::uint64_t{0}}));
  const auto answers = p.ulpdus();
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0], test::tagged_segment(rdmap::Opcode::kReadResponse, Stag{}, 7, {}));
  p.end.post({.wr_id = 1, .op = rdmap::SendOp::kRead});
  (void)p.ulpdus();
  p.feed_ulpdu(test::tagged_segment(rdmap::Opcode::kReadResponse, Stag{}, 0, {}));
  ASSERT_EQ(p.end.sends.size(), 1U);
  EXPECT_EQ(p.end.sends[0].status, Errc::kOk);
}

TEST(ZeroLength, StagZeroWithOctetsIsInvalid) {
  RawPeer write, read;
  (void)write.end.region(10, test::kRemoteAll, 0);
  (void)read.end.region(10, test::kRemoteAll, 0);
  write.feed_ulpdu(test::write_segment(Stag{}, 0, test::pattern(1)));
  EXPECT_EQ(write.terminate().substr(0, 4), "1100");
  read.feed_ulpdu(test::read_request_segment({Stag{1}, 0, 1, Stag{}, 0}));
  EXPECT_EQ(read.terminate().substr(0, 4), "0100");
}

// Chelsio hardware refuses STag 0 even there.
TEST(ZeroLength, StagZeroIsNeverSent) {
  RawPeerOptions o;
  o.we_initiate = true;
  RawPeer p(o);
  p.end.post({.wr_id = 1, .op = rdmap::SendOp::kWrite});
  p.end.post({.wr_id = 2, .op = rdmap::SendOp::kRead});
  p.end.post({.wr_id = 3, .op = rdmap::SendOp::kWrite, .remote_stag = Stag{0x1234}});
  const auto sent = p.ulpdus();
  ASSERT_EQ(sent.size(), 3U);
  const auto write = std::get<ddp::TaggedHeader>(*ddp::parse_segment_header(sent[0]));
  EXPECT_NE(write.stag, Stag{});
  const auto read = rdmap::ReadRequest::parse(ConstBytes(sent[1]).subspan(ddp::UntaggedHeader::kSize));
  ASSERT_TRUE(read);
  EXPECT_NE(read->source_stag, Stag{});
  EXPECT_NE(read->sink_stag, Stag{});
  EXPECT_EQ(std::get<ddp::TaggedHeader>(*ddp::parse_segment_header(sent[2])).stag, Stag{0x1234});
}

}  // namespace
}  // namespace iwarp::stream
