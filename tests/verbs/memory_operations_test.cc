// What queue pairs do with memory regions beyond Sends, Writes and Reads: IOVAs, new keys, invalidation from here.
#include <gtest/gtest.h>

#include <algorithm>
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
using test::pattern;
using test::region;

constexpr ddp::Access kAll = ddp::Access::kLocalWrite | ddp::Access::kRemoteRead | ddp::Access::kRemoteWrite;

class MemoryOperations : public ::testing::Test {
 protected:
  SendWr local_invalidate(std::uint64_t id, Stag stag, bool signaled = true) {
    return {.wr_id = id, .op = SendOp::kLocalInvalidate, .local_stag = stag, .signaled = signaled};
  }

  std::shared_ptr<Context> context_ = std::make_shared<Context>();
  ProtectionDomain pd_{context_};
  CompletionQueue a_cq_{64}, b_cq_{64};
  Bytes a_memory_ = pattern(4096), b_memory_ = Bytes(4096);
  std::shared_ptr<QueuePair> a_ = make_qp(pd_, a_cq_), b_ = make_qp(pd_, b_cq_);
};

TEST_F(MemoryOperations, RegionsWithIovas) {
  const auto with_iova = [&](Bytes& memory, std::uint64_t iova) {
    return MemoryRegion::register_memory(pd_, memory, {.access = kAll, .iova = iova});
  };
  auto a = with_iova(a_memory_, 0), b = with_iova(b_memory_, std::uint64_t{7} << 60);
  ASSERT_TRUE(a.ok() && b.ok());
  Joined joined(a_, b_);
  ASSERT_TRUE(b_->post_recv({.wr_id = 1, .sges = b->sge(0, 600)}).ok());
  for (const std::uint32_t n : {600U, 100U}) {  // gathered, and copied beside the header
    const bool send = n == 600;
    ASSERT_TRUE(a_->post_send({.wr_id = 2,
                               .op = send ? SendOp::kSend : SendOp::kWrite,
                               .sges = a->sge(0, n),
                               .remote_stag = send ? Stag{} : b->stag(),
                               .remote_to = b->base_to() + 1000})
                    .ok());
  }
  ASSERT_TRUE(a_->post_send({.wr_id = 3,
                             .op = SendOp::kRead,
                             .sges = a->sge(2000, 100),
                             .remote_stag = b->stag(),
                             .remote_to = (std::uint64_t{7} << 60) + 1000})
                  .ok());
  joined.pump();
  const auto done = drain(a_cq_);
  ASSERT_EQ(done.size(), 3U);
  for (const auto& c : done) EXPECT_EQ(c.status, Errc::kOk);
  EXPECT_TRUE(std::equal(b_memory_.begin(), b_memory_.begin() + 600, pattern(4096).begin()));
  EXPECT_TRUE(std::equal(b_memory_.begin() + 1000, b_memory_.begin() + 1100, pattern(4096).begin()));
  EXPECT_TRUE(std::equal(a_memory_.begin() + 2000, a_memory_.begin() + 2100, pattern(4096).begin()));
}

// As with ib_update_fast_reg_key(): a queue pair that was told of the new STag uses it, the old one is dead.
TEST_F(MemoryOperations, OldStagOfARegionRegisteredAnewIsRefused) {
  MemoryRegion a = region(pd_, a_memory_, kAll), b = region(pd_, b_memory_, kAll);
  Joined joined(a_, b_);
  const Stag old = b.stag();
  ASSERT_TRUE(b.reregister(pd_, MutBytes(b_memory_).first(64), {.access = kAll, .base_to = 0}).ok());
  const auto write = [&](Stag stag) {
    ASSERT_TRUE(a_->post_send({.wr_id = 1, .op = SendOp::kWrite, .sges = a.sge(0, 64), .remote_stag = stag}).ok());
    joined.pump();
  };
  write(b.stag());
  EXPECT_TRUE(std::equal(b_memory_.begin(), b_memory_.begin() + 64, pattern(4096).begin()));
  EXPECT_EQ(b_->endpoint().phase(), stream::Phase::kFull);
  std::fill(b_memory_.begin(), b_memory_.end(), std::byte{});
  write(old);
  EXPECT_NE(b_->endpoint().phase(), stream::Phase::kFull);
  EXPECT_EQ(b_memory_, Bytes(4096));
}

