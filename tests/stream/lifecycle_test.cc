// How a connection ends: FIN, RST, Terminate, draining, and the close timer.
#include <gtest/gtest.h>

#include "tests/support/covers.h"
#include "tests/support/pair.h"
#include "tests/support/raw_peer.h"

namespace iwarp::stream {
namespace {

using namespace std::chrono_literals;
using test::Bytes;
using test::hex;
using test::Pair;
using test::PairOptions;
using test::pattern;
using test::RawPeer;
using test::RawPeerOptions;
using test::send_segment;
using test::operator|;

TEST(Fin, BetweenFpdusIsOrderly) {
  COVERS("RFC5044-7.2-2");
  COVERS("RFC5041-3-12");
  COVERS("RFC5041-3-13");
  COVERS("RFC5041-6.2.1-7");
  RawPeer p;
  auto& local = p.end.region(100);
  p.end.post(rdmap::RecvWr{1, local.all()});
  p.end.post(rdmap::RecvWr{2, local.all()});
  p.feed_ulpdu(send_segment(pattern(4)));
  p.end.end(TcpEnd::kFin, p.now);
  EXPECT_EQ(p.end.disconnected()->reason.code, Errc::kPeerClosed);
  EXPECT_EQ(p.end.recvs[1].status, Errc::kFlushed);
  EXPECT_EQ(p.link_action(), LinkAction::kClose);
  EXPECT_EQ(p.link_action(), LinkAction::kNone);
}

TEST(Fin, InsideAnFpduIsALoss) {
  COVERS("RFC5044-8-1");
  COVERS("RFC5041-6.2.2-1");
  COVERS("RFC5044-8-5");
  for (const bool crc : {true, false}) {
    const Bytes whole = test::fpdu(send_segment(pattern(9000)), crc);
    for (const std::size_t n : {1UL, 2UL, 3UL, 19UL, 20UL, 21UL, 100UL, 5000UL, whole.size() - 1}) {
      RawPeerOptions o;
      o.crc = crc;
      RawPeer p(o);
      auto& local = p.end.region(9000);
      p.feed_ulpdu(test::write_segment(Stag{1}, 0, {}));
      p.end.post(rdmap::RecvWr{1, local.all()});
      p.feed(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(n)));
      p.end.end(TcpEnd::kFin, p.now);
      EXPECT_EQ(p.end.disconnected()->reason.code, Errc::kConnectionLost) << n;
      EXPECT_EQ(p.end.recvs.at(0).status, Errc::kFlushed);
    }
  }
}

TEST(Reset, IsALoss) {
  COVERS("RFC5044-8-1");
  COVERS("RFC5040-6.2-3");
  Pair p;
  p.establish();
  auto& a = p.initiator.region(100000);
  auto& b = p.responder.region(100000);
  p.responder.post(rdmap::RecvWr{1, b.all()});
  p.initiator.post(test::send_wr(2, a.all()));
  p.to_responder.reset_after = 5000;
  p.to_responder.max_write_bytes = 2000;
  p.run();
  for (const auto* end : {&p.initiator, &p.responder}) {
    ASSERT_NE(end->disconnected(), nullptr);
    EXPECT_EQ(end->disconnected()->reason.code, Errc::kConnectionLost);
  }
  EXPECT_EQ(p.initiator.sends.at(0).status, Errc::kFlushed);
  EXPECT_EQ(p.responder.recvs.at(0).status, Errc::kFlushed);
}

TEST(Disconnect, SendsWhatWasPosted) {
  COVERS("RFC5041-6.2.1-2");
  COVERS("RFC5041-6.2.1-3");
  COVERS("RFC5040-6.2-1");
  COVERS("RFC5040-6.2-2");
  COVERS("RFC5041-6.2-2");
  COVERS("RFC5041-6.2-3");
  Pair p;
  p.establish();
  auto& a = p.initiator.region(300000);
  auto& b = p.responder.region(300000, test::kRemoteAll);
  a.fill(pattern(150000, 1));
  b.fill(pattern(100000, 2), 200000);
  p.responder.post(rdmap::RecvWr{1, b.sge(0, 10)});
  p.initiator.post(test::write_wr(2, a.sge(0, 150000), b, 10));
  p.initiator.post(test::read_wr(3, a.sge(150000, 100000), b, 200000));
  p.initiator.post(test::send_wr(4, a.sge(0, 5)));
  p.initiator.disconnect(p.now);
  p.initiator.post(test::send_wr(5, {}));
  p.to_responder.max_write_bytes = 7000;
  p.run();
  ASSERT_EQ(p.initiator.sends.size(), 4U) << p.log();
  for (const auto& c : p.initiator.sends) EXPECT_EQ(c.status, c.wr_id == 5 ? Errc::kFlushed : Errc::kOk) << c.wr_id;
  EXPECT_EQ(p.responder.recvs.at(0).status, Errc::kOk);
  EXPECT_TRUE(std::equal(a.bytes().begin(), a.bytes().begin() + 150000, b.bytes().begin() + 10));
  EXPECT_TRUE(std::equal(b.bytes().begin() + 200000, b.bytes().end(), a.bytes().begin() + 150000));
  EXPECT_EQ(p.initiator.disconnected()->reason.code, Errc::kAborted);
  EXPECT_EQ(p.responder.disconnected()->reason.code, Errc::kPeerClosed);
  EXPECT_FALSE(p.initiator_link.reset || p.responder_link.reset);
}

TEST(Disconnect, StillTakesWhatThePeerSends) {
  COVERS("RFC5041-6.2.1-8");
  COVERS("RFC5044-7.2-1");
  RawPeer p;
  auto& local = p.end.region(100);
  p.end.post(rdmap::RecvWr{1, local.all()});
  p.end.disconnect(p.now);
  EXPECT_EQ(p.link_action(), LinkAction::kShutdownWrite);
  p.feed_ulpdu(send_segment(pattern(4)));
  EXPECT_EQ(p.end.recvs.at(0).status, Errc::kOk);
  p.end.end(TcpEnd::kFin, p.now);
  EXPECT_EQ(p.link_action(), LinkAction::kClose);
  EXPECT_EQ(p.end.disconnected()->reason.code, Errc::kAborted);
}

TEST(Disconnect, DoesNotHideTheErrorThatEndedTheConnection) {
  RawPeer p;
  p.feed_ulpdu(send_segment(pattern(4)));  // no receive is posted
  p.end.disconnect(p.now);
  EXPECT_NE(p.terminate(), "");
  p.end.end(TcpEnd::kFin, p.now);
  EXPECT_NE(p.end.disconnected()->reason.code, Errc::kAborted);
}

TEST(Disconnect, OfBothAtOnce) {
  Pair p;
  p.establish();
  p.initiator.disconnect(p.now);
  p.responder.disconnect(p.now);
  p.run();
  ASSERT_NE(p.initiator.disconnected(), nullptr);
  ASSERT_NE(p.responder.disconnected(), nullptr);
  EXPECT_FALSE(p.initiator_link.reset || p.responder_link.reset);
}

TEST(CloseTimer, ResetsAPeerThatNeverCloses) {
  RawPeer p;
  p.end.disconnect(p.now);
  EXPECT_EQ(p.link_action(), LinkAction::kShutdownWrite);
  EXPECT_EQ(*p.end.conn().deadline() - p.now, 5s);
  p.expire();
  EXPECT_EQ(p.link_action(), LinkAction::kReset);
  EXPECT_NE(p.end.disconnected(), nullptr);
}

TEST(CloseTimer, ResetsAPeerThatTakesNothing) {
  Pair p;
  p.establish();
  auto& a = p.initiator.region(1000000);
  auto& b = p.responder.region(1000000);
  p.responder.post(rdmap::RecvWr{1, b.all()});
  p.initiator.post(test::send_wr(2, a.all()));
  p.to_responder.stall_after = p.to_responder.recorded.size() + 50000;
  p.initiator.disconnect(p.now);
  p.run();
  EXPECT_TRUE(p.initiator_link.reset);
  EXPECT_EQ(p.initiator.sends.at(0).status, Errc::kFlushed);
  EXPECT_EQ(p.responder.disconnected()->reason.code, Errc::kConnectionLost);
}

TEST(CloseTimer, ResetsWhenTheTerminateIsNotTaken) {
  COVERS("RFC5040-5.4-11");
  RawPeer p;
  p.feed_ulpdu(send_segment(pattern(4)));  // no receive is posted
  EXPECT_TRUE(p.end.conn().tx_pending());
  p.expire();
  EXPECT_EQ(p.link_action(), LinkAction::kReset);
  EXPECT_EQ(p.end.disconnected()->reason.code, Errc::kUntaggedNoBuffer);
}

TEST(Terminate, OfThePeerEndsTheConnection) {
  COVERS("RFC5040-5.4-7");
  COVERS("RFC5040-3.2-4");
  COVERS("RFC5040-6.2.1-2");
  COVERS("RFC5040-5.4-11");
  COVERS("RFC5040-3.2-13");
  RawPeer p;
  auto& local = p.end.region(100000);
  p.feed_ulpdu(test::write_segment(Stag{1}, 0, {}));
  p.end.post(rdmap::RecvWr{1, local.all()});
  p.end.post(test::send_wr(2, local.all()));
  EXPECT_EQ(p.drain(2000), 2000U);
  p.feed_ulpdu(test::terminate_segment(hex("1202c000 0020") | send_segment({})));
  EXPECT_EQ(p.end.sends.at(0).status, Errc::kFlushed);
  EXPECT_EQ(p.end.recvs.at(0).status, Errc::kFlushed);
  EXPECT_FALSE(p.end.conn().tx_pending()) << "neither the rest nor a Terminate of ours";
  EXPECT_EQ(p.link_action(), LinkAction::kShutdownWrite);
  p.end.end(TcpEnd::kFin, p.now);
  const auto* down = p.end.disconnected();
  ASSERT_NE(down, nullptr);
  EXPECT_EQ(down->reason.code, Errc::kRemoteTerminate);
  ASSERT_TRUE(down->received);
  EXPECT_EQ(down->received->code, (TerminateCode{1, 2, 2}));
  EXPECT_FALSE(down->sent);
}

TEST(Terminate, OfSiwIsUnderstood) {
  COVERS("RFC5040-6.2.1-3");
  RawPeer p;
  p.feed_ulpdu(test::terminate_segment(hex("21020300 0020") | send_segment({})));
  p.end.end(TcpEnd::kReset, p.now);
  ASSERT_NE(p.end.disconnected(), nullptr);
  EXPECT_EQ(p.end.disconnected()->received->code, (TerminateCode{1, 2, 2}));
  EXPECT_EQ(p.end.disconnected()->received->order, rdmap::TerminateOrder::kSiw);
  EXPECT_EQ(p.end.disconnected()->reason.code, Errc::kRemoteTerminate) << "the first cause stands";
}

// Who has gone for good is told from who has hung up.
TEST(Lost, SaysWhetherThePeerResetOrFellSilent) {
  for (const auto& [how, why] :
       {std::pair(TcpEnd::kReset, "reset by the peer"), std::pair(TcpEnd::kSilence, "did not answer")}) {
    RawPeer p;
    p.end.end(how, p.now);
    const auto* down = p.end.disconnected();
    ASSERT_NE(down, nullptr);
    EXPECT_EQ(down->reason.code, Errc::kConnectionLost);
    EXPECT_NE(std::string_view(down->reason.why).find(why), std::string_view::npos) << down->reason.why;
  }
}

TEST(Terminate, BetweenTwoOfOurs) {
  Pair p;
  p.establish();
  auto& a = p.initiator.region(10);
  p.initiator.post(test::send_wr(1, a.all()));  // the responder has posted nothing
  p.run();
  ASSERT_TRUE(p.initiator.disconnected()->received);
  EXPECT_EQ(p.initiator.disconnected()->received->to_string(), "1/2/2 untagged: no buffer available");
  ASSERT_TRUE(p.responder.disconnected()->sent);
  EXPECT_EQ(p.responder.disconnected()->reason.code, Errc::kUntaggedNoBuffer);
  EXPECT_FALSE(p.initiator_link.reset || p.responder_link.reset);
}

TEST(Crc, FlippedBitAnywhereIsFound) {
  COVERS("RFC5044-8-2");
  COVERS("RFC5041-3-8");
  PairOptions o;
  for (std::uint64_t at = 0; at < 3000; at += 61) {
    Pair p(o);
    p.establish();
    auto& a = p.initiator.region(10000);
    auto& b = p.responder.region(10000);
    p.responder.post(rdmap::RecvWr{1, b.all()});
    const std::uint64_t begin = p.to_responder.recorded.size();
    p.to_responder.flip_bit_at = begin + at;
    p.initiator.post(test::send_wr(2, a.all()));
    p.run();
    ASSERT_EQ(p.responder.recvs.at(0).status, Errc::kFlushed) << at;
    ASSERT_NE(p.initiator.disconnected(), nullptr);
    if (const auto& received = p.initiator.disconnected()->received) {
      EXPECT_EQ(received->code, (TerminateCode{2, 0, 2})) << at;
    } else {
      ADD_FAILURE() << "no Terminate after a flip at " << at << "\n" << p.log();
    }
  }
}

}  // namespace
}  // namespace iwarp::stream
