#include "iwarp/rdmap/shared_receives.h"

#include "tests/rdmap/receiver_fixture.h"

namespace iwarp::rdmap {
namespace {

TEST(SharedReceives, AreTakenInTheOrderPosted) {
  COVERS("RFC5042-2.3.5-1");
  SharedReceives shared(3);
  RecvWr wr;
  EXPECT_FALSE(shared.take(wr));
  for (std::uint64_t id = 1; id <= 3; ++id) EXPECT_TRUE(shared.post({id, {}}));
  EXPECT_TRUE(shared.full());
  EXPECT_FALSE(shared.post({4, {}}));
  EXPECT_TRUE(shared.take(wr));
  EXPECT_EQ(wr.wr_id, 1U);
  EXPECT_EQ(shared.posted(), 2U);
  EXPECT_TRUE(shared.post({4, {}}));
  for (std::uint64_t id = 2; id <= 4; ++id) {
    EXPECT_TRUE(shared.take(wr));
    EXPECT_EQ(wr.wr_id, id);
  }
  EXPECT_FALSE(shared.take(wr));
  EXPECT_EQ(wr.wr_id, 4U) << "left alone";
}

TEST(SharedReceives, TheLimitIsReachedOnceUntilItIsSetAgain) {
  COVERS("RFC5042-6.4.3.1-1");
  COVERS("RFC5040-8.1.2-9");
  COVERS("RFC5041-8.3.2-7");
  SharedReceives shared(4);
  RecvWr wr;
  EXPECT_FALSE(shared.limit_reached()) << "0: never";
  for (std::uint64_t id = 1; id <= 4; ++id) EXPECT_TRUE(shared.post({id, {}}));
  shared.set_limit(3);
  EXPECT_TRUE(shared.take(wr));
  EXPECT_FALSE(shared.limit_reached()) << "as many as the limit are not fewer";
  EXPECT_TRUE(shared.take(wr));
  EXPECT_EQ(shared.limit(), 3U);
  EXPECT_TRUE(shared.limit_reached());
  EXPECT_EQ(shared.limit(), 0U);
  EXPECT_FALSE(shared.limit_reached());
  EXPECT_TRUE(shared.take(wr));
  EXPECT_FALSE(shared.limit_reached()) << "disarmed";
  shared.set_limit(2);
  EXPECT_TRUE(shared.limit_reached()) << "fewer already";
}

TEST(SharingReceiveQueue, HoldsWhatItHasTakenUntilItIsPolled) {
  SharedReceives shared(100);
  ReceiveQueue q(shared);
  EXPECT_TRUE(q.shares());
  EXPECT_EQ(q.current(), nullptr);
  EXPECT_EQ(q.take(), nullptr);
  // More than there is room for at first, with some of them polled between.
  for (std::uint64_t id = 1; id <= 100; ++id) ASSERT_TRUE(shared.post({id, {}}));
  std::uint64_t polled = 0;
  for (std::uint64_t id = 1; id <= 100; ++id) {
    const RecvWr* const wr = q.take();
    ASSERT_NE(wr, nullptr);
    EXPECT_EQ(wr->wr_id, id);
    EXPECT_EQ(q.current(), wr);
    q.complete_current({.byte_len = static_cast<std::uint32_t>(id)});
    if (id % 3 == 0) {
      EXPECT_EQ(q.poll()->wr_id, ++polled);
    }
  }
  EXPECT_EQ(q.take(), nullptr);
  while (const auto c = q.poll()) {
    EXPECT_EQ(c->wr_id, ++polled);
    EXPECT_EQ(c->byte_len, polled);
  }
  EXPECT_EQ(polled, 100U);
}

TEST(SharingReceiveQueue, FlushesWhatItHasTakenAndNoOther) {
  SharedReceives shared(3);
  ReceiveQueue q(shared);
  for (std::uint64_t id = 1; id <= 3; ++id) ASSERT_TRUE(shared.post({id, {}}));
  ASSERT_NE(q.take(), nullptr);
  q.complete_current({});
  ASSERT_NE(q.take(), nullptr);
  q.flush();
  EXPECT_EQ(q.poll()->status, Errc::kOk);
  const auto second = q.poll();
  EXPECT_EQ(second->wr_id, 2U);
  EXPECT_EQ(second->status, Errc::kFlushed);
  EXPECT_FALSE(q.poll());
  EXPECT_EQ(shared.posted(), 1U);
}

class SharingReceiver : public ReceiverTest {
 protected:
  void share(std::uint64_t id, const SgeList& sges) { EXPECT_TRUE(shared_.post({id, sges})); }
  Result<void> give(const Bytes& ulpdu) {
    if (auto ok = sharing_.begin(ulpdu, ulpdu.size()); !ok) return ok;
    if (auto ok = sharing_.place(ConstBytes(ulpdu).subspan(sharing_.header_bytes())); !ok) return ok;
    return sharing_.end();
  }

