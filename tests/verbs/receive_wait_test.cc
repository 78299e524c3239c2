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

// However many messages one of them has.
TEST_F(ReceiveWait, ASharedQueueServesEachInTurn) {
  SharedReceiveQueue srq(pd_, {.depth = 16});
  const auto first = patient(&srq), second = patient(&srq);
  CompletionQueue peers_cq(64);
  const auto other_peer = test::make_qp(pd_, peers_cq);
  Joined one(peer_, first), two(other_peer, second);
  for (std::size_t i = 0; i < 5; ++i) send(*peer_, 10 + i);
  for (std::size_t i = 0; i < 3; ++i) send(*other_peer, 20 + i);
  one.pump();
  two.pump();
  EXPECT_TRUE(cq_.empty());
  std::vector<RecvWr> list(12, RecvWr{.wr_id = 1, .sges = sge(mr_, 0, 100)});
  ASSERT_TRUE(srq.post_recv(list).ok());
  EXPECT_EQ(lengths(), std::vector<std::uint32_t>({10, 20, 11, 21, 12, 22, 13, 14}));
  EXPECT_EQ(srq.posted(), 4U);
  send(*other_peer, 30);
  two.pump();
  EXPECT_EQ(lengths(), std::vector<std::uint32_t>({30})) << "nobody waits any more";
}

// One that comes later does not take what others wait for: here while a Receive is being given to the first.
TEST_F(ReceiveWait, WhoWaitsIsNotPassed) {
  SharedReceiveQueue srq(pd_, {.depth = 16});
  const auto first = patient(&srq), second = patient(&srq), third = patient(&srq);
  CompletionQueue peers_cq(64);
  const auto peer_of_second = test::make_qp(pd_, peers_cq), peer_of_third = test::make_qp(pd_, peers_cq);
  Joined one(peer_, first), two(peer_of_second, second), three(peer_of_third, third);
  send(*peer_, 10);
  send(*peer_of_second, 20);
  one.pump();
  two.pump();
  send(*peer_of_third, 30);
  one.responder_driver.on_kick = [&] { three.pump(); };
  ASSERT_TRUE(srq.post_recv(std::vector<RecvWr>(2, RecvWr{.wr_id = 1, .sges = sge(mr_, 0, 100)})).ok());
  EXPECT_EQ(lengths(), std::vector<std::uint32_t>({10, 20}));
  ASSERT_TRUE(srq.post_recv({.wr_id = 1, .sges = sge(mr_, 0, 100)}).ok());
  EXPECT_EQ(lengths(), std::vector<std::uint32_t>({30}));
}

// Those that end while they wait are no burden, and keep nobody from a Receive.
TEST_F(ReceiveWait, WhoEndsWhileItWaitsIsPassed) {
  SharedReceiveQueue srq(pd_, {.depth = 16});
  CompletionQueue peers_cq(64);
  std::vector<std::shared_ptr<QueuePair>> gone;
  for (int i = 0; i < 4; ++i) {
    gone.push_back(patient(&srq));
    const auto peer = test::make_qp(pd_, peers_cq);
    Joined joined(peer, gone.back());
    send(*peer, 10);
    joined.pump();
    gone.back()->abort();
  }
  gone.resize(2);  // the others are destroyed
  const auto last = patient(&srq);
  Joined joined(peer_, last);
  send(*peer_, 20);
  send(*peer_, 21);
  joined.pump();
  EXPECT_TRUE(cq_.empty());
  ASSERT_TRUE(srq.post_recv({.wr_id = 1, .sges = sge(mr_, 0, 100)}).ok());
  EXPECT_EQ(lengths(), std::vector<std::uint32_t>({20}));
  ASSERT_TRUE(srq.post_recv({.wr_id = 1, .sges = sge(mr_, 0, 100)}).ok());
  EXPECT_EQ(lengths(), std::vector<std::uint32_t>({21}));
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
