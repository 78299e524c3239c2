// After disconnect(): what was posted, and what the peer has asked for, still leaves, within limits.
#include <gtest/gtest.h>

#include "tests/support/covers.h"
#include "tests/support/raw_peer.h"

namespace iwarp::stream {
namespace {

using namespace std::chrono_literals;
using test::Bytes;
using test::pattern;
using test::RawPeer;
using test::send_segment;
using test::operator|;

// A peer that has asked for memory of the connection under test, and takes what it likes of the answer.
class DrainingReads : public ::testing::Test {
 protected:
  static constexpr std::uint32_t kBytes = 3'000'000;  // several batches

  DrainingReads() { source_.fill(pattern(kBytes, 5)); }
  void ask(std::uint32_t bytes) {
    asked_ = bytes;
    peer_.feed_ulpdu(test::read_request_segment({Stag{0x500}, 0, bytes, source_.stag(), source_.to()}));
  }
  void expect_served_and_then_fin() {
    EXPECT_EQ(peer_.link_action(), LinkAction::kNone) << "not before the Response has left";
    Bytes served;
    for (const Bytes& ulpdu : peer_.ulpdus()) {
      ASSERT_EQ(ulpdu[1], std::byte{0x42});
      served.insert(served.end(), ulpdu.begin() + 14, ulpdu.end());
    }
    EXPECT_EQ(served.size(), asked_);
    EXPECT_TRUE(std::equal(served.begin(), served.end(), source_.bytes().begin()));
    EXPECT_EQ(peer_.link_action(), LinkAction::kShutdownWrite);
  }

  RawPeer peer_;
  test::Region& source_ = peer_.end.region(kBytes, test::kRemoteAll);
  std::uint32_t asked_ = 0;
};

TEST_F(DrainingReads, ThatWaitForTheirResponseAreAnswered) {
  ask(1000);
  peer_.end.disconnect(peer_.now);
  expect_served_and_then_fin();
}

TEST_F(DrainingReads, WhoseResponseIsEncodedAndPartlySentAreAnswered) {
  ask(100'000);
  EXPECT_EQ(peer_.drain(10'000), 10'000U);
  peer_.end.disconnect(peer_.now);
  expect_served_and_then_fin();
}

TEST_F(DrainingReads, WhoseResponseStandsBetweenTwoBatchesAreAnswered) {
  ask(kBytes);
  std::size_t batch = 0;
  for (const ConstBytes run : peer_.end.conn().tx_buffers(peer_.now)) batch += run.size();
  ASSERT_LT(batch, kBytes) << "else there is no second one";
  EXPECT_EQ(peer_.drain(batch), batch);
  peer_.end.disconnect(peer_.now);
  expect_served_and_then_fin();
}

// A connection that has so much to send that it takes a while.
class Draining : public ::testing::Test {
 protected:
  Draining() {
    peer_.feed_ulpdu(test::write_segment(Stag{1}, 0, {}));
    peer_.end.post(test::send_wr(1, source_.all()));
    peer_.end.disconnect(peer_.now);
  }
  [[nodiscard]] Duration left() { return *peer_.end.conn().deadline() - peer_.now; }
  // The peer waits, then takes a little.
  void take_after(Duration pause) {
    peer_.now += pause;
    peer_.end.expire(peer_.now);
    EXPECT_EQ(peer_.drain(1000), 1000U);
  }

  RawPeer peer_;
  test::Region& source_ = peer_.end.region(1'000'000);
};

TEST_F(Draining, GivesAPeerThatTakesSomethingTimeAgain) {
  EXPECT_EQ(left(), 5s);
  for (int i = 0; i < 4; ++i) {
    take_after(4s);
    EXPECT_EQ(left(), 5s) << "from the last octets that it took";
  }
  peer_.expire();
  EXPECT_EQ(peer_.link_action(), LinkAction::kReset);
}

TEST_F(Draining, GivesABusyPeerNoMoreThanTheDrainTimeout) {
  const TimePoint end = peer_.now + 30s;
  for (int i = 0; i < 7; ++i) take_after(4s);
  EXPECT_EQ(*peer_.end.conn().deadline(), end);
  take_after(1s);
  EXPECT_EQ(*peer_.end.conn().deadline(), end);
  peer_.expire();
  EXPECT_EQ(peer_.now, end);
  EXPECT_EQ(peer_.link_action(), LinkAction::kReset);
  EXPECT_EQ(peer_.end.sends.at(0).status, Errc::kFlushed);
}

TEST(Disconnect, ReceivesMayStillBePosted) {
  RawPeer p;
  auto& local = p.end.region(100);
  p.end.disconnect(p.now);
  EXPECT_EQ(p.link_action(), LinkAction::kShutdownWrite);
  p.end.post(rdmap::RecvWr{1, local.all()});
  p.feed_ulpdu(send_segment(pattern(4)));
  EXPECT_EQ(p.end.recvs.at(0).status, Errc::kOk);
  p.end.end(TcpEnd::kFin, p.now);
  p.end.post(rdmap::RecvWr{2, local.all()});
  p.end.collect();
  EXPECT_EQ(p.end.recvs.at(1).status, Errc::kFlushed);
}

}  // namespace
}  // namespace iwarp::stream
