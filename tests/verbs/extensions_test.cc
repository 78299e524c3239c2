// What both ends have agreed on is told before they are connected: QueuePair::set_extensions().
#include <gtest/gtest.h>

#include "iwarp/verbs/queue_pair.h"
#include "tests/verbs/joined.h"

namespace iwarp::verbs {
namespace {

using rdmap::Extensions;
using test::drain;
using test::Joined;

class QueuePairExtensions : public test::TwoQueuePairs {
 protected:
  QueuePairExtensions() : TwoQueuePairs(64, 16) {}
  [[nodiscard]] Errc post(SendOp op, std::uint64_t immediate = 7) {
    const auto done = qp_->post_send(SendWr{.wr_id = 1, .op = op, .immediate = immediate});
    return done ? Errc::kOk : done.error().code;
  }
};

TEST_F(QueuePairExtensions, NothingIsSentThatWasNotAgreedOn) {
  EXPECT_EQ(post(SendOp::kImmediate), Errc::kInvalidArgument);
  EXPECT_EQ(post(SendOp::kSendImmediate), Errc::kInvalidArgument);
  ASSERT_TRUE(qp_->set_extensions(Extensions::kRfc7306).ok());
  EXPECT_EQ(post(SendOp::kImmediate), Errc::kOk);
  EXPECT_EQ(post(SendOp::kSendImmediate), Errc::kInvalidArgument);
  EXPECT_TRUE(qp_->query()->rfc7306);
  EXPECT_FALSE(qp_->query()->send_immediate);
  ASSERT_TRUE(qp_->set_extensions(Extensions::kSendWithImmediate).ok());
  EXPECT_EQ(post(SendOp::kSendImmediate, 0xFFFFFFFF), Errc::kOk);
  EXPECT_EQ(post(SendOp::kSendImmediate, 0x100000000), Errc::kInvalidArgument) << "32 bits";
  EXPECT_TRUE(qp_->query()->send_immediate);
  ASSERT_TRUE(qp_->set_extensions(Extensions::kNone).ok());
  EXPECT_EQ(post(SendOp::kImmediate), Errc::kInvalidArgument);
}

TEST_F(QueuePairExtensions, ASendWithImmediateArrivesWithBoth) {
  ASSERT_TRUE(qp_->set_extensions(Extensions::kSendWithImmediate).ok());
  ASSERT_TRUE(peer_->set_extensions(Extensions::kSendWithImmediate).ok());
  ASSERT_TRUE(peer_->post_recv(RecvWr{.wr_id = 9, .sges = test::sge(peer_mr_)}).ok());
  Joined joined(qp_, peer_);
  ASSERT_TRUE(qp_->post_send(SendWr{.wr_id = 8,
                                    .op = SendOp::kSendImmediate,
                                    .sges = test::sge(mr_, 0, 3000),
                                    .solicited = true,
                                    .immediate = 0xABCD})
                  .ok());
  joined.pump();
  const auto got = drain(peer_cq_);
  ASSERT_EQ(got.size(), 1U);
  EXPECT_TRUE(got[0].has_immediate && got[0].sent_immediate && got[0].solicited);
  EXPECT_EQ(got[0].byte_len, 3000U);
  EXPECT_EQ(got[0].immediate, 0xABCDU);
  const auto sent = drain(cq_);
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].op, WcOp::kSend);
}

TEST_F(QueuePairExtensions, AreSettledWithTheConnection) {
  Joined joined(qp_, peer_);
  const auto late = qp_->set_extensions(Extensions::kRfc7306);
  ASSERT_FALSE(late.ok());
  EXPECT_EQ(late.error().code, Errc::kInvalidArgument);
  EXPECT_FALSE(qp_->query()->rfc7306);
}

// What a peer sends all the same is a reserved opcode.
TEST_F(QueuePairExtensions, OneSidedTheyEndTheConnection) {
  ASSERT_TRUE(qp_->set_extensions(Extensions::kSendWithImmediate).ok());
  ASSERT_TRUE(peer_->set_extensions(Extensions::kRfc7306).ok());
  ASSERT_TRUE(peer_->post_recv(RecvWr{.wr_id = 9, .sges = test::sge(peer_mr_)}).ok());
  Joined joined(qp_, peer_);
  EXPECT_EQ(post(SendOp::kSendImmediate), Errc::kOk);
  joined.pump();
  const auto got = drain(peer_cq_);
  ASSERT_EQ(got.size(), 1U);
  EXPECT_EQ(got[0].status, Errc::kFlushed);
  EXPECT_EQ(peer_memory_, test::Bytes(4096));
}

}  // namespace
}  // namespace iwarp::verbs
