// Options::outlive_peer: nobody hears of a peer that has gone before sending to it.
#include <gtest/gtest.h>

#include "tests/endpoint/message_half.h"

namespace iwarp::endpoint {
namespace {

using rdmap::RecvWr;

class OutlivePeer : public ::testing::Test {
 protected:
  static void expect(const std::vector<rdmap::Completion>& got,
                     const std::vector<std::pair<std::uint64_t, Errc>>& what) {
    ASSERT_EQ(got.size(), what.size());
    for (std::size_t i = 0; i < what.size(); ++i) {
      EXPECT_EQ(got[i].wr_id, what[i].first);
      EXPECT_EQ(got[i].status, what[i].second) << i;
    }
  }
  void lose(Input how, Errc why) { pair_.a.end(how, make_error(why), pair_.now); }

  MessagePair pair_{Options{.outlive_peer = true}};
};

TEST_F(OutlivePeer, ReceivesStayPostedUntilSomethingIsSent) {
  pair_.establish();
  pair_.a.post(RecvWr{.wr_id = 1});
  lose(Input::kPeerEnd, Errc::kPeerClosed);
  ASSERT_TRUE(pair_.a.ended) << "the lower layer lets go";
  EXPECT_EQ(pair_.a.core().phase(), Phase::kClosed);
  EXPECT_TRUE(pair_.a.core().alone());
  EXPECT_FALSE(pair_.a.core().done_receiving());
  pair_.a.post(RecvWr{.wr_id = 2});
  pair_.a.expire(pair_.now);
  EXPECT_TRUE(pair_.a.recvs.empty());
  pair_.a.core().give_up_peer();
  EXPECT_TRUE(pair_.a.core().alone()) << "nobody sends";
  pair_.a.post(test::send_wr(3, {}));
  pair_.a.expire(pair_.now);
  expect(pair_.a.sends, {{3, Errc::kConnectionLost}});
  expect(pair_.a.recvs, {{1, Errc::kFlushed}, {2, Errc::kFlushed}});
  EXPECT_FALSE(pair_.a.core().alone());
  pair_.a.post(test::send_wr(4, {}));
  pair_.a.post(RecvWr{.wr_id = 5});
  pair_.a.expire(pair_.now);
  expect(pair_.a.sends, {{3, Errc::kConnectionLost}, {4, Errc::kFlushed}});
  EXPECT_EQ(pair_.a.recvs.size(), 3U);
}

TEST_F(OutlivePeer, WhatIsBeingSentFailsAndTheRestIsFlushed) {
  pair_.establish();
  pair_.a.post(RecvWr{.wr_id = 1});
  pair_.a.post(test::read_wr(2, pair_.a.region(8).all(), pair_.b.region(8, ddp::Access::kRemoteRead)));
  ASSERT_TRUE(pair_.a.send(1000, pair_.now));
  pair_.a.post(test::send_wr(3, {}));
  lose(Input::kLost, Errc::kConnectionLost);
  pair_.a.post(test::send_wr(4, {}));
  pair_.a.expire(pair_.now);
  EXPECT_TRUE(pair_.a.sends.empty()) << "the peer may answer yet";
  pair_.a.core().give_up_peer();
  pair_.a.expire(pair_.now);
  expect(pair_.a.sends, {{2, Errc::kConnectionLost}, {3, Errc::kFlushed}, {4, Errc::kFlushed}});
  expect(pair_.a.recvs, {{1, Errc::kFlushed}});
}

TEST_F(OutlivePeer, APeerThatWasNeverReached) {
  for (const bool began : {false, true}) {
    MessagePair pair{Options{.outlive_peer = true}};
    pair.a.post(RecvWr{.wr_id = 1});
    if (began) pair.a.start(Opening::kAtOnce, pair.now);
    pair.a.end(began ? Input::kStartupFailed : Input::kAbort, make_error(Errc::kConnectionRefused), pair.now);
    EXPECT_TRUE(pair.a.core().alone());
    EXPECT_TRUE(pair.a.recvs.empty());
    pair.a.post(test::send_wr(2, {}));
    pair.a.core().give_up_peer();
    pair.a.expire(pair.now);
    expect(pair.a.sends, {{2, Errc::kConnectionLost}});
    expect(pair.a.recvs, {{1, Errc::kFlushed}});
  }
}

TEST_F(OutlivePeer, EndsOfThisSideFlush) {
  enum class How { kAbort, kLeave, kDisconnect };
  for (const How how : {How::kAbort, How::kLeave, How::kDisconnect}) {
    for (const bool alone : {false, true}) {
      MessagePair pair{Options{.outlive_peer = true}};
      pair.establish();
      pair.a.post(RecvWr{.wr_id = 1});
      if (alone) pair.a.end(Input::kPeerEnd, make_error(Errc::kPeerClosed), pair.now);
      EXPECT_TRUE(pair.a.recvs.empty());
      if (how == How::kAbort) pair.a.end(Input::kAbort, make_error(Errc::kAborted), pair.now);
      if (how == How::kLeave) pair.a.leave(pair.now);
      if (how == How::kDisconnect) {
        pair.a.disconnect(pair.now);
        pair.settle();
      }
      expect(pair.a.recvs, {{1, Errc::kFlushed}});
      EXPECT_FALSE(pair.a.core().alone());
    }
  }
}

// A message waits for a Receive, and the peer's end is behind it.
class WaitsBeforeTheEnd : public ::testing::Test {
 protected:
  void begin() {
    pair.establish();
    pair.b.post(test::send_wr(1, pair.b.region(8).all()));
    message = *pair.b.send(pair.mulpdu, pair.now);
    pair.a.receive(message, false, pair.now);
    ASSERT_TRUE(pair.a.core().holding());
    pair.a.core().end_is_behind();
  }

