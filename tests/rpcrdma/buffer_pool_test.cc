#include "iwarp/rpcrdma/buffer_pool.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "tests/support/covers.h"

namespace iwarp::rpcrdma {
namespace {

struct Keys : Registrar {
  Result<Stag> register_local(MutBytes memory) override {
    if (refuse) return make_error(Errc::kResource);
    live[++last] = memory.size();
    return Stag{last};
  }
  void deregister_local(Stag lkey) override { EXPECT_EQ(live.erase(static_cast<std::uint32_t>(lkey)), 1u); }
  [[nodiscard]] std::size_t bytes() const {
    std::size_t sum = 0;
    for (const auto& [key, n] : live) sum += n;
    return sum;
  }
  std::map<std::uint32_t, std::size_t> live;
  std::uint32_t last = 0;
  bool refuse = false;
};

using Purpose = BufferPool::Purpose;
constexpr std::size_t kBig = (1u << 20) + (64u << 10);

TEST(BufferPool, GivesExactViewsBehindHeadroom) {
  Keys keys;
  BufferPool pool(keys, {});
  for (const std::size_t n : {std::size_t{0}, std::size_t{1}, std::size_t{4092}, std::size_t{4096}, kBig, kBig * 2}) {
    auto b = pool.acquire(n, Purpose::kCall, 4);
    ASSERT_TRUE(b) << n;
    EXPECT_EQ(b->size(), n);
    EXPECT_EQ(b->headroom(), 4u);
    EXPECT_EQ(b->bytes().data(), b->storage().data() + 4);
    EXPECT_TRUE(keys.live.contains(static_cast<std::uint32_t>(b->lkey())));
    std::fill(b->storage().begin(), b->storage().end(), std::byte{0x5A});
  }
  EXPECT_EQ(pool.in_use_bytes(Purpose::kCall), 0u);
  EXPECT_EQ(pool.registered_bytes(), keys.bytes());
}

TEST(BufferPool, BudgetsOfPurposesAreIndependent) {
  Keys keys;
  BufferPool pool(keys, {.call_bytes = 2 * BufferPool::charged_bytes(kBig), .reply_bytes = 8192});
  auto a = pool.acquire(kBig, Purpose::kCall);
  auto b = pool.acquire(kBig, Purpose::kCall);
  ASSERT_TRUE(a && b);
  EXPECT_FALSE(pool.acquire(1, Purpose::kCall));
  EXPECT_TRUE(pool.can_hold(kBig, Purpose::kCall));
  EXPECT_FALSE(pool.can_hold(5000, Purpose::kReply));
  EXPECT_FALSE(pool.can_hold(SIZE_MAX, Purpose::kCall));
  auto c = pool.acquire(100, Purpose::kReply);
  auto d = pool.acquire(100, Purpose::kReply);
  EXPECT_TRUE(c && d);
  EXPECT_FALSE(pool.acquire(1, Purpose::kReply));
  EXPECT_EQ(pool.shortages(), 0u);  // the budget is no shortage
  const auto before = pool.releases();
  a->reset();
  EXPECT_EQ(pool.releases(), before + 1);
  EXPECT_TRUE(pool.acquire(kBig, Purpose::kCall));
}

TEST(BufferPool, ReusesMemoryAndKeepsLittleOfIt) {
  Keys keys;
  BufferPool pool(keys, {.idle_bytes = BufferPool::charged_bytes(kBig)});
  {
    auto a = pool.acquire(kBig, Purpose::kCall);
    auto b = pool.acquire(kBig, Purpose::kReply);
  }
  EXPECT_EQ(pool.registered_bytes(), BufferPool::charged_bytes(kBig));  // one of two kept
  const auto last = keys.last;
  { auto c = pool.acquire(kBig, Purpose::kCall); }
  EXPECT_EQ(keys.last, last);  // not registered again
  { auto d = pool.acquire(kBig * 3, Purpose::kReply); }
  EXPECT_EQ(pool.registered_bytes(), BufferPool::charged_bytes(kBig));
  pool.trim();
  EXPECT_EQ(pool.registered_bytes(), 0u);
  EXPECT_TRUE(keys.live.empty());
}

// What 32 Calls of a client with 32 outstanding need, again and again.
TEST(BufferPool, RegistersNothingForASecondBurst) {
  Keys keys;
  BufferPool pool(keys, {});
  const auto burst = [&] {
    std::vector<Buffer> all;
    while (auto b = pool.acquire(kBig, Purpose::kReply)) all.push_back(std::move(*b));
    while (auto b = pool.acquire(kBig, Purpose::kCall)) all.push_back(std::move(*b));
    return all.size();
  };
  EXPECT_GE(burst(), 28u);
  const auto last = keys.last;
  const auto held = pool.registered_bytes();
  for (int i = 0; i < 10; ++i) burst();
  EXPECT_EQ(keys.last, last);
  EXPECT_EQ(pool.registered_bytes(), held);
  pool.trim();
  EXPECT_TRUE(keys.live.empty());
  EXPECT_EQ(pool.idle_bytes(), 0u);
}

TEST(BufferPool, UsedAndUnusedMemoryStaysWithinTheBudgets) {
  Keys keys;
  const BufferPool::Options options{.call_bytes = 4u << 20, .reply_bytes = 4u << 20, .backward_bytes = 1u << 20};
  BufferPool pool(keys, options);
  const std::size_t bound = options.call_bytes + options.reply_bytes + options.backward_bytes;
  for (const std::size_t bytes : {std::size_t{256u << 10}, kBig, std::size_t{64u << 10}, kBig * 2, kBig}) {
    std::vector<Buffer> all;
    for (const auto purpose : {Purpose::kCall, Purpose::kReply}) {
      std::size_t n = 0;
      while (auto b = pool.acquire(bytes, purpose)) {
        all.push_back(std::move(*b));
        EXPECT_LE(pool.registered_bytes(), bound) << bytes;
        ++n;
      }
      EXPECT_EQ(n, (4u << 20) / BufferPool::charged_bytes(bytes));  // what lies unused takes nothing away
    }
  }
  EXPECT_EQ(pool.registered_bytes(), keys.bytes());
}

TEST(BufferPool, GivesBackWhatItHasNotUsedForAWhile) {
  Keys keys;
  BufferPool pool(keys, {});
  const auto use = [&](std::size_t count) {
    std::vector<Buffer> all;
    for (std::size_t i = 0; i < count; ++i) all.push_back(std::move(*pool.acquire(kBig, Purpose::kReply)));
  };
  const std::size_t one = BufferPool::charged_bytes(kBig);
  use(8);
  pool.trim_unused();  // all of it was in use since the beginning
  EXPECT_EQ(pool.idle_bytes(), 8 * one);
  use(3);
  use(2);
  pool.trim_unused();
  EXPECT_EQ(pool.idle_bytes(), 3 * one);
  EXPECT_EQ(pool.registered_bytes(), 3 * one);
  pool.trim_unused();
  EXPECT_EQ(pool.registered_bytes(), 0u);
}

TEST(BufferPool, FailedRegistrationIsExhaustion) {
  Keys keys;
  BufferPool pool(keys, {});
  keys.refuse = true;
  for (const std::size_t n : {std::size_t{10}, kBig, kBig * 2}) EXPECT_FALSE(pool.acquire(n, Purpose::kReply));
  EXPECT_EQ(pool.in_use_bytes(Purpose::kReply), 0u);
  EXPECT_EQ(pool.registered_bytes(), 0u);
  EXPECT_EQ(pool.shortages(), 3u);
  const auto before = pool.releases();
  pool.wake_waiting();
  EXPECT_GT(pool.releases(), before);
  keys.refuse = false;
  EXPECT_TRUE(pool.acquire(10, Purpose::kReply));
  EXPECT_EQ(pool.shortages(), 3u);
}

constexpr std::size_t kMiB = std::size_t{1} << 20;

class SharedBudget : public ::testing::Test {
 protected:
  void start(std::size_t pools, std::size_t limit) {
    budget_ = std::make_shared<MemoryBudget>(limit);
    while (pools-- > 0) pools_.emplace_back(keys_, BufferPool::Options{.budget = budget_});
  }
  static std::vector<Buffer> some(BufferPool& pool, std::size_t count, std::size_t bytes, Purpose purpose) {
    std::vector<Buffer> out;
    while (count-- > 0) out.push_back(std::move(*pool.acquire(bytes, purpose)));
    return out;
  }

