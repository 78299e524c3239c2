// What is wrong with a segment, or has become of memory, is told to the peer with a Terminate, and ends both sides.
#include <gtest/gtest.h>

#include "tests/endpoint/message_half.h"

namespace iwarp::endpoint {
namespace {

using test::Bytes;

TEST(Violation, OfThePeerBecomesATerminateAndFlushesBothSides) {
  MessagePair p;
  p.establish();
  auto& source = p.a.region(3000);
  auto& sink = p.b.region(3000);  // for local access only
  p.b.post(rdmap::RecvWr{1, sink.all()});
  p.a.post(test::write_wr(1, source.all(), sink));
  p.a.post(test::read_wr(2, source.all(), sink));
  p.settle();
  ASSERT_TRUE(p.a.ended && p.b.ended);
  EXPECT_EQ(p.b.ended->reason.code, Errc::kTaggedInvalidStag);
  ASSERT_TRUE(p.b.ended->sent && p.a.ended->received);
  EXPECT_EQ(p.a.ended->reason.code, Errc::kRemoteTerminate);
  EXPECT_EQ(p.a.ended->received->code, p.b.ended->sent->code);
  EXPECT_EQ(p.a.ended->received->ddp_header_bytes, 14) << "it quotes the Write";
  EXPECT_FALSE(p.a.ended->sent) << "a Terminate is not answered";
  ASSERT_EQ(p.b.recvs.size(), 1U);
  EXPECT_EQ(p.b.recvs[0].status, Errc::kFlushed);
  ASSERT_EQ(p.a.sends.size(), 2U);
  EXPECT_EQ(p.a.sends[1].status, Errc::kFlushed);
}

TEST(Violation, IsTheLastThatIsSentAndNothingIsTakenAfterIt) {
  MessagePair p;
  p.establish();
  auto& source = p.b.region(3000);
  auto& mailbox = p.a.region(3000, test::kRemoteAll);
  for (const std::uint64_t id : {1, 2}) p.b.post(test::send_wr(id, source.all()));
  EXPECT_TRUE(p.b.send(p.mulpdu, p.now).has_value()) << "one segment of three";
  Message junk;
  junk.ulpdu = Bytes(18);  // an untagged segment with a reserved version
  p.b.receive(junk, false, p.now);
  EXPECT_EQ(p.b.core().phase(), Phase::kTerminating);
  EXPECT_FALSE(p.b.core().receiving());
  EXPECT_EQ(p.b.sends.size(), 2U) << "flushed";
  const std::size_t before = p.b.sent_segments;
  ASSERT_TRUE(p.b.send(p.mulpdu, p.now).has_value()) << "the Terminate";
  EXPECT_EQ(p.b.core().phase(), Phase::kEndWait);
  const auto last = p.b.send(p.mulpdu, p.now);
  ASSERT_TRUE(last.has_value());
  EXPECT_EQ(last->kind, Message::Kind::kEnd);
  EXPECT_EQ(p.b.sent_segments, before + 1);
  (void)mailbox;
}

// Memory is revoked between the Read Request and its Response.
TEST(Violation, RevokedMemoryOfAReadEndsItWithATerminateOfItsRequest) {
  MessagePair p;
  p.establish();
  auto& sink = p.a.region(3000);
  auto& source = p.b.region(3000, test::kRemoteAll);
  p.a.post(test::read_wr(1, sink.all(), source));
  EXPECT_TRUE(p.move(p.a, p.b));
  source.revoke();
  p.settle();
  ASSERT_TRUE(p.a.ended && p.b.ended);
  EXPECT_EQ(p.b.ended->reason.code, Errc::kReadInvalidStag);
  ASSERT_TRUE(p.a.ended->received.has_value());
  EXPECT_TRUE(p.a.ended->received->has_rdmap_header);
  ASSERT_EQ(p.a.sends.size(), 1U);
  EXPECT_EQ(p.a.sends[0].status, Errc::kFlushed);
}

// A Write of the owner's own that is not registered any more.
TEST(Violation, RevokedMemoryOfARequestFailsIt) {
  MessagePair p;
  p.establish();
  auto& source = p.a.region(3000);
  auto& sink = p.b.region(3000, test::kRemoteAll);
  p.a.post(test::write_wr(1, source.all(), sink));
  source.revoke();
  p.settle();
  ASSERT_EQ(p.a.sends.size(), 1U);
  EXPECT_EQ(p.a.sends[0].status, Errc::kLocalProtection);
  ASSERT_TRUE(p.a.ended && p.b.ended);
  EXPECT_TRUE(p.a.ended->sent && p.b.ended->received);
}

// Memory goes while a segment's payload is still to come.
TEST(Violation, RevokedMemoryUnderASegmentIsFoundAtItsNextPart) {
  MessagePair p;
  p.establish();
  auto& source = p.a.region(900);
  auto& sink = p.b.region(900, test::kRemoteAll);
  p.a.post(test::write_wr(1, source.all(), sink));
  const auto message = p.a.send(p.mulpdu, p.now);
  ASSERT_TRUE(message.has_value());
  const ConstBytes ulpdu = message->ulpdu;
  p.b.core().heard_segment();
  ASSERT_TRUE(p.b.core().begin_segment(ulpdu, ulpdu.size()));
  ASSERT_TRUE(p.b.core().place(ulpdu.subspan(p.b.core().header_bytes(), 100)));
  EXPECT_EQ(p.b.core().payload_remaining(), 800U);
  sink.revoke();
  std::vector<ddp::Pin> places;
  EXPECT_FALSE(p.b.core().targets(places));
  EXPECT_TRUE(places.empty());
  EXPECT_EQ(p.b.core().phase(), Phase::kTerminating);
}

}  // namespace
}  // namespace iwarp::endpoint
