// QueuePair::unpolled(): whether what has succeeded was polled.
#include <gtest/gtest.h>

#include "tests/verbs/joined.h"

namespace iwarp::verbs {
namespace {

using test::drain;
using test::Joined;
using test::make_qp;

class Unpolled : public test::TwoQueuePairs {
 protected:
  [[nodiscard]] std::size_t poll_one() {
    Completion c;
    return cq_.poll({&c, 1});
  }
};

TEST_F(Unpolled, UntilTheLastThatSucceeded) {
  Joined joined(qp_, peer_);
  EXPECT_FALSE(qp_->unpolled());
  for (std::uint64_t id = 0; id < 3; ++id) ASSERT_TRUE(peer_->post_recv({.wr_id = id}).ok());
  ASSERT_TRUE(qp_->post_recv({.wr_id = 9}).ok());
  for (std::uint64_t id = 0; id < 3; ++id) ASSERT_TRUE(qp_->post_send({.wr_id = id}).ok());
  joined.pump();
  for (int left = 3; left > 0; --left) {
    EXPECT_TRUE(qp_->unpolled()) << left;
    ASSERT_EQ(poll_one(), 1U);
  }
  EXPECT_FALSE(qp_->unpolled());
  EXPECT_TRUE(peer_->unpolled()) << "what was received counts as well";
  EXPECT_EQ(drain(peer_cq_).size(), 3U);
  EXPECT_FALSE(peer_->unpolled());
  qp_->abort();
  EXPECT_FALSE(cq_.empty());
  EXPECT_FALSE(qp_->unpolled()) << "what is flushed does not";
}

TEST_F(Unpolled, OfOthersNothingCountsThatCameLater) {
  const auto other = make_qp(pd_, cq_);
  Joined joined(qp_, peer_);
  ASSERT_TRUE(peer_->post_recv(RecvWr{}).ok());
  ASSERT_TRUE(qp_->post_send({.wr_id = 1}).ok());
  joined.pump();
  other->abort();
  ASSERT_TRUE(other->post_send({.wr_id = 2}).ok());
  EXPECT_TRUE(qp_->unpolled());
  ASSERT_EQ(poll_one(), 1U);
  EXPECT_FALSE(qp_->unpolled());
  EXPECT_FALSE(other->unpolled());
}

TEST_F(Unpolled, ThoughThoseOfAnotherAreDropped) {
  const auto other = make_qp(pd_, cq_);
  const auto other_peer = make_qp(pd_, peer_cq_);
  Joined joined(qp_, peer_);
  Joined others(other, other_peer);
  const auto send = [](const auto& from, const auto& to, Joined& over) {
    ASSERT_TRUE(to->post_recv(RecvWr{}).ok());
    ASSERT_TRUE(from->post_send({.wr_id = 1}).ok());
    over.pump();
  };
  send(qp_, peer_, joined);
  send(other, other_peer, others);
  EXPECT_EQ(cq_.drop(other->number()), 1U);
  EXPECT_TRUE(qp_->unpolled()) << "its own waits still";
  ASSERT_EQ(poll_one(), 1U);
  EXPECT_FALSE(qp_->unpolled());
  EXPECT_FALSE(other->unpolled());
  send(qp_, peer_, joined);
  EXPECT_TRUE(qp_->unpolled());
  ASSERT_EQ(poll_one(), 1U);
  EXPECT_FALSE(qp_->unpolled());
}

TEST_F(Unpolled, ThoughTheQueueIsResized) {
  Joined joined(qp_, peer_);
  ASSERT_TRUE(peer_->post_recv(RecvWr{}).ok());
  ASSERT_TRUE(qp_->post_send({.wr_id = 1}).ok());
  joined.pump();
  ASSERT_TRUE(cq_.resize(128).ok());
  EXPECT_TRUE(qp_->unpolled());
  ASSERT_EQ(poll_one(), 1U);
  EXPECT_FALSE(qp_->unpolled());
}

}  // namespace
}  // namespace iwarp::verbs