TEST_F(MemoryOperations, LocallyInvalidatedRegionKeepsItsIndex) {
  MemoryRegion b = region(pd_, b_memory_, kAll);
  Joined joined(a_, b_);
  const Stag old = b.stag();
  ASSERT_TRUE(a_->post_send(local_invalidate(1, old)).ok());
  joined.pump();
  const auto done = drain(a_cq_);
  ASSERT_EQ(done.size(), 1U);
  EXPECT_EQ(done[0].op, WcOp::kLocalInvalidate);
  EXPECT_TRUE(done[0].invalidated);
  EXPECT_EQ(done[0].invalidated_stag, old);
  EXPECT_FALSE(context_->stags().valid(old));
  EXPECT_EQ(context_->stags().size(), 1U);
  ASSERT_TRUE(b.reregister(pd_, b_memory_, {}).ok());
  EXPECT_EQ(raw(b.stag()) >> 8, raw(old) >> 8);
  b.reset();
  EXPECT_EQ(context_->stags().size(), 0U);
}

// Nobody is told of it, but what comes later must not be told before the memory is left alone.
TEST_F(MemoryOperations, UnsignaledInvalidationHoldsBackWhatIsBehindIt) {
  COVERS("RFC5042-6.2.2-2");
  MemoryRegion a = region(pd_, a_memory_), b = region(pd_, b_memory_);
  Joined joined(a_, b_);
  auto access = context_->stags().pin_local(b.stag(), pd_.id(), ddp::Access::kLocalRead, b.sge().at(0), 16);
  ASSERT_TRUE(access.ok);
  const SendWr list[] = {local_invalidate(1, b.stag(), false),
                         {.wr_id = 2, .op = SendOp::kWrite, .remote_stag = Stag{1}}};
  ASSERT_TRUE(a_->post_send(list).ok());
  std::atomic<bool> delivered{false};
  std::thread driver([&] {
    joined.pump();
    delivered = true;
  });
  while (context_->stags().valid(b.stag())) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // what does not wait has told by then
  EXPECT_TRUE(a_cq_.empty());
  EXPECT_FALSE(delivered);
  { const ddp::Pin let_go = std::move(access.pin); }
  driver.join();
  const auto done = drain(a_cq_);
  ASSERT_EQ(done.size(), 1U) << "the invalidation itself is not told";
  EXPECT_EQ(done[0].wr_id, 2U);
}

TEST_F(MemoryOperations, ReadOfSeveralPieces) {
  MemoryRegion a = region(pd_, a_memory_);
  b_memory_ = pattern(4096, 9);
  MemoryRegion source = region(pd_, b_memory_, kAll);
  Joined joined(a_, b_);
  SgeList pieces;
  std::size_t total = 0;
  for (std::size_t i = 0; i < rdmap::kMaxSge; ++i) {
    ASSERT_TRUE(pieces.add(a.sge(4000 - 500 * i, i * 10)));
    total += i * 10;
  }
  ASSERT_TRUE(a_->post_send({.wr_id = 1,
                             .op = SendOp::kRead,
                             .sges = pieces,
                             .remote_stag = source.stag(),
                             .remote_to = source.base_to() + 1})
                  .ok());
  joined.pump();
  const auto done = drain(a_cq_);
  ASSERT_EQ(done.size(), 1U);
  EXPECT_EQ(done[0].byte_len, total);
  std::ptrdiff_t from = 1;
  for (std::ptrdiff_t i = 0; i < static_cast<std::ptrdiff_t>(rdmap::kMaxSge); ++i) {
    EXPECT_TRUE(
        std::equal(b_memory_.begin() + from, b_memory_.begin() + from + i * 10, a_memory_.begin() + 4000 - 500 * i));
    from += i * 10;
  }
}

}  // namespace
}  // namespace iwarp::verbs
