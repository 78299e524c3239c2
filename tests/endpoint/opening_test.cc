// Who may speak first, the RTR, and the first segment that establishes.
#include <gtest/gtest.h>

#include "tests/endpoint/message_half.h"

namespace iwarp::endpoint {
namespace {

using namespace std::chrono_literals;

TEST(Opening, WhoMustHearFirstSendsNothingBefore) {
  MessagePair p;
  p.a.start(Opening::kAtOnce, p.now);
  p.b.start(Opening::kWhenHeard, p.now);
  p.a.establish(MessagePair::kEight, p.now);
  p.b.establish(MessagePair::kEight, p.now);
  auto& text = p.b.region(8);
  auto& mailbox = p.a.region(8);
  p.a.post(rdmap::RecvWr{1, mailbox.all()});
  p.b.post(test::send_wr(1, text.all()));
  p.settle();
  EXPECT_TRUE(p.b.established);
  EXPECT_EQ(p.b.sent_segments, 0U);
  p.a.post(test::write_wr(2, {}, mailbox));  // of no octets
  p.settle();
  EXPECT_EQ(p.a.recvs.size(), 1U);
}

// A Terminate neither: so a violation is an abort.
TEST(Opening, WhoMustHearFirstEndsWithoutATerminate) {
  MessagePair p;
  p.b.start(Opening::kWhenHeard, p.now);
  auto& sink = p.b.region(8);
  p.b.post(test::read_wr(1, sink.all(), sink));
  p.b.establish({.ird = 1, .ord = 0}, p.now);
  ASSERT_TRUE(p.b.ended.has_value());
  EXPECT_EQ(p.b.ended->reason.code, Errc::kStartupLocal);
  EXPECT_FALSE(p.b.ended->sent);
  EXPECT_EQ(p.b.core().ending(), Ending::kAbrupt);
}

class Rtrs : public testing::TestWithParam<rdmap::Rtr> {};
INSTANTIATE_TEST_SUITE_P(WriteAndRead, Rtrs, testing::Values(rdmap::Rtr::kWrite, rdmap::Rtr::kRead));

TEST_P(Rtrs, EstablishesThePassiveSideAndNothingElse) {
  MessagePair p;
  p.a.start(Opening::kAtOnce, p.now);
  p.b.start(Opening::kWhenHeard, p.now);
  p.b.establish({.ird = 1, .ord = 1, .first_segment_by = p.now + 1s}, p.now);
  EXPECT_FALSE(p.b.established);
  p.a.establish({.ird = 1, .ord = 1, .rtr = GetParam()}, p.now);
  EXPECT_TRUE(p.a.established);
  p.settle();
  EXPECT_TRUE(p.b.established);
  EXPECT_FALSE(p.b.core().deadline()) << "it came in time";
  EXPECT_TRUE(p.a.sends.empty());
  EXPECT_FALSE(p.a.ended || p.b.ended);
}

TEST(Opening, AFirstSegmentThatDoesNotComeEndsIt) {
  MessagePair p;
  p.b.start(Opening::kWhenHeard, p.now);
  p.b.establish({.ird = 1, .ord = 1, .first_segment_by = p.now + 1s}, p.now);
  p.expire(p.b);
  ASSERT_TRUE(p.b.ended.has_value());
  EXPECT_EQ(p.b.ended->reason.code, Errc::kStartupTimeout);
  EXPECT_FALSE(p.b.ended->was_established);
}

TEST(Opening, AFailedStartupIsNoConnection) {
  MessagePair p;
  auto& mailbox = p.a.region(8);
  p.a.post(rdmap::RecvWr{1, mailbox.all()});
  p.a.start(Opening::kAtOnce, p.now);
  p.a.end(Input::kStartupFailed, make_error(Errc::kPeerRejected), p.now);
  ASSERT_TRUE(p.a.ended.has_value());
  EXPECT_EQ(p.a.ended->reason.code, Errc::kPeerRejected);
  EXPECT_FALSE(p.a.ended->was_established);
  ASSERT_EQ(p.a.recvs.size(), 1U);
  EXPECT_EQ(p.a.recvs[0].status, Errc::kFlushed);
}

}  // namespace
}  // namespace iwarp::endpoint
