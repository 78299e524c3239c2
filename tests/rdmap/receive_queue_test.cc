#include "iwarp/rdmap/receive_queue.h"

#include <gtest/gtest.h>

#include "tests/support/covers.h"

namespace iwarp::rdmap {
namespace {

TEST(ReceiveQueue, CompletesInPostingOrder) {
  COVERS("RFC5040-5.5-12");
  COVERS("RFC5040-5.3-6");
  COVERS("RFC5040-B-1");
  COVERS("RFC5041-5.3-8");
  COVERS("RFC5042-2.3.5-1");
  ReceiveQueue q(3);
  EXPECT_EQ(q.current(), nullptr);
  EXPECT_TRUE(q.post({1, {}}));
  EXPECT_TRUE(q.post({2, {}}));
  EXPECT_EQ(q.current()->wr_id, 1U);
  q.complete_current({.byte_len = 5});
  EXPECT_EQ(q.current()->wr_id, 2U);
  q.complete_current({.byte_len = 6});
  EXPECT_EQ(q.current(), nullptr);
  EXPECT_EQ(q.posted(), 0U);
  auto c = q.poll();
  ASSERT_TRUE(c);
  EXPECT_EQ(c->wr_id, 1U);
  EXPECT_EQ(c->byte_len, 5U);
  EXPECT_EQ(c->op, WcOp::kRecv);
  EXPECT_EQ(q.poll()->wr_id, 2U);
  EXPECT_FALSE(q.poll());
}

TEST(ReceiveQueue, DepthCountsWhatIsNotPolled) {
  ReceiveQueue q(2);
  EXPECT_TRUE(q.post({1, {}}));
  EXPECT_TRUE(q.post({2, {}}));
  EXPECT_FALSE(q.post({3, {}}));
  q.complete_current({});
  EXPECT_FALSE(q.post({3, {}}));
  EXPECT_TRUE(q.poll());
  EXPECT_TRUE(q.post({3, {}}));
  EXPECT_EQ(q.posted(), 2U);
}

TEST(ReceiveQueue, FlushKeepsWhatWasDone) {
  COVERS("RFC5041-6.2.2-4");
  ReceiveQueue q(3);
  for (std::uint64_t i = 1; i <= 3; ++i) EXPECT_TRUE(q.post({i, {}}));
  q.complete_current({.byte_len = 5});
  q.flush();
  q.flush();
  EXPECT_EQ(q.poll()->status, Errc::kOk);
  EXPECT_EQ(q.poll()->status, Errc::kFlushed);
  EXPECT_EQ(q.poll()->status, Errc::kFlushed);
  EXPECT_FALSE(q.poll());
}

TEST(ReceiveQueue, WrapsAround) {
  ReceiveQueue q(2);
  for (std::uint64_t i = 1; i <= 9; ++i) {
    ASSERT_TRUE(q.post({i, {}}));
    q.complete_current({});
    ASSERT_EQ(q.poll()->wr_id, i);
  }
}

}  // namespace
}  // namespace iwarp::rdmap
