// Send with Invalidate through the object model: the receiver's application hears of it when nobody can touch the
// memory any more.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <thread>

#include "tests/support/covers.h"
#include "tests/verbs/joined.h"

namespace iwarp::verbs {
namespace {

using test::Bytes;
using test::drain;
using test::Joined;
using test::make_qp;
using test::region;
using test::sge;

class RemoteInvalidate : public ::testing::Test {
 protected:
  MemoryRegion expose() {
    return region(pd_, exposed_, ddp::Access::kLocalWrite | ddp::Access::kRemoteWrite | ddp::Access::kRemoteInvalidate,
                  owner_->stream());
  }
  void send_invalidate(Stag stag) {
    ASSERT_TRUE(owner_->post_recv({.wr_id = 1, .sges = sge(inbox_mr_)}).ok());
    ASSERT_TRUE(peer_->post_send(invalidating(stag)).ok());
  }
  SendWr invalidating(Stag stag) {
    return {.wr_id = 2, .op = SendOp::kSendInvalidate, .sges = sge(outbox_mr_), .remote_stag = stag};
  }

  std::shared_ptr<Context> context_ = std::make_shared<Context>();
  ProtectionDomain pd_{context_};
  CompletionQueue owner_cq_{64}, peer_cq_{64};
  Bytes exposed_ = test::pattern(256), inbox_ = Bytes(64), outbox_ = Bytes(32, std::byte{0x5A});
  MemoryRegion inbox_mr_ = region(pd_, inbox_), outbox_mr_ = region(pd_, outbox_);
  std::shared_ptr<QueuePair> owner_ = make_qp(pd_, owner_cq_), peer_ = make_qp(pd_, peer_cq_);
};

TEST_F(RemoteInvalidate, CompletionNamesTheStagAndItIsDead) {
  COVERS("RFC5040-5.3-15");
  MemoryRegion mr = expose();
  Joined joined(peer_, owner_);
  send_invalidate(mr.stag());
  joined.pump();
  const auto got = drain(owner_cq_);
  ASSERT_EQ(got.size(), 1U);
  EXPECT_TRUE(got[0].invalidated);
  EXPECT_EQ(got[0].invalidated_stag, mr.stag());
  EXPECT_FALSE(context_->stags().valid(mr.stag()));
  mr.invalidate();
  mr.reset();
}

TEST_F(RemoteInvalidate, CompletionWaitsForAnAccessOfAnotherConnection) {
  MemoryRegion mr = expose();
  Joined joined(peer_, owner_);
  send_invalidate(mr.stag());
  auto access = context_->stags().pin_local(mr.stag(), pd_.id(), ddp::Access::kLocalRead, mr.sge().at(0), 16);
  ASSERT_TRUE(access.ok);
  std::atomic<bool> delivered{false};
  std::thread driver([&] {
    joined.pump();
    delivered = true;
  });
  while (context_->stags().valid(mr.stag())) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // what does not wait has told by then
  EXPECT_TRUE(owner_cq_.empty());
  EXPECT_FALSE(delivered);
  { const ddp::Pin let_go = std::move(access.pin); }
  driver.join();
  EXPECT_EQ(drain(owner_cq_).size(), 1U);
}

// What was just copied into the region must not keep it from being waited for.
TEST_F(RemoteInvalidate, OfTheRegionThatTheMessageItselfArrivesIn) {
  MemoryRegion mr = expose();
  Joined joined(peer_, owner_);
  ASSERT_TRUE(owner_->post_recv({.wr_id = 1, .sges = Sge{exposed_.data(), 64, mr.stag()}}).ok());
  ASSERT_TRUE(peer_->post_send(invalidating(mr.stag())).ok());
  joined.pump();
  const auto got = drain(owner_cq_);
  ASSERT_EQ(got.size(), 1U);
  EXPECT_EQ(got[0].status, Errc::kOk);
  EXPECT_TRUE(got[0].invalidated);
  EXPECT_TRUE(std::equal(outbox_.begin(), outbox_.end(), exposed_.begin()));
}

TEST_F(RemoteInvalidate, OfTheRegionThatTheNextMessageOfTheBatchBelongsIn) {
  MemoryRegion mr = expose();
  Joined joined(peer_, owner_);
  const Bytes before = exposed_;
  ASSERT_TRUE(owner_->post_recv({.wr_id = 1, .sges = Sge{exposed_.data(), 64, mr.stag()}}).ok());
  ASSERT_TRUE(owner_->post_recv({.wr_id = 2, .sges = Sge{&exposed_[64], 64, mr.stag()}}).ok());
  const std::array list{invalidating(mr.stag()), SendWr{.wr_id = 4, .op = SendOp::kSend, .sges = sge(outbox_mr_)}};
  ASSERT_TRUE(peer_->post_send(list).ok());
  joined.pump();
  const auto got = drain(owner_cq_);
  ASSERT_EQ(got.size(), 2U);
  EXPECT_TRUE(got[0].invalidated);
  EXPECT_EQ(got[1].status, Errc::kFlushed);
  EXPECT_TRUE(std::equal(outbox_.begin(), outbox_.end(), exposed_.begin()));
  EXPECT_TRUE(std::equal(before.begin() + 64, before.end(), exposed_.begin() + 64)) << "revoked by then";
}

TEST_F(RemoteInvalidate, AStagOfAnotherStreamIsSafe) {
  COVERS("RFC5040-5.3-16");
  const auto other = make_qp(pd_, owner_cq_);
  MemoryRegion mr = region(pd_, exposed_, ddp::Access::kLocalWrite | ddp::Access::kRemoteInvalidate, other->stream());
  Joined joined(peer_, owner_);
  send_invalidate(mr.stag());
  joined.pump();
  EXPECT_TRUE(context_->stags().valid(mr.stag()));
  EXPECT_EQ(drain(owner_cq_).at(0).status, Errc::kCannotInvalidate);
}

}  // namespace
}  // namespace iwarp::verbs
