// Orderly and abrupt ends: what drains, what is flushed, how long it may take.
#include <gtest/gtest.h>

#include "tests/endpoint/message_half.h"

namespace iwarp::endpoint {
namespace {

using namespace std::chrono_literals;

TEST(Ending, AnOrderlyOneLetsAllThatWasPostedThrough) {
  MessagePair p;
  p.establish();
  auto& source = p.a.region(5000);
  auto& sink = p.b.region(5000, test::kRemoteAll);
  auto& mailbox = p.b.region(5000);
  p.b.post(rdmap::RecvWr{1, mailbox.all()});
  p.b.post(rdmap::RecvWr{2, mailbox.all()});
  p.a.post(test::send_wr(1, source.all()));
  p.a.post(test::read_wr(2, source.all(), sink));
  p.a.disconnect(p.now);
  p.a.post(test::send_wr(3, source.all()));
  p.settle();
  ASSERT_EQ(p.a.sends.size(), 3U);
  for (const auto& c : p.a.sends) EXPECT_EQ(c.status, c.wr_id == 3 ? Errc::kFlushed : Errc::kOk) << c.wr_id;
  ASSERT_EQ(p.b.recvs.size(), 2U);
  EXPECT_EQ(p.b.recvs[0].status, Errc::kOk);
  EXPECT_EQ(p.b.recvs[1].status, Errc::kFlushed);
  ASSERT_TRUE(p.a.ended && p.b.ended);
  EXPECT_STREQ(p.a.ended->reason.why, kClosedHere);
  EXPECT_EQ(p.b.ended->reason.code, Errc::kPeerClosed);
  EXPECT_FALSE(p.a.ended->sent || p.b.ended->sent);
}

// Its own end is told, the peer's has not come: what the peer sends is still taken.
TEST(Ending, InOrderReceivesUntilThePeersEnd) {
  MessagePair p;
  p.establish();
  auto& mailbox = p.a.region(8);
  p.a.post(rdmap::RecvWr{1, mailbox.all()});
  p.a.disconnect(p.now);
  EXPECT_TRUE(p.a.send(p.mulpdu, p.now).has_value()) << "the end";
  EXPECT_EQ(p.a.core().phase(), Phase::kEndWait);
  auto& text = p.b.region(8);
  p.b.post(test::send_wr(1, text.all()));
  EXPECT_TRUE(p.move(p.b, p.a));
  ASSERT_EQ(p.a.recvs.size(), 1U);
  EXPECT_EQ(p.a.recvs[0].status, Errc::kOk);
}

TEST(Ending, AnAbruptOneFlushesBothSides) {
  MessagePair p;
  p.establish();
  auto& source = p.a.region(5000);
  auto& sink = p.b.region(5000, test::kRemoteAll);
  for (const std::uint64_t id : {1, 2}) p.a.post(test::read_wr(id, source.all(), sink));
  p.a.post(rdmap::RecvWr{3, source.all()});
  p.b.post(rdmap::RecvWr{4, sink.all()});
  EXPECT_TRUE(p.move(p.a, p.b)) << "the first Read Request";
  p.a.end(Input::kAbort, make_error(Errc::kAborted), p.now);
  ASSERT_EQ(p.a.sends.size(), 2U);
  for (const auto& c : p.a.sends) EXPECT_EQ(c.status, Errc::kFlushed) << c.wr_id;
  ASSERT_EQ(p.a.recvs.size(), 1U);
  p.settle();
  ASSERT_TRUE(p.a.ended && p.b.ended);
  EXPECT_EQ(p.a.ended->reason.code, Errc::kAborted);
  EXPECT_EQ(p.b.ended->reason.code, Errc::kConnectionLost);
  ASSERT_EQ(p.b.recvs.size(), 1U);
  EXPECT_EQ(p.b.recvs[0].status, Errc::kFlushed);
  EXPECT_TRUE(p.b.core().post_recv({5, sink.all()}).ok());
  EXPECT_EQ(p.b.core().poll_recv().value().status, Errc::kFlushed);
}

// What has left arrives, and the end behind it; the rest is dropped, and so is what the peer sends until its own end.
TEST(Ending, WhoLeavesTakesNothingFromThePeer) {
  for (const bool draining : {false, true}) {
    MessagePair p;
    p.establish();
    auto& source = p.a.region(8);
    auto& sink = p.a.region(8, test::kRemoteAll);
    auto& mailbox = p.b.region(8);
    mailbox.fill({std::byte{1}, std::byte{2}});
    for (const std::uint64_t id : {1, 2}) {
      p.a.post(test::send_wr(id, source.all()));
      p.b.post(rdmap::RecvWr{id, mailbox.all()});
    }
    p.a.post(rdmap::RecvWr{3, source.all()});
    const auto first = p.a.send(p.mulpdu, p.now);
    ASSERT_TRUE(first.has_value());
    if (draining) p.a.disconnect(p.now);
    p.a.leave(p.now);
    EXPECT_EQ(p.a.core().phase(), Phase::kEndWait);
    ASSERT_EQ(p.a.sends.size(), 2U);
    EXPECT_EQ(p.a.sends[0].status, Errc::kOk);
    EXPECT_EQ(p.a.sends[1].status, Errc::kFlushed);
    ASSERT_EQ(p.a.recvs.size(), 1U);
    EXPECT_EQ(p.a.recvs[0].status, Errc::kFlushed);
    const auto untouched = sink.bytes();
    p.b.post(test::write_wr(4, mailbox.all(), sink));
    EXPECT_TRUE(p.move(p.b, p.a));
    EXPECT_EQ(sink.bytes(), untouched) << "nothing is placed any more";
    p.b.receive(*first, false, p.now);
    ASSERT_EQ(p.b.recvs.size(), 1U);
    EXPECT_EQ(p.b.recvs[0].status, Errc::kOk);
    p.settle();
    ASSERT_TRUE(p.a.ended && p.b.ended);
    EXPECT_EQ(p.a.ended->reason.code, Errc::kAborted);
    EXPECT_EQ(p.b.ended->reason.code, Errc::kPeerClosed);
    EXPECT_NE(p.a.core().ending(), Ending::kAbrupt);
  }
}

TEST(Ending, WhoLeavesBehindItsOrderlyEndServesThePeerNoMore) {
  MessagePair p;
  p.establish();
  auto& mailbox = p.a.region(8);
  p.a.post(rdmap::RecvWr{1, mailbox.all()});
  p.a.disconnect(p.now);
  ASSERT_TRUE(p.a.send(p.mulpdu, p.now).has_value()) << "the end";
  p.a.leave(p.now);
  ASSERT_EQ(p.a.recvs.size(), 1U);
  EXPECT_EQ(p.a.recvs[0].status, Errc::kFlushed);
  EXPECT_FALSE(p.a.core().receiving());
  EXPECT_FALSE(p.a.ended);
  p.expire(p.a);
  ASSERT_TRUE(p.a.ended.has_value());
  EXPECT_NE(p.a.core().ending(), Ending::kAbrupt) << "the peer may still take what was sent";
}

TEST(Ending, WhoseEndNobodyAnswersIsNotCutOffWhenItsOwnerHasLeft) {
  for (const bool leaves : {true, false}) {
    MessagePair p;
    p.establish();
    leaves ? p.a.leave(p.now) : p.a.disconnect(p.now);
    ASSERT_TRUE(p.a.send(p.mulpdu, p.now).has_value()) << "the end";
    p.expire(p.a);
    ASSERT_TRUE(p.a.ended.has_value());
    EXPECT_EQ(p.a.core().ending() == Ending::kAbrupt, !leaves);
  }
}

// No Terminate can be sent any more, and no reset is needed.
TEST(Ending, AMessageWithoutAReceiveDelaysAnOrderlyEndForAMoment) {
  for (const bool before : {true, false}) {
    Options o;
    o.receive_wait = 1h;
    MessagePair p(o);
    p.establish();
    auto& text = p.b.region(8);
    auto& mailbox = p.a.region(8);
    for (const std::uint64_t id : {1, 2}) p.b.post(test::send_wr(id, text.all()));
    if (before) {
      EXPECT_TRUE(p.move(p.b, p.a));
    }
    p.a.disconnect(p.now);
    const auto end = p.a.send(p.mulpdu, p.now);
    ASSERT_TRUE(end.has_value());
    if (!before) {
      EXPECT_TRUE(p.move(p.b, p.a));
    }
    ASSERT_TRUE(p.a.core().holding());
    EXPECT_EQ(p.a.core().deadline(), p.now + kLastWait);
    p.expire(p.a);
    EXPECT_FALSE(p.a.core().holding());
    EXPECT_FALSE(p.a.core().receiving());
    EXPECT_EQ(p.a.core().phase(), Phase::kEndWait);
    p.a.post(rdmap::RecvWr{3, mailbox.all()});
    EXPECT_EQ(p.a.core().poll_recv().value().status, Errc::kFlushed) << "it comes too late";
    p.b.receive(*end, false, p.now);
    p.settle();
    ASSERT_TRUE(p.a.ended && p.b.ended);
    EXPECT_EQ(p.a.ended->reason.code, Errc::kAborted);
    EXPECT_FALSE(p.a.ended->sent);
    EXPECT_NE(p.a.core().ending(), Ending::kAbrupt);
    EXPECT_EQ(p.b.ended->reason.code, Errc::kPeerClosed);
  }
}

TEST(Ending, WhoLeavesWaitsForNoReceive) {
  Options o;
  o.receive_wait = 1ms;
  MessagePair p(o);
  p.establish();
  p.a.disconnect(p.now);
  ASSERT_TRUE(p.a.send(p.mulpdu, p.now).has_value()) << "the end";
  auto& text = p.b.region(8);
  p.b.post(test::send_wr(1, text.all()));
  EXPECT_TRUE(p.move(p.b, p.a));
  ASSERT_TRUE(p.a.core().holding());
  p.a.leave(p.now);
  EXPECT_FALSE(p.a.core().holding());
  EXPECT_EQ(p.a.core().deadline(), p.now + o.close_timeout);
}

TEST(Ending, WhoLeavesBeforeItIsConnectedAborts) {
  MessagePair p;
  p.a.start(Opening::kAtOnce, p.now);
  p.a.leave(p.now);
  ASSERT_TRUE(p.a.ended.has_value());
  EXPECT_EQ(p.a.core().phase(), Phase::kClosed);
}

// The first cause stands.
TEST(Ending, IsToldByItsFirstCause) {
  MessagePair p;
  p.establish();
  p.a.end(Input::kAbort, make_error(Errc::kAborted), p.now);
  p.a.end(Input::kLost, make_error(Errc::kConnectionLost), p.now);
  ASSERT_TRUE(p.a.ended.has_value());
  EXPECT_EQ(p.a.ended->reason.code, Errc::kAborted);
}

TEST(Ending, APeerWithoutAnEndIsWaitedForSoLong) {
  Options o;
  o.close_timeout = 3s;
  MessagePair p(o);
  p.establish();
  p.a.disconnect(p.now);
  (void)p.a.send(p.mulpdu, p.now);
  EXPECT_EQ(p.a.core().deadline(), p.now + 3s);
  p.expire(p.a);
  ASSERT_TRUE(p.a.ended.has_value());
  EXPECT_EQ(p.a.core().ending(), Ending::kAbrupt);
}

// Each segment that leaves gives the peer its time again, until the whole takes too long.
TEST(Ending, ADrainMayTakeSoLongHoweverBusyThePeerIs) {
  Options o;
  o.close_timeout = 3s;
  o.drain_timeout = 5s;
  MessagePair p(o);
  p.establish();
  auto& source = p.a.region(5000);
  p.a.post(test::send_wr(1, source.all()));
  const TimePoint begin = p.now;
  p.a.disconnect(p.now);
  EXPECT_EQ(p.a.core().deadline(), begin + 3s);
  p.now += 1s;
  ASSERT_TRUE(p.a.send(p.mulpdu, p.now).has_value());
  EXPECT_EQ(p.a.core().deadline(), begin + 4s);
  p.now += 2s;
  ASSERT_TRUE(p.a.send(p.mulpdu, p.now).has_value());
  EXPECT_EQ(p.a.core().deadline(), begin + 5s);
  p.expire(p.a);
  ASSERT_TRUE(p.a.ended.has_value());
  EXPECT_EQ(p.a.ended->reason.code, Errc::kTimeout);
  ASSERT_EQ(p.a.sends.size(), 1U);
  EXPECT_EQ(p.a.sends[0].status, Errc::kFlushed);
}

// For a half that has to hear the peer before it may let go.
TEST(Ending, OfAnUnheardPeerWaitsAMoment) {
  for (const bool comes : {false, true}) {
    MessagePair p;
    p.establish();
    auto& mailbox = p.a.region(8);
    p.a.post(rdmap::RecvWr{1, mailbox.all()});
    p.a.core().at(p.now);
    p.a.core().queue_wake();
    p.a.core().abort_unheard(make_error(Errc::kAborted), p.now + 200ms);
    EXPECT_EQ(p.a.core().phase(), Phase::kLingering);
    const auto wake = p.a.send(p.mulpdu, p.now);
    ASSERT_TRUE(wake.has_value());
    EXPECT_EQ(p.a.recvs.size(), 1U) << "flushed at once";
    EXPECT_FALSE(p.a.ended);
    if (comes) {
      p.a.receive(*wake, false, p.now);
    } else {
      p.expire(p.a);
    }
    ASSERT_TRUE(p.a.ended.has_value()) << comes;
    EXPECT_EQ(p.a.ended->reason.code, Errc::kAborted);
    EXPECT_EQ(p.a.core().ending(), Ending::kAbrupt);
  }
}

}  // namespace
}  // namespace iwarp::endpoint
