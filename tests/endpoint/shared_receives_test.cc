// Endpoints of several streams that draw from the same Receives.
#include "iwarp/rdmap/shared_receives.h"

#include <gtest/gtest.h>

#include "tests/endpoint/message_half.h"
#include "tests/support/covers.h"

namespace iwarp::endpoint {
namespace {

using rdmap::RecvWr;
using rdmap::SharedReceives;
using test::Bytes;

// Two streams whose receiving ends share. Each end has memory of its own, so a Receive with memory is for one of them.
class SharedEndpoints : public testing::TestWithParam<bool> {
 protected:
  SharedEndpoints() {
    one_.direct = two_.direct = GetParam();
    one_.mulpdu = two_.mulpdu = 200;
    one_.establish();
    two_.establish();
  }
  // In the memory of the receiving end of `of`.
  RecvWr receive(std::uint64_t id, MessagePair& of, std::size_t bytes) { return {id, of.b.region(bytes).all()}; }

  SharedReceives shared_{16};
  MessagePair one_{{}, &shared_}, two_{{}, &shared_};
};
INSTANTIATE_TEST_SUITE_P(CopiedAndDirect, SharedEndpoints, testing::Bool());

TEST_P(SharedEndpoints, WhoComesFirstTakesTheOldest) {
  COVERS("RFC5042-2.3.5-1");
  for (const std::uint64_t id : {1, 2, 3}) ASSERT_TRUE(shared_.post({id, {}}));
  for (MessagePair* from : {&two_, &one_, &two_}) {
    from->a.post(test::send_wr(1, {}));
    from->settle();
  }
  ASSERT_EQ(one_.b.recvs.size(), 1U);
  EXPECT_EQ(one_.b.recvs[0].wr_id, 2U);
  ASSERT_EQ(two_.b.recvs.size(), 2U);
  EXPECT_EQ(two_.b.recvs[0].wr_id, 1U);
  EXPECT_EQ(two_.b.recvs[1].wr_id, 3U);
}

TEST_P(SharedEndpoints, MessagesUnderWayAtTheSameTimeKeepTheirReceives) {
  ASSERT_TRUE(shared_.post(receive(1, one_, 600)));
  ASSERT_TRUE(shared_.post(receive(2, two_, 600)));
  auto& first = one_.a.region(500);
  auto& second = two_.a.region(500);
  first.fill(Bytes(500, std::byte{1}));
  second.fill(Bytes(500, std::byte{2}));
  one_.a.post(test::send_wr(1, first.all()));
  two_.a.post(test::send_wr(1, second.all()));
  for (int i = 0; i < 8; ++i) {
    (void)one_.move(one_.a, one_.b);
    (void)two_.move(two_.a, two_.b);
  }
  for (const MessagePair* p : {&one_, &two_}) {
    ASSERT_EQ(p->b.recvs.size(), 1U);
    EXPECT_EQ(p->b.recvs[0].status, Errc::kOk);
    EXPECT_EQ(p->b.recvs[0].byte_len, 500U);
  }
  EXPECT_EQ(one_.b.recvs[0].wr_id, 1U);
  EXPECT_EQ(two_.b.recvs[0].wr_id, 2U);
}

TEST_P(SharedEndpoints, AnEndAmidAMessageFlushesTheOneReceiveThatItTook) {
  ASSERT_TRUE(shared_.post(receive(1, one_, 600)));
  ASSERT_TRUE(shared_.post({2, {}}));
  one_.a.post(test::send_wr(1, one_.a.region(500).all()));
  ASSERT_TRUE(one_.move(one_.a, one_.b));
  EXPECT_EQ(shared_.posted(), 1U);
  EXPECT_FALSE(one_.b.core().done_receiving());
  one_.b.end(Input::kLost, make_error(Errc::kConnectionLost), one_.now);
  EXPECT_TRUE(one_.b.core().done_receiving());
  ASSERT_EQ(one_.b.recvs.size(), 1U);
  EXPECT_EQ(one_.b.recvs[0].wr_id, 1U);
  EXPECT_EQ(one_.b.recvs[0].status, Errc::kFlushed);
  EXPECT_EQ(shared_.posted(), 1U) << "what it had not taken is there for others";
  two_.a.post(test::send_wr(1, {}));
  two_.settle();
  ASSERT_EQ(two_.b.recvs.size(), 1U);
  EXPECT_EQ(two_.b.recvs[0].wr_id, 2U);
}

TEST_P(SharedEndpoints, NoneLeftEndsTheStreamThatFindsNoneAndNoOther) {
  COVERS("RFC5041-7.1-2");
  ASSERT_TRUE(shared_.post({1, {}}));
  for (int i = 0; i < 2; ++i) one_.a.post(test::send_wr(1, {}));
  one_.settle();
  ASSERT_EQ(one_.b.recvs.size(), 1U) << "nothing is flushed, for nothing was taken";
  EXPECT_EQ(one_.b.recvs[0].status, Errc::kOk);
  ASSERT_TRUE(one_.a.ended && one_.a.ended->received);
  EXPECT_EQ(one_.a.ended->received->code, (TerminateCode{1, 2, 2}));
  ASSERT_TRUE(shared_.post({2, {}}));
  two_.a.post(test::send_wr(1, {}));
  two_.settle();
  EXPECT_EQ(two_.b.recvs.size(), 1U);
  EXPECT_FALSE(two_.b.ended);
}

TEST_P(SharedEndpoints, AReceiveOfBadMemoryEndsTheStreamThatTookIt) {
  COVERS("RFC5041-7.2-2");
  std::array<std::byte, 8> strange{};
  ASSERT_TRUE(shared_.post({1, rdmap::Sge{strange.data(), 8, Stag{0x4711}}}));
  ASSERT_TRUE(shared_.post({2, {}}));
  one_.a.post(test::send_wr(1, one_.a.region(8).all()));
  one_.settle();
  ASSERT_EQ(one_.b.recvs.size(), 1U);
  EXPECT_EQ(one_.b.recvs[0].status, Errc::kFlushed);
  ASSERT_TRUE(one_.b.ended && one_.b.ended->sent);
  EXPECT_EQ(one_.b.ended->sent->code, (TerminateCode{1, 0, 0}));
  two_.a.post(test::send_wr(1, {}));
  two_.settle();
  EXPECT_EQ(two_.b.recvs.size(), 1U);
  EXPECT_FALSE(two_.b.ended);
}

TEST_P(SharedEndpoints, HoldsMoreThanItHadRoomForWhileNobodyPolls) {
  SharedReceives many(1000);
  MessagePair p({}, &many);
  p.establish();
  for (std::uint64_t id = 0; id < 1000; ++id) ASSERT_TRUE(many.post({id, {}}));
  std::vector<Message> burst;
  for (int i = 0; i < 1000; ++i) {
    p.a.post(test::send_wr(1, {}));
    burst.push_back(*p.a.send(p.mulpdu, p.now));
  }
  for (const Message& m : burst) p.b.core().receive(m.ulpdu);
  for (std::uint64_t id = 0; id < 1000; ++id) {
    const auto c = p.b.core().poll_recv();
    ASSERT_TRUE(c);
    EXPECT_EQ(c->wr_id, id);
    EXPECT_EQ(c->status, Errc::kOk);
  }
}

TEST_P(SharedEndpoints, TakesNoPostOfItsOwn) {
  const auto refused = one_.b.core().post_recv({1, {}});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Errc::kInvalidArgument);
  EXPECT_TRUE(one_.a.core().post_recv({1, {}}).ok()) << "the other end has its own";
}

// While it closes in order the peer may still be sending.
TEST_P(SharedEndpoints, AnOrderlyEndTakesReceivesUntilThePeersEnd) {
  ASSERT_TRUE(shared_.post({1, {}}));
  one_.b.disconnect(one_.now);
  (void)one_.move(one_.b, one_.a);
  EXPECT_FALSE(one_.b.core().done_receiving());
  one_.settle();
  EXPECT_TRUE(one_.b.core().done_receiving());
  EXPECT_EQ(shared_.posted(), 1U);
  EXPECT_TRUE(one_.b.recvs.empty());
}

}  // namespace
}  // namespace iwarp::endpoint