  SharedReceives shared_{8};
  ReceiveQueue taken_{shared_};
  Receiver sharing_{stags_, kMe, taken_, sends_, reads_, Extensions::kRfc7306};
};

TEST_F(SharingReceiver, AMessageTakesOneWithItsFirstSegment) {
  share(1, sge(0, 50));
  share(2, sge(50, 50));
  ASSERT_TRUE(give(send_segment(pattern(10), {.msn = 1, .last = false})).ok());
  EXPECT_EQ(shared_.posted(), 1U);
  EXPECT_FALSE(taken_.poll());
  ASSERT_TRUE(give(send_segment(pattern(10), {.msn = 1, .mo = 10})).ok());
  EXPECT_EQ(shared_.posted(), 1U) << "the second segment takes none";
  EXPECT_EQ(taken_.poll()->byte_len, 20U);
  ASSERT_TRUE(give(send_segment({}, {.msn = 2})).ok());
  EXPECT_EQ(shared_.posted(), 0U) << "a message of no octets takes one, too";
  EXPECT_EQ(taken_.poll()->wr_id, 2U);
}

TEST_F(SharingReceiver, NoneIsLeft) {
  COVERS("RFC5041-7.1-2");
  const auto refused = give(send_segment(pattern(1), {.msn = 1}));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Errc::kUntaggedNoBuffer);
  EXPECT_EQ(sharing_.terminate_for(refused.error()).code, (TerminateCode{1, 2, 2}));
}

// What would end the connection anyhow is no reason to take what others could use.
TEST_F(SharingReceiver, AMessageThatBeginsWrongTakesNone) {
  share(1, sge(0, 50));
  EXPECT_EQ(give(send_segment(pattern(1), {.msn = 2})).error().code, Errc::kUntaggedMsnRange);
  EXPECT_EQ(give(send_segment(pattern(1), {.msn = 1, .mo = 1})).error().code, Errc::kUntaggedInvalidMo);
  EXPECT_EQ(shared_.posted(), 1U);
}

TEST_F(SharingReceiver, AMessageThatIsTooLongHasTakenOne) {
  share(1, sge(0, 50));
  EXPECT_EQ(give(send_segment(pattern(51), {.msn = 1})).error().code, Errc::kUntaggedTooLong);
  EXPECT_EQ(shared_.posted(), 0U);
  taken_.flush();
  EXPECT_EQ(taken_.poll()->status, Errc::kFlushed);
}

TEST_F(SharingReceiver, ImmediateDataTakesOneTheRtrNone) {
  share(1, {});
  sharing_.expect_rtr_send();
  ASSERT_TRUE(give(send_segment({}, {.msn = 1})).ok());
  EXPECT_EQ(shared_.posted(), 1U);
  ASSERT_TRUE(give(send_segment(pattern(8), {.msn = 2}, Opcode::kImmediate)).ok());
  EXPECT_EQ(shared_.posted(), 0U);
  EXPECT_TRUE(taken_.poll()->has_immediate);
}

}  // namespace
}  // namespace iwarp::rdmap
