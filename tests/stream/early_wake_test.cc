// Waking a peer that has overlooked what came early: the schedule, and what a connection makes of it.
#include "iwarp/stream/early_wake.h"

#include <gtest/gtest.h>

#include "tests/support/covers.h"
#include "tests/support/raw_peer.h"

namespace iwarp::stream {
namespace {

using namespace std::chrono_literals;
using test::Bytes;
using test::pattern;
using test::RawPeer;
using test::RawPeerOptions;
using test::send_segment;
using test::operator|;

constexpr TimePoint kStart{1000s};

TEST(EarlyWakeSchedule, IsOf20And100And500Ms) {
  EarlyWake wake;
  EXPECT_FALSE(wake.deadline());
  EXPECT_FALSE(wake.expire(kStart)) << "nothing was sent yet";
  wake.begin(kStart);
  wake.begin(kStart + 10ms);  // what follows the first FPDU
  for (const auto after : {20ms, 100ms, 500ms}) {
    EXPECT_EQ(wake.deadline(), kStart + after);
    EXPECT_FALSE(wake.expire(kStart + after - 1ns));
    EXPECT_TRUE(wake.expire(kStart + after));
    EXPECT_FALSE(wake.expire(kStart + after));
  }
  EXPECT_FALSE(wake.deadline());
  EXPECT_FALSE(wake.expire(kStart + 1h));
}

TEST(EarlyWakeSchedule, MakesUpForWhatWasMissedWithOne) {
  EarlyWake wake;
  wake.begin(kStart);
  EXPECT_TRUE(wake.expire(kStart + 120ms));
  EXPECT_EQ(wake.deadline(), kStart + 500ms);
}

TEST(EarlyWakeSchedule, EndsForGood) {
  for (const bool begun : {false, true}) {
    EarlyWake wake;
    if (begun) wake.begin(kStart);
    wake.end();
    wake.begin(kStart);
    EXPECT_FALSE(wake.deadline());
    EXPECT_FALSE(wake.expire(kStart + 1h));
  }
}

RawPeerOptions initiating(bool peer_to_peer, bool crc = true) {
  RawPeerOptions o;
  o.we_initiate = true;
  o.peer_to_peer = peer_to_peer;
  o.crc = crc;
  return o;
}

const Bytes kWake = test::write_segment(Stag{1}, 0, {});
const std::vector<Bytes> kOneWake{kWake};

void at(RawPeer& p, Duration after) {
  p.now = kStart + after;
  p.end.expire(p.now);
}

TEST(EarlyWake, InitiatorWakesAPeerThatItDoesNotHear) {
  for (const bool peer_to_peer : {false, true}) {
    for (const bool crc : {false, true}) {
      RawPeer p(initiating(peer_to_peer, crc));
      auto& local = p.end.region(10);
      EXPECT_FALSE(p.end.conn().deadline()) << "its first FPDU has not left";
      at(p, 1h);
      EXPECT_EQ(p.ulpdus().size(), peer_to_peer ? 1U : 0U);  // the RTR, by Read
      const TimePoint first = p.now;
      p.end.post(test::send_wr(1, local.all()));
      EXPECT_EQ(p.ulpdus().size(), 1U);
      for (const auto after : {20ms, 100ms, 500ms}) {
        EXPECT_EQ(p.end.conn().deadline(), first + after);
        p.expire();
        EXPECT_EQ(p.ulpdus(), kOneWake);
      }
      EXPECT_FALSE(p.end.conn().deadline());
      EXPECT_EQ(p.end.conn().tx_counters().wakes, 3U);
      EXPECT_EQ(p.end.conn().tx_counters().writes, 0U);
      ASSERT_EQ(p.end.sends.size(), 1U) << "a wake is no work request";
      EXPECT_EQ(p.end.sends[0].wr_id, 1U);
    }
  }
}

TEST(EarlyWake, EndsWithThePeersFirstFpdu) {
  RawPeer p(initiating(true));
  EXPECT_EQ(p.ulpdus().size(), 1U);
  at(p, 20ms);
  EXPECT_TRUE(p.end.conn().tx_pending());
  p.feed_ulpdu(kWake);
  EXPECT_FALSE(p.end.conn().tx_pending()) << "one that has not left is not needed any more";
  EXPECT_FALSE(p.end.conn().deadline());
  EXPECT_EQ(p.end.conn().tx_counters().wakes, 0U);
}

// With CRC off a large first FPDU goes straight to its buffer before it is whole.
TEST(EarlyWake, EndsWithTheBeginningOfALargeFpdu) {
  RawPeer p(initiating(false, false));
  auto& local = p.end.region(20000);
  p.end.post(rdmap::RecvWr{1, local.all()});
  p.end.post(test::send_wr(2, local.sge(0, 10)));
  EXPECT_EQ(p.ulpdus().size(), 1U);
  const Bytes whole = test::fpdu(send_segment(pattern(20000)), false);
  p.feed(Bytes(whole.begin(), whole.begin() + 5000));
  EXPECT_FALSE(p.end.conn().deadline());
}

TEST(EarlyWake, IsNotTheResponders) {
  RawPeer p;
  auto& local = p.end.region(10);
  p.feed_ulpdu(kWake);
  p.end.post(test::send_wr(1, local.all()));
  EXPECT_EQ(p.ulpdus().size(), 1U);
  EXPECT_FALSE(p.end.conn().deadline());
  at(p, 1h);
  EXPECT_FALSE(p.end.conn().tx_pending());
}

TEST(EarlyWake, CanBeSwitchedOff) {
  RawPeerOptions o = initiating(true);
  o.stream.early_wake = false;
  RawPeer p(o);
  EXPECT_EQ(p.ulpdus().size(), 1U);
  EXPECT_FALSE(p.end.conn().deadline());
  p.end.disconnect(p.now);
  EXPECT_EQ(p.link_action(), LinkAction::kShutdownWrite);
}

TEST(EarlyWake, KeepsOutOfMessages) {
  COVERS("RFC5041-5.3-3");
  RawPeer p(initiating(false));
  auto& local = p.end.region(50000);
  p.end.post(test::send_wr(1, local.all()));
  p.end.post(test::send_wr(2, local.sge(0, 5)));
  (void)p.drain(3000);
  at(p, 20ms);  // a batch is encoded ahead, so this is behind both
  const auto sent = p.ulpdus();
  const auto wake = std::find(sent.begin(), sent.end(), kWake);
  ASSERT_NE(wake, sent.end());
  ASSERT_NE(wake, sent.begin());
  EXPECT_NE(std::to_integer<int>((wake - 1)->at(0)) & 0x40, 0) << "the segment before it is the last of its message";
  EXPECT_EQ(std::count(sent.begin(), sent.end(), kWake), 1);
}

// A message longer than a batch is cut: the wake waits for its end, and overtakes the next.
TEST(EarlyWake, GoesBetweenMessages) {
  RawPeer p(initiating(false));
  auto& local = p.end.region(3 << 20);
  p.end.post(test::send_wr(1, local.all()));
  p.end.post(test::send_wr(2, local.sge(0, 5)));
  (void)p.drain(3000);
  at(p, 20ms);
  const auto sent = p.ulpdus();
  ASSERT_GE(sent.size(), 3U);
  EXPECT_EQ(sent.end()[-2], kWake);
  EXPECT_NE(std::to_integer<int>(sent.end()[-3][0]) & 0x40, 0);
  EXPECT_EQ(sent.end()[-1].size(), 18U + 5U);
}

TEST(EarlyWake, IsOverWithTheTerminate) {
  RawPeer p(initiating(false));
  auto& local = p.end.region(1000);
  p.end.post(test::send_wr(1, local.sge(0, 10)));
  EXPECT_EQ(p.ulpdus().size(), 1U);
  local.revoke();
  p.end.post(test::send_wr(2, local.all()));
  p.now = kStart + 20ms;
  p.end.expire(p.now);  // a wake is due just then
  EXPECT_NE(p.terminate(), "");
  at(p, 600ms);
  EXPECT_FALSE(p.end.conn().tx_pending());
}

TEST(EarlyWake, IsOverWithTheFin) {
  RawPeer p(initiating(false));
  auto& local = p.end.region(10);
  p.end.post(test::send_wr(1, local.all()));
  p.end.disconnect(p.now);
  EXPECT_EQ(p.ulpdus().size(), 1U);
  EXPECT_EQ(p.link_action(), LinkAction::kShutdownWrite) << "a client-server peer need not be heard";
  at(p, 600ms);
  EXPECT_FALSE(p.end.conn().tx_pending());
}

TEST(UnheardPeer, IsWaitedForBeforeTheFin) {
  RawPeer p(initiating(true));
  EXPECT_EQ(p.ulpdus().size(), 1U);
  p.end.disconnect(p.now);
  EXPECT_EQ(p.ulpdus(), kOneWake);
  EXPECT_EQ(p.end.receive({}, p.now), 0U) << "a read that brings nothing";
  EXPECT_EQ(p.link_action(), LinkAction::kNone);
  p.feed_ulpdu(kWake);
  EXPECT_EQ(p.link_action(), LinkAction::kShutdownWrite);
  p.end.end(TcpEnd::kFin, p.now);
  EXPECT_EQ(p.end.disconnected()->reason.code, Errc::kAborted);
}

TEST(UnheardPeer, IsWaitedForNotForLong) {
  RawPeer p(initiating(true));
  EXPECT_EQ(p.ulpdus().size(), 1U);
  p.end.disconnect(p.now);
  EXPECT_EQ(p.ulpdus(), kOneWake);
  for (const auto after : {20ms, 100ms}) {
    EXPECT_EQ(p.end.conn().deadline(), kStart + after);
    p.expire();
    EXPECT_EQ(p.ulpdus(), kOneWake);
    EXPECT_EQ(p.link_action(), LinkAction::kNone);
  }
  EXPECT_EQ(p.end.conn().deadline(), kStart + 200ms);
  p.expire();
  EXPECT_EQ(p.link_action(), LinkAction::kShutdownWrite);
  EXPECT_FALSE(p.end.conn().tx_pending());
  at(p, 600ms);
  EXPECT_FALSE(p.end.conn().tx_pending()) << "octets after FIN";
}

TEST(UnheardPeer, GetsTheRtrAndAWakeThoughTheEndComesFirst) {
  RawPeer p(initiating(true));
  p.end.disconnect(p.now);
  const auto sent = p.ulpdus();
  ASSERT_EQ(sent.size(), 2U);
  EXPECT_EQ(sent[1], kWake);
  EXPECT_EQ(p.link_action(), LinkAction::kNone);
}

TEST(UnheardPeer, IsSparedWhenTheApplicationAborts) {
  COVERS("RFC5040-5.4-9");
  enum class Then { kHeard, kTimeout, kFin, kReset, kAbort };
  for (const Then then : {Then::kHeard, Then::kTimeout, Then::kFin, Then::kReset, Then::kAbort}) {
    RawPeer p(initiating(true));
    auto& local = p.end.region(10);
    p.end.post(rdmap::RecvWr{1, local.all()});
    EXPECT_EQ(p.ulpdus().size(), 1U);
    p.end.conn().abort_sparing(make_error(Errc::kAborted, "enough"), p.now);
    p.end.collect();
    ASSERT_EQ(p.end.recvs.size(), 1U) << "at once";
    EXPECT_EQ(p.end.recvs[0].status, Errc::kFlushed);
    p.end.post(test::send_wr(2, {}));
    p.end.post(rdmap::RecvWr{3, local.all()});
    p.end.collect();
    ASSERT_EQ(p.end.recvs.size(), 2U);
    EXPECT_EQ(p.end.recvs[1].status, Errc::kFlushed);
    ASSERT_EQ(p.end.sends.size(), 1U);
    EXPECT_EQ(p.end.sends[0].status, Errc::kFlushed);
    EXPECT_EQ(p.ulpdus(), kOneWake);
    EXPECT_EQ(p.link_action(), LinkAction::kNone);
    EXPECT_EQ(p.end.disconnected(), nullptr);
    EXPECT_EQ(p.end.conn().deadline(), kStart + 200ms);
    switch (then) {
      case Then::kHeard:
        p.feed_ulpdu(send_segment(pattern(4)));  // whatever it is, it is not delivered
        break;
      case Then::kTimeout:
        p.expire();
        break;
      case Then::kFin:
        p.end.end(TcpEnd::kFin, p.now);
        break;
      case Then::kReset:
        p.end.end(TcpEnd::kReset, p.now);
        break;
      case Then::kAbort:
        p.end.conn().abort(make_error(Errc::kAborted));
        p.end.collect();
        break;
    }
    EXPECT_EQ(p.link_action(), LinkAction::kReset);
    ASSERT_NE(p.end.disconnected(), nullptr);
    EXPECT_STREQ(p.end.disconnected()->reason.why, "enough");
    EXPECT_TRUE(p.end.disconnected()->was_established);
    EXPECT_FALSE(p.end.conn().tx_pending());
    EXPECT_EQ(p.end.recvs.size(), 2U);
  }
}

TEST(UnheardPeer, IsSparedWhileDrainingToo) {
  RawPeer p(initiating(true));
  EXPECT_EQ(p.ulpdus().size(), 1U);
  p.end.disconnect(p.now);
  p.now += 10ms;
  p.end.conn().abort_sparing(make_error(Errc::kAborted), p.now);
  EXPECT_EQ(p.link_action(), LinkAction::kNone);
  EXPECT_EQ(p.end.conn().deadline(), kStart + 200ms) << "from disconnect()";
  p.expire();
  EXPECT_EQ(p.link_action(), LinkAction::kReset);
}

TEST(UnheardPeer, IsSparedByASecondAbortToo) {
  RawPeer p(initiating(true));
  EXPECT_EQ(p.ulpdus().size(), 1U);
  p.end.conn().abort_sparing(make_error(Errc::kAborted, "first"), p.now);
  EXPECT_EQ(p.ulpdus(), kOneWake);
  p.now += 100ms;
  p.end.conn().abort_sparing(make_error(Errc::kAborted, "second"), p.now);
  EXPECT_EQ(p.link_action(), LinkAction::kNone);
  EXPECT_FALSE(p.end.conn().tx_pending());
  EXPECT_EQ(p.end.conn().deadline(), kStart + 200ms) << "from the first";
  p.expire();
  EXPECT_EQ(p.link_action(), LinkAction::kReset);
  EXPECT_STREQ(p.end.disconnected()->reason.why, "first");
}

// The Terminate itself wakes it.
TEST(UnheardPeer, IsWaitedForBehindOurTerminate) {
  for (const bool answers : {false, true}) {
    RawPeer p(initiating(true));
    EXPECT_EQ(p.ulpdus().size(), 1U);
    auto& local = p.end.region(1000);
    local.revoke();
    p.end.post(test::send_wr(1, local.all()));
    EXPECT_NE(p.terminate(), "");
    EXPECT_EQ(p.link_action(), LinkAction::kNone);
    EXPECT_EQ(p.end.conn().deadline(), kStart + 200ms);
    if (answers) {
      p.feed_ulpdu(kWake);
    } else {
      p.expire();
    }
    EXPECT_EQ(p.link_action(), LinkAction::kShutdownWrite);
    EXPECT_GT(*p.end.conn().deadline(), kStart + 1s) << "now its FIN is waited for";
    p.end.end(TcpEnd::kFin, p.now);
    EXPECT_EQ(p.link_action(), LinkAction::kClose);
  }
}

// A Terminate is due: a Send was posted from memory that is not registered any more.
void post_from_revoked_memory(RawPeer& p) {
  auto& local = p.end.region(1000);
  local.revoke();
  p.end.post(test::send_wr(9, local.all()));
}

// TCP takes nothing just now.
void offer_in_vain(RawPeer& p) {
  (void)p.end.conn().tx_buffers(p.now);
  p.end.conn().tx_commit(0, p.now);
}

// The application sees its Send fail, and gives the connection up before our FIN.
TEST(UnheardPeer, IsSparedBehindOurTerminate) {
  for (const bool answers : {false, true}) {
    RawPeer p(initiating(true));
    EXPECT_EQ(p.ulpdus().size(), 1U);
    post_from_revoked_memory(p);
    EXPECT_NE(p.terminate(), "");
    p.now += 50ms;
    p.end.conn().abort_sparing(make_error(Errc::kAborted), p.now);
    EXPECT_EQ(p.link_action(), LinkAction::kNone);
    EXPECT_FALSE(p.end.conn().tx_pending());
    EXPECT_EQ(p.end.conn().deadline(), kStart + 200ms) << "no longer than the FIN would have waited";
    if (answers) {
      p.feed_ulpdu(kWake);
    } else {
      p.expire();
    }
    EXPECT_EQ(p.link_action(), LinkAction::kReset);
    p.end.collect();
    ASSERT_NE(p.end.disconnected(), nullptr);
    EXPECT_EQ(p.end.disconnected()->reason.code, Errc::kLocalProtection) << "the first cause stands";
    EXPECT_TRUE(p.end.disconnected()->sent);
  }
}

TEST(UnheardPeer, GetsTheTerminateThoughTheApplicationAborts) {
  RawPeer p(initiating(true));
  EXPECT_EQ(p.ulpdus().size(), 1U);
  post_from_revoked_memory(p);
  offer_in_vain(p);
  ASSERT_EQ(p.end.conn().phase(), Phase::kTerminating);
  p.now += 50ms;
  p.end.conn().abort_sparing(make_error(Errc::kAborted), p.now);
  EXPECT_EQ(p.link_action(), LinkAction::kNone);
  EXPECT_NE(p.terminate(), "");
  EXPECT_EQ(p.link_action(), LinkAction::kNone);
  EXPECT_EQ(p.end.conn().deadline(), kStart + 250ms);
  p.expire();
  EXPECT_EQ(p.link_action(), LinkAction::kReset);
}

TEST(UnheardPeer, GetsTheTerminateBehindTheRestOfAnFpdu) {
  RawPeer p(initiating(true));
  p.end.post(test::send_wr(1, p.end.region(50000).all()));
  (void)p.drain(3000);
  post_from_revoked_memory(p);
  offer_in_vain(p);
  ASSERT_EQ(p.end.conn().phase(), Phase::kTerminating);
  p.end.conn().abort_sparing(make_error(Errc::kAborted), p.now);
  const auto sent = p.ulpdus();  // whole FPDUs, or this fails
  ASSERT_GE(sent.size(), 2U);
  EXPECT_EQ(sent.back()[1], std::byte{0x47});
  p.expire();
  EXPECT_EQ(p.link_action(), LinkAction::kReset);
}

// A reset may be no later than the FIN that it comes instead of.
TEST(UnheardPeer, IsNotSparedAgainBehindTheWaitForIt) {
  for (const bool fin_given : {false, true}) {
    RawPeer p(initiating(true));
    EXPECT_EQ(p.ulpdus().size(), 1U);
    post_from_revoked_memory(p);
    EXPECT_NE(p.terminate(), "");
    p.expire();
    if (fin_given) {
      EXPECT_EQ(p.link_action(), LinkAction::kShutdownWrite);
    }
    p.end.conn().abort_sparing(make_error(Errc::kAborted), p.now);
    EXPECT_EQ(p.link_action(), LinkAction::kReset);
  }
}

TEST(UnheardPeer, ThatTakesNothingIsNotWaitedForInThePast) {
  RawPeer p(initiating(true));
  EXPECT_EQ(p.ulpdus().size(), 1U);
  p.end.disconnect(p.now);
  offer_in_vain(p);  // the wake
  at(p, 200ms);
  ASSERT_TRUE(p.end.conn().deadline());
  EXPECT_GT(*p.end.conn().deadline(), p.now);
  EXPECT_EQ(p.link_action(), LinkAction::kNone);
  for (int i = 0; i < 3 && p.end.conn().phase() != Phase::kClosed; ++i) p.expire();
  EXPECT_EQ(p.now, kStart + 5s) << "the close time-out";
  EXPECT_EQ(p.link_action(), LinkAction::kReset);
}

TEST(UnheardPeer, ThatTakesTheWakeLateGetsTheFinBehindIt) {
  RawPeer p(initiating(true));
  EXPECT_EQ(p.ulpdus().size(), 1U);
  p.end.disconnect(p.now);
  offer_in_vain(p);
  at(p, 250ms);
  EXPECT_EQ(p.link_action(), LinkAction::kNone);
  EXPECT_FALSE(p.ulpdus().empty());
  EXPECT_EQ(p.link_action(), LinkAction::kShutdownWrite);
}

// With CRC off such an FPDU is refused before it is whole.
TEST(HeardPeer, IsNotWaitedForBehindATerminateForALargeFpdu) {
  RawPeer p(initiating(true, false));
  EXPECT_EQ(p.ulpdus().size(), 1U);
  const Bytes whole = test::fpdu(test::write_segment(Stag{0xBAD00}, 0, pattern(20000)), false);
  p.feed(Bytes(whole.begin(), whole.begin() + 5000));
  EXPECT_EQ(p.terminate().substr(0, 4), "1100");
  EXPECT_EQ(p.link_action(), LinkAction::kShutdownWrite);
}

TEST(HeardPeer, IsNotWaitedForBehindATerminateForABadCrc) {
  RawPeer p(initiating(true));
  EXPECT_EQ(p.ulpdus().size(), 1U);
  Bytes bad = test::fpdu(kWake, true);
  bad.back() ^= std::byte{1};
  p.feed(bad);
  EXPECT_EQ(p.terminate(), "20020000");
  EXPECT_EQ(p.link_action(), LinkAction::kShutdownWrite);
}

TEST(HeardPeer, IsNotWaitedForWhenItsOctetsCameBeforeTheTerminateLeft) {
  RawPeer p(initiating(true));
  EXPECT_EQ(p.ulpdus().size(), 1U);
  post_from_revoked_memory(p);
  offer_in_vain(p);
  ASSERT_EQ(p.end.conn().phase(), Phase::kTerminating);
  p.feed_ulpdu(kWake);
  EXPECT_NE(p.terminate(), "");
  EXPECT_EQ(p.link_action(), LinkAction::kShutdownWrite);
}

// Whether the rest of an FPDU comes with it or later, it is judged before our FIN: a Terminate could not follow that.
TEST(HeardPeer, NeedsNoWholeFpdu) {
  for (const bool with_the_reply : {false, true}) {
    SCOPED_TRACE(with_the_reply);
    RawPeerOptions o = initiating(true);
    o.finish_startup = !with_the_reply;
    RawPeer p(o);
    Bytes part = test::fpdu(kWake, true);
    const Bytes rest(part.begin() + 5, part.end());
    part.resize(5);
    p.feed(with_the_reply ? p.reply | part : part);
    EXPECT_EQ(p.ulpdus().size(), 1U);
    EXPECT_FALSE(p.end.conn().deadline()) << "no wake will be due";
    p.end.disconnect(p.now);
    EXPECT_FALSE(p.end.conn().tx_pending()) << "no wake";
    EXPECT_EQ(p.link_action(), LinkAction::kNone);
    if (with_the_reply) {
      p.expire();
    } else {
      p.feed(rest);
    }
    EXPECT_EQ(p.link_action(), LinkAction::kShutdownWrite);
  }
}

// The rest of an FPDU must go out, or what follows would be no FPDU; behind part of a message there can be no other.
TEST(UnheardPeer, GetsNoWakeWithinAMessage) {
  RawPeer p(initiating(true));
  auto& local = p.end.region(50000);
  p.end.post(test::send_wr(1, local.all()));
  (void)p.drain(3000);
  p.end.conn().abort_sparing(make_error(Errc::kAborted), p.now);
  p.end.collect();
  EXPECT_EQ(p.end.sends.at(0).status, Errc::kFlushed);
  const auto sent = p.ulpdus();  // whole FPDUs, or this fails
  EXPECT_GE(sent.size(), 3U);
  EXPECT_LE(sent.size(), 4U);
  EXPECT_EQ(std::count(sent.begin(), sent.end(), kWake), 0);
  p.expire();
  EXPECT_EQ(p.link_action(), LinkAction::kReset);
}

TEST(UnheardPeer, HasNoMomentWhenItWasHeardOrNeedNotBe) {
  for (const bool peer_to_peer : {false, true}) {
    for (const bool abortive : {false, true}) {
      RawPeer p(initiating(peer_to_peer));
      (void)p.ulpdus();
      if (peer_to_peer) p.feed_ulpdu(kWake);
      if (abortive) {
        p.end.conn().abort_sparing(make_error(Errc::kAborted), p.now);
      } else {
        p.end.disconnect(p.now);
      }
      EXPECT_FALSE(p.end.conn().tx_pending());
      EXPECT_EQ(p.link_action(), abortive ? LinkAction::kReset : LinkAction::kShutdownWrite);
    }
  }
}

}  // namespace
}  // namespace iwarp::stream