  static constexpr std::chrono::seconds kWait{60};
  MessagePair pair{Options{.receive_wait = kWait, .outlive_peer = true}};
  Message message;
};

TEST_F(WaitsBeforeTheEnd, AsLongAsOthers) {
  begin();
  EXPECT_EQ(pair.a.core().deadline(), pair.now + kWait);
  pair.now += std::chrono::seconds{59};
  pair.a.expire(pair.now);
  pair.a.post(RecvWr{.wr_id = 2, .sges = pair.a.region(8).all()});
  pair.a.receive(message, false, pair.now);
  ASSERT_EQ(pair.a.recvs.size(), 1U);
  EXPECT_EQ(pair.a.recvs[0].status, Errc::kOk);
  pair.a.end(Input::kPeerEnd, make_error(Errc::kPeerClosed), pair.now);
  EXPECT_TRUE(pair.a.core().alone());
}

TEST_F(WaitsBeforeTheEnd, AndIsNoViolationThen) {
  begin();
  pair.expire(pair.a);
  ASSERT_TRUE(pair.a.ended);
  EXPECT_EQ(pair.a.ended->reason.code, Errc::kPeerClosed);
  EXPECT_FALSE(pair.a.ended->sent);
  EXPECT_TRUE(pair.a.core().alone());
  EXPECT_FALSE(pair.a.core().holding());
  pair.a.post(RecvWr{.wr_id = 2});
  EXPECT_FALSE(pair.a.core().poll_recv());
  pair.a.core().give_up_peer();
  pair.a.post(test::send_wr(3, {}));
  EXPECT_EQ(pair.a.core().poll_send().value().status, Errc::kConnectionLost);
  EXPECT_EQ(pair.a.core().poll_recv().value().status, Errc::kFlushed);
}

TEST_F(WaitsBeforeTheEnd, ThoughNotWhereThePeerIsStillThere) {
  pair.establish();
  pair.b.post(test::send_wr(1, pair.b.region(8).all()));
  EXPECT_TRUE(pair.move(pair.b, pair.a));
  pair.expire(pair.a);
  EXPECT_EQ(pair.a.core().phase(), Phase::kTerminating);
  EXPECT_EQ(pair.a.core().reason().code, Errc::kUntaggedNoBuffer);
}

TEST_F(OutlivePeer, WithoutTheOptionAllIsFlushed) {
  MessagePair pair;
  pair.establish();
  pair.a.post(RecvWr{.wr_id = 1});
  pair.a.end(Input::kPeerEnd, make_error(Errc::kPeerClosed), pair.now);
  expect(pair.a.recvs, {{1, Errc::kFlushed}});
  EXPECT_FALSE(pair.a.core().alone());
  pair.a.core().give_up_peer();
  pair.a.expire(pair.now);
  EXPECT_EQ(pair.a.recvs.size(), 1U);
}

}  // namespace
}  // namespace iwarp::endpoint