  Keys keys_;
  std::shared_ptr<MemoryBudget> budget_;
  std::deque<BufferPool> pools_;
};

// Memory is short, and the part of a connection is full with what it keeps for reuse.
TEST_F(SharedBudget, ItsOwnIdleMemoryKeepsNoCallWaiting) {
  start(8, 32 * kMiB);
  BufferPool& a = pools_[0];
  BufferPool& b = pools_[1];
  some(a, 56, 64u << 10, Purpose::kReply);
  some(b, 1, 256u << 10, Purpose::kReply);
  const auto replies = some(b, 15, kMiB, Purpose::kReply);
  const std::size_t idle = b.idle_bytes();
  ASSERT_GT(idle, 0u);
  ASSERT_GT(a.idle_bytes() + BufferPool::charged_bytes(kMiB), 4 * kMiB);
  EXPECT_TRUE(a.acquire(kMiB, Purpose::kCall));
  EXPECT_EQ(b.idle_bytes(), idle);
}

// Slabs of 4 KiB pieces are given back too.
TEST_F(SharedBudget, UnusedSlabsKeepNoCallWaiting) {
  start(4, 16 * kMiB);
  BufferPool& a = pools_[0];
  BufferPool& b = pools_[1];
  some(b, 8 * 32, 4096, Purpose::kControl);
  const auto others = some(b, 2, kMiB, Purpose::kReply);
  const auto own = some(a, 4, kMiB, Purpose::kReply);
  const std::size_t used = budget_->used();
  ASSERT_GT(used + BufferPool::charged_bytes(kMiB), 8 * kMiB);
  ASSERT_GT(a.registered_bytes(), 4 * kMiB);
  EXPECT_TRUE(a.acquire(kMiB, Purpose::kCall));
  EXPECT_EQ(budget_->used(), used - kMiB + BufferPool::charged_bytes(kMiB));
}

TEST_F(SharedBudget, ASlabWithAPieceInUseIsNotUnused) {
  start(2, 16 * kMiB);
  BufferPool& a = pools_[0];
  BufferPool& b = pools_[1];
  some(b, 1, 256u << 10, Purpose::kReply);
  auto pieces = some(b, 33, 4096, Purpose::kControl);
  pieces.erase(pieces.begin(), pieces.end() - 1);
  const auto large = some(a, 7, kMiB, Purpose::kReply);
  const auto small = some(a, 7, 64u << 10, Purpose::kReply);
  const std::size_t slab = 128u << 10;
  ASSERT_GE(budget_->used(), 8 * kMiB + b.idle_bytes() + slab);
  ASSERT_LT(budget_->used(), 8 * kMiB + b.idle_bytes() + 2 * slab);
  EXPECT_FALSE(budget_->admits_connection());
  EXPECT_GT(b.idle_bytes(), 0u);
  pieces.clear();
  EXPECT_TRUE(budget_->admits_connection());
  EXPECT_EQ(b.registered_bytes(), 0u);
}

TEST(Buffer, MovesAndSlices) {
  Keys keys;
  BufferPool pool(keys, {});
  Buffer a = *pool.acquire(100, Purpose::kControl);
  Buffer b = std::move(a);
  EXPECT_FALSE(a);
  EXPECT_EQ(b.slice(10, 20).bytes.data(), b.bytes().data() + 10);
  b.set_view(50, 10);
  EXPECT_EQ(b.slice().bytes.size(), 10u);
  EXPECT_EQ(b.slice().bytes.data(), b.storage().data() + 50);
  Buffer& self = b;
  b = std::move(self);
  EXPECT_TRUE(b);
  b = *pool.acquire(5000, Purpose::kReply);
  EXPECT_EQ(pool.in_use_bytes(Purpose::kControl), 0u);
  b.reset();
  EXPECT_EQ(pool.in_use_bytes(Purpose::kReply), 0u);
}

// Memory of somebody else's, such as of an allocator: a destructor tells when it is let go of.
TEST(BufferPool, AdoptsMemoryAndRegistersItOnce) {
  COVERS("D2005-7-1");
  Keys keys;
  BufferPool pool(keys, {.call_bytes = 0});
  std::vector<std::byte> first(8192), second(4096);
  const auto whole_of = [](std::vector<std::byte>& octets) {
    return std::make_shared<const LentMemory>(LentMemory{octets, nullptr});
  };
  auto whole = whole_of(first);
  const auto keeper = std::make_shared<int>(0);
  {
    auto a = pool.adopt(whole, MutBytes(first).subspan(100, 5000), keeper);
    auto b = pool.adopt(whole, MutBytes(first).subspan(6000, 10), keeper);
    auto again = pool.adopt(whole, MutBytes(first).subspan(100, 5000), keeper);
    ASSERT_TRUE(a && b && again);
    EXPECT_EQ(a->bytes().data(), first.data() + 100);
    EXPECT_EQ(a->size(), 5000u);
    EXPECT_EQ(a->headroom(), 0u);
    EXPECT_EQ(a->lkey(), b->lkey());
    EXPECT_EQ(keys.bytes(), 8192u);
    EXPECT_EQ(keeper.use_count(), 4);
    const auto before = pool.releases();
    Buffer moved = std::move(*a);
    EXPECT_EQ(keeper.use_count(), 4);
    moved.reset();
    EXPECT_EQ(keeper.use_count(), 3);
    EXPECT_EQ(pool.releases(), before + 1);
  }
  EXPECT_EQ(keeper.use_count(), 1);
  EXPECT_EQ(keys.last, 1u);
  EXPECT_EQ(pool.registered_bytes(), 0u);  // it counts for nothing
  EXPECT_EQ(pool.in_use_bytes(Purpose::kCall), 0u);

  // What everybody else has let go of makes place for the next.
  whole.reset();
  auto other = whole_of(second);
  { ASSERT_TRUE(pool.adopt(other, second, keeper)); }
  EXPECT_EQ(keys.bytes(), 4096u);

  keys.refuse = true;
  { ASSERT_TRUE(pool.adopt(other, second, keeper)); }  // it is registered
  EXPECT_EQ(pool.shortages(), 0u);
  auto third = whole_of(first);
  EXPECT_FALSE(pool.adopt(third, first, keeper));
  EXPECT_EQ(pool.shortages(), 1u);
  EXPECT_EQ(keys.bytes(), 4096u);  // what somebody holds stays registered
  EXPECT_EQ(keeper.use_count(), 1);
}

// As of a server with two connections: neither keeps it from being let go of by the other.
TEST(BufferPool, OfTwoPoolsNoneHoldsWhatHasGone) {
  Keys keys_a, keys_b;
  BufferPool a(keys_a, {}), b(keys_b, {});
  std::vector<std::byte> octets(4096), others(8192);
  const auto pages = std::make_shared<int>(0);
  auto whole = std::make_shared<const LentMemory>(LentMemory{octets, pages});
  const auto other = std::make_shared<const LentMemory>(LentMemory{others, nullptr});
  for (BufferPool* pool : {&a, &b}) ASSERT_TRUE(pool->adopt(whole, octets, nullptr));
  whole.reset();
  EXPECT_EQ(pages.use_count(), 3) << "they are registered, and have to be there";
  for (BufferPool* pool : {&a, &b}) ASSERT_TRUE(pool->adopt(other, others, nullptr));
  EXPECT_EQ(pages.use_count(), 1);
  EXPECT_EQ(keys_a.bytes(), 8192u);
  EXPECT_EQ(keys_b.bytes(), 8192u);
}

}  // namespace
}  // namespace iwarp::rpcrdma
