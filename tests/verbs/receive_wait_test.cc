// Messages that wait for a Receive to be posted, at the queue pair or at the shared queue.
#include <gtest/gtest.h>

#include "tests/verbs/joined.h"

namespace iwarp::verbs {
namespace {

using namespace std::chrono_literals;
using test::Bytes;
using test::drain;
using test::Joined;
using test::region;
using test::sge;

class ReceiveWait : public test::TwoQueuePairs {
 protected:
  std::shared_ptr<QueuePair> patient(SharedReceiveQueue* srq = nullptr) {
    QueuePair::Options o;
    o.send_cq = o.recv_cq = &cq_;
    o.srq = srq;
    o.stream.receive_wait = 1h;
    return std::make_shared<QueuePair>(pd_, o);
  }
  void send(QueuePair& from, std::size_t length) {
    ASSERT_TRUE(from.post_send({.wr_id = length, .sges = sge(peer_mr_, 0, length)}).ok());
  }
  // What came, by length.
  std::vector<std::uint32_t> lengths() {
    std::vector<std::uint32_t> out;
    for (const Completion& c : drain(cq_)) {
      EXPECT_EQ(c.status, Errc::kOk);
      out.push_back(c.byte_len);
    }
    return out;
  }
};

TEST_F(ReceiveWait, PostingGoesOnWithTheMessage) {
  qp_ = patient();
  Joined joined(peer_, qp_);
  for (const std::size_t length : {10U, 20U, 30U}) send(*peer_, length);
  joined.pump();
  EXPECT_TRUE(cq_.empty());
  const int before = joined.responder_driver.kicks;
  ASSERT_TRUE(qp_->post_recv({.wr_id = 1, .sges = sge(mr_)}).ok());
  EXPECT_EQ(lengths(), std::vector<std::uint32_t>({10})) << "at once: it is here";
  EXPECT_GT(joined.responder_driver.kicks, before) << "there may be more to read";
  ASSERT_TRUE(qp_->post_recv({.wr_id = 2, .sges = sge(mr_)}).ok());
  ASSERT_TRUE(qp_->post_recv({.wr_id = 3, .sges = sge(mr_)}).ok());
  EXPECT_EQ(lengths(), std::vector<std::uint32_t>({20, 30}));
  joined.pump();
  EXPECT_EQ(drain(peer_cq_).size(), 3U);
  EXPECT_EQ(qp_->state(), QueuePairState::kRts);
}

TEST_F(ReceiveWait, AnAbortFlushesAndForgetsIt) {
  qp_ = patient();
  Joined joined(peer_, qp_);
  send(*peer_, 10);
  joined.pump();
  qp_->abort();
  ASSERT_TRUE(qp_->post_recv({.wr_id = 1, .sges = sge(mr_)}).ok());
  const auto got = drain(cq_);
  ASSERT_EQ(got.size(), 1U);
  EXPECT_EQ(got[0].status, Errc::kFlushed);
}

TEST_F(ReceiveWait, ASharedQueueServesThoseThatWaitInTheirOrder) {
  SharedReceiveQueue srq(pd_, {.depth = 8});
  const auto first = patient(&srq), second = patient(&srq);
  CompletionQueue peers_cq(64);
  const auto other_peer = test::make_qp(pd_, peers_cq);
  Joined one(peer_, first), two(other_peer, second);
  send(*peer_, 10);
  send(*peer_, 11);
  send(*other_peer, 20);
  one.pump();
  two.pump();
  EXPECT_TRUE(cq_.empty());
  ASSERT_TRUE(srq.post_recv({.wr_id = 1, .sges = sge(mr_, 0, 100)}).ok());
  EXPECT_EQ(lengths(), std::vector<std::uint32_t>({10}));
  ASSERT_TRUE(srq.post_recv({.wr_id = 2, .sges = sge(mr_, 0, 100)}).ok());
  EXPECT_EQ(lengths(), std::vector<std::uint32_t>({20})) << "it has waited for longer";
  ASSERT_TRUE(srq.post_recv({.wr_id = 3, .sges = sge(mr_, 0, 100)}).ok());
  EXPECT_EQ(lengths(), std::vector<std::uint32_t>({11}));
  EXPECT_EQ(srq.posted(), 0U);
  EXPECT_EQ(first->receives_taken(), 2U);
}

TEST_F(ReceiveWait, AQueuePairThatIsGoneIsNotTold) {
  SharedReceiveQueue srq(pd_, {.depth = 8});
  auto qp = patient(&srq);
  {
    Joined joined(peer_, qp);
    send(*peer_, 10);
    joined.pump();
  }
  qp.reset();
  ASSERT_TRUE(srq.post_recv({.wr_id = 1, .sges = sge(mr_, 0, 100)}).ok());
  EXPECT_EQ(srq.posted(), 1U);
}

TEST_F(ReceiveWait, WithoutItTheMessageEndsTheConnection) {
  Joined joined(peer_, qp_);
  send(*peer_, 10);
  joined.pump();
  EXPECT_EQ(qp_->state(), QueuePairState::kError);
}

}  // namespace
}  // namespace iwarp::verbs
