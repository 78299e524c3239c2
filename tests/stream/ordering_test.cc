// What an application may rely on: order of completions, fences, Read depths, invalidation.
#include <gtest/gtest.h>

#include "tests/support/covers.h"
#include "tests/support/pair.h"
#include "tests/support/raw_peer.h"

namespace iwarp::stream {
namespace {

using test::Bytes;
using test::Pair;
using test::PairOptions;
using test::pattern;
using test::RawPeer;
using test::RawPeerOptions;
using test::operator|;

std::vector<std::uint64_t> ids(const std::vector<rdmap::Completion>& completions) {
  std::vector<std::uint64_t> out;
  for (const auto& c : completions) {
    EXPECT_EQ(c.status, Errc::kOk);
    out.push_back(c.wr_id);
  }
  return out;
}
using Ids = std::vector<std::uint64_t>;

char kind(const Bytes& ulpdu) {
  return "WrRSIsiT"[std::to_integer<unsigned>(ulpdu[1]) & 7];
}
std::string kinds(const std::vector<Bytes>& ulpdus) {
  std::string out;
  for (const Bytes& u : ulpdus) out += kind(u);
  return out;
}

RawPeerOptions initiating(std::uint16_t ord) {
  RawPeerOptions o;
  o.we_initiate = true;
  o.ird = o.ord = ord;
  return o;
}

Bytes response(const test::Region& sink, std::size_t offset, std::size_t bytes) {
  return test::tagged_segment(rdmap::Opcode::kReadResponse, sink.stag(), sink.to(offset), pattern(bytes));
}

rdmap::SendWr read(std::uint64_t id, const rdmap::SgeList& sink) {
  rdmap::SendWr wr = test::send_wr(id, sink);
  wr.op = rdmap::SendOp::kRead;
  wr.remote_stag = Stag{0x700};
  return wr;
}

TEST(Ordering, CompletionsFollowPosting) {
  COVERS("RFC5040-5.5-22");
  COVERS("RFC5040-5.1-7");
  COVERS("RFC5040-1.1-2");
  RawPeer p(initiating(4));
  auto& sink = p.end.region(100);
  p.end.post(read(1, sink.sge(0, 10)));
  p.end.post(test::send_wr(2, sink.sge(20, 10)));
  p.end.post(read(3, sink.sge(10, 10)));
  EXPECT_EQ(kinds(p.ulpdus()), "rSr");
  EXPECT_TRUE(p.end.sends.empty()) << "the Send completes after the Read before it";
  p.feed_ulpdu(response(sink, 0, 10));
  EXPECT_EQ(ids(p.end.sends), (Ids{1, 2}));
  p.feed_ulpdu(response(sink, 10, 10));
  EXPECT_EQ(ids(p.end.sends), (Ids{1, 2, 3}));
}

TEST(Ordering, FenceHoldsBackTheLaterOperation) {
  COVERS("RFC5040-5.5-19");
  RawPeer p(initiating(4));
  auto& sink = p.end.region(100);
  p.end.post(read(1, sink.sge(0, 10)));
  p.end.post(read(2, sink.sge(10, 10)));
  rdmap::SendWr fenced = test::send_wr(3, sink.sge(0, 10));
  fenced.fence = true;
  p.end.post(fenced);
  EXPECT_EQ(kinds(p.ulpdus()), "rr");
  p.feed_ulpdu(response(sink, 0, 10));
  EXPECT_EQ(kinds(p.ulpdus()), "");
  p.feed_ulpdu(response(sink, 10, 10));
  const auto sent = p.ulpdus();
  EXPECT_EQ(kinds(sent), "S");
  EXPECT_EQ(Bytes(sent[0].begin() + 18, sent[0].end()), pattern(10)) << "it carries what the Read brought";
}

TEST(Ordering, OrdLimitsReadsInFlight) {
  COVERS("RFC5040-6.1-7");
  COVERS("RFC5040-6.1-9");
  COVERS("RFC5040-6.1-3");
  COVERS("RFC5040-8.1.1-13");
  COVERS("RFC5042-6.4.3.3-3");
  COVERS("RFC6581-3-2");
  COVERS("RFC6581-9.1-1");
  RawPeer p(initiating(2));
  auto& sink = p.end.region(100);
  for (std::uint64_t i = 0; i < 4; ++i) p.end.post(read(i, sink.sge(i * 10, 10)));
  EXPECT_EQ(kinds(p.ulpdus()), "rr");
  p.feed_ulpdu(response(sink, 0, 10));
  EXPECT_EQ(kinds(p.ulpdus()), "r");
  p.feed_ulpdu(response(sink, 10, 10));
  p.feed_ulpdu(response(sink, 20, 10));
  EXPECT_EQ(kinds(p.ulpdus()), "r");
}

TEST(Ordering, RtrByReadTakesOneOfTheReads) {
  COVERS("RFC6581-9.2-6");
  COVERS("RFC6581-5-2");
  RawPeerOptions o = initiating(1);
  o.peer_to_peer = true;
  RawPeer p(o);
  auto& sink = p.end.region(100);
  p.end.post(read(1, sink.sge(0, 10)));
  EXPECT_EQ(kinds(p.ulpdus()), "r") << "the RTR alone";
  p.feed_ulpdu(test::tagged_segment(rdmap::Opcode::kReadResponse, Stag{1}, 0, {}));
  const auto sent = p.ulpdus();
  EXPECT_EQ(kinds(sent), "r");
  EXPECT_EQ(test::to_hex(ConstBytes(sent.at(0)).subspan(10, 4)), "00000002") << "MSN 2";
}

TEST(Ordering, ManyReadsThroughASmallDepth) {
  COVERS("RFC5040-6.1-5");
  COVERS("RFC5040-6.1-10");
  PairOptions o;
  o.initiator_policy.ord = 3;
  o.responder_policy.ird = o.accept_ird = 1;
  Pair p(o);
  p.establish();
  EXPECT_LE(p.initiator.conn().negotiated().ord, p.responder.conn().negotiated().ird);
  auto& sink = p.initiator.region(50 * 100);
  auto& source = p.responder.region(50 * 100, test::kRemoteAll);
  source.fill(pattern(5000));
  for (std::uint64_t i = 0; i < 50; ++i) p.initiator.post(test::read_wr(i, sink.sge(i * 100, 100), source, i * 100));
  p.settle();
  EXPECT_EQ(p.initiator.sends.size(), 50U) << p.log();
  EXPECT_EQ(sink.bytes(), source.bytes());
}

TEST(Ordering, ReadBehindAWriteReturnsWhatWasWritten) {
  COVERS("RFC5040-5.5-17");
  COVERS("RFC5040-5.5-24");
  COVERS("RFC5040-B-10");
  COVERS("RFC5040-B-6");
  Pair p;
  p.establish();
  auto& a = p.initiator.region(20000);
  auto& b = p.responder.region(10000, test::kRemoteAll);
  a.fill(pattern(10000, 3));
  p.initiator.post(test::write_wr(1, a.sge(0, 10000), b));
  p.initiator.post(test::read_wr(2, a.sge(10000, 10000), b));
  p.settle();
  EXPECT_TRUE(std::equal(a.bytes().begin(), a.bytes().begin() + 10000, a.bytes().begin() + 10000));
}

TEST(Ordering, ReadBehindASendIsAnsweredAfterItsDelivery) {
  COVERS("RFC5040-B-3");
  RawPeer p;
  auto& memory = p.end.region(10, test::kRemoteAll);
  p.end.post(rdmap::RecvWr{1, memory.all()});
  std::vector<Bytes> answers;
  for (const std::byte octet :
       test::fpdu(test::send_segment(pattern(10)), p.crc) |
           test::fpdu(test::read_request_segment({Stag{5}, 0, 10, memory.stag(), memory.to()}), p.crc)) {
    p.feed({octet});
    for (Bytes& u : p.ulpdus()) answers.push_back(std::move(u));
    EXPECT_LE(answers.size(), p.end.recvs.size());
  }
  ASSERT_EQ(kinds(answers), "R");
  EXPECT_EQ(Bytes(answers[0].begin() + 14, answers[0].end()), pattern(10)) << "it carries what the Send brought";
}

TEST(Ordering, SendTellsThatEarlierWritesAreThere) {
  COVERS("RFC5040-5.1-8");
  COVERS("RFC5040-5.5-13");
  COVERS("RFC5041-4.1-8");
  COVERS("RFC5041-5.4-4");
  COVERS("RFC5041-5.4-5");
  COVERS("RFC5040-B-4");
  Pair p;
  p.establish();
  auto& a = p.initiator.region(100000);
  auto& b = p.responder.region(100000, test::kRemoteAll);
  a.fill(pattern(100000, 3));
  p.responder.post(rdmap::RecvWr{1, {}});
  p.initiator.post(test::write_wr(2, a.all(), b));
  p.initiator.post(test::send_wr(3, {}));
  p.to_responder.max_chunk_bytes = 100;
  std::uint64_t allowed = p.to_responder.recorded.size();
  while (p.responder.recvs.empty()) {
    p.to_responder.stall_after = allowed += 5000;
    p.settle();
    EXPECT_EQ(p.responder.recvs.empty(), a.bytes() != b.bytes() || p.initiator.sends.size() < 2);
    ASSERT_LT(allowed, 200000U);
  }
  EXPECT_EQ(a.bytes(), b.bytes());
}

TEST(Ordering, SendsOvertakeReadsOfThePeer) {
  COVERS("RFC5040-5.5-25");
  RawPeer p;
  auto& source = p.end.region(10000, test::kRemoteAll);
  p.end.post(rdmap::RecvWr{1, source.sge(0, 10)});
  p.feed_ulpdu(test::read_request_segment({Stag{5}, 0, 10000, source.stag(), source.to()}));
  p.feed_ulpdu(test::send_segment(pattern(4)));
  EXPECT_EQ(p.end.recvs.size(), 1U);
}

TEST(Ordering, SendWithInvalidateRevokesAtDelivery) {
  COVERS("RFC5040-5.3-15");
  COVERS("RFC5040-1.2-2");
  Pair p;
  p.establish();
  auto& a = p.initiator.region(5000);
  auto& b = p.responder.region(5000, test::kRemoteAll | ddp::Access::kRemoteInvalidate, 0x10000, p.responder.key());
  auto& recv = p.responder.region(5000);
  p.responder.post(rdmap::RecvWr{1, recv.all()});
  p.initiator.post(test::write_wr(2, a.all(), b));
  rdmap::SendWr wr = test::send_wr(3, a.all());
  wr.op = rdmap::SendOp::kSendInvalidate;
  wr.remote_stag = b.stag();
  p.initiator.post(wr);
  p.settle();
  ASSERT_EQ(p.responder.recvs.size(), 1U);
  EXPECT_TRUE(p.responder.recvs[0].invalidated);
  EXPECT_EQ(p.responder.recvs[0].invalidated_stag, b.stag());
  EXPECT_FALSE(p.responder.stags().valid(b.stag()));
  p.initiator.post(test::write_wr(4, a.sge(0, 1), b));
  p.run();
  EXPECT_EQ(p.initiator.disconnected()->received->code, (TerminateCode{1, 1, 0}));
}

TEST(Posting, RefusesWhatCannotBe) {
  RawPeerOptions o = initiating(0);
  o.stream.sq_depth = 2;
  o.stream.rq_depth = 1;
  RawPeer p(o);
  auto& local = p.end.region(100);
  EXPECT_EQ(p.end.conn().post_send(read(1, local.sge(0, 1))).error().code, Errc::kInvalidArgument) << "ORD is 0";
  EXPECT_EQ(p.end.conn().post_send(read(1, test::list({local.sge(0, 1), local.sge(1, 1)}))).error().code,
            Errc::kInvalidArgument);
  const rdmap::Sge huge{local.bytes().data(), 0xFFFFFFFF, local.stag()};
  EXPECT_EQ(p.end.conn().post_send(test::send_wr(1, test::list({huge, local.sge(0, 1)}))).error().code,
            Errc::kInvalidArgument);
  p.end.post(test::send_wr(1, {}));
  p.end.post(test::send_wr(2, {}));
  EXPECT_EQ(p.end.conn().post_send(test::send_wr(3, {})).error().code, Errc::kQueueFull);
  p.end.post(rdmap::RecvWr{1, {}});
  EXPECT_EQ(p.end.conn().post_recv({}).error().code, Errc::kQueueFull);
  EXPECT_EQ(kinds(p.ulpdus()), "SS");
  p.end.post(test::send_wr(4, {}));
}

TEST(Segmentation, FollowsAnEmssThatChanges) {
  COVERS("RFC5044-4.5-5");
  COVERS("RFC5041-3-2");
  COVERS("RFC5041-3-3");
  COVERS("RFC5044-3-3");
  COVERS("RFC5044-4.5-4");
  COVERS("RFC5044-5.1-1");
  RawPeer p(initiating(1));
  auto& local = p.end.region(10000);
  const auto longest = [&] {
    p.end.post(test::send_wr(1, local.all()));
    std::size_t n = 0;
    for (const Bytes& u : p.ulpdus()) n = std::max(n, u.size());
    return n;
  };
  EXPECT_EQ(longest(), 1442U);
  p.end.conn().set_emss(536);
  EXPECT_EQ(longest(), 530U);
  p.end.conn().set_emss(40);
  EXPECT_EQ(longest(), 128U);
  p.end.conn().set_emss(9000);
  EXPECT_EQ(longest(), 8994U);
}

TEST(Segmentation, LeavesFpdusAloneThatAreCutAlready) {
  COVERS("RFC5044-A.1-1");
  RawPeer p(initiating(1));
  auto& local = p.end.region(10000);
  p.end.post(test::send_wr(1, local.all()));
  EXPECT_EQ(p.drain(100), 100U);  // a part of the first FPDU
  p.end.conn().set_emss(536);
  p.end.post(test::send_wr(2, local.all()));
  const auto sent = p.ulpdus();
  ASSERT_GT(sent.size(), 9U);
  for (std::size_t i = 0; i < 7; ++i) EXPECT_EQ(sent[i].size(), 1442U);
  EXPECT_EQ(sent[8].size(), 530U) << "the second message";
}

}  // namespace
}  // namespace iwarp::stream
