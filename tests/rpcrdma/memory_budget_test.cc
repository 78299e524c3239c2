#include "iwarp/rpcrdma/memory_budget.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "iwarp/rpcrdma/buffer_pool.h"
#include "tests/rpcrdma/fake_endpoint.h"

namespace iwarp::rpcrdma::test {
namespace {

using Stage = MemoryBudget::Stage;
using Purpose = BufferPool::Purpose;

constexpr std::size_t kMiB = std::size_t{1} << 20;

// Says what it holds, whatever it took.
class Holder final : public MemoryBudget::Member {
 public:
  Holder(MemoryBudget& budget, std::size_t in_use_bytes, std::size_t idle_bytes)
      : in_use(in_use_bytes), unused(idle_bytes), budget_(budget) {
    budget_.join(*this);
  }
  ~Holder() override { budget_.leave(*this); }
  void give_back() override { budget_.give(std::exchange(unused, 0)); }
  [[nodiscard]] std::size_t unused_bytes() const override { return unused; }
  [[nodiscard]] std::size_t registered_bytes() const override { return in_use + unused; }

  std::size_t in_use;
  std::size_t unused;

 private:
  MemoryBudget& budget_;
};

// So many who hold nothing.
std::vector<std::unique_ptr<Holder>> join(MemoryBudget& budget, int members) {
  std::vector<std::unique_ptr<Holder>> out;
  while (members-- > 0) out.push_back(std::make_unique<Holder>(budget, 0, 0));
  return out;
}

TEST(MemoryBudget, LeavesSomeForWhatGivesMemoryBack) {
  MemoryBudget budget(64 * kMiB);
  Holder one(budget, 0, 0);
  EXPECT_FALSE(budget.take(48 * kMiB + 1, Stage::kCall, one));
  ASSERT_TRUE(budget.take(32 * kMiB, Stage::kCall, one));
  EXPECT_FALSE(budget.admits_connection());
  ASSERT_TRUE(budget.take(16 * kMiB, Stage::kCall, one));
  EXPECT_FALSE(budget.take(1, Stage::kCall, one));
  ASSERT_TRUE(budget.take(8 * kMiB, Stage::kReply, one));
  EXPECT_FALSE(budget.take(1, Stage::kReply, one));
  ASSERT_TRUE(budget.take(8 * kMiB, Stage::kControl, one));
  EXPECT_FALSE(budget.take(1, Stage::kControl, one));
  EXPECT_EQ(budget.used(), budget.limit());
  budget.give(64 * kMiB);
  EXPECT_TRUE(budget.admits_connection());
}

// A connection that has its part asks again and again.
TEST(MemoryBudget, LeavesOthersTheirIdleMemoryWhereTakingItCannotHelp) {
  MemoryBudget budget(64 * kMiB);
  Holder greedy(budget, 32 * kMiB, 0), a_little(budget, 0, 2 * kMiB);
  ASSERT_TRUE(budget.take(40 * kMiB, Stage::kReply, greedy));
  EXPECT_FALSE(budget.take(1 * kMiB, Stage::kCall, greedy));
  EXPECT_FALSE(budget.take(20 * kMiB, Stage::kReply, greedy));
  EXPECT_EQ(a_little.unused, 2 * kMiB);
  Holder more(budget, 0, 7 * kMiB);
  EXPECT_TRUE(budget.take(1 * kMiB, Stage::kCall, greedy));
  EXPECT_EQ(a_little.unused + more.unused, 0U);
}

// A client that is refused knocks again and again.
TEST(MemoryBudget, LeavesOthersTheirIdleMemoryWhereTakingItAdmitsNobody) {
  MemoryBudget budget(64 * kMiB);
  Holder a_little(budget, 32 * kMiB, 8 * kMiB);
  ASSERT_TRUE(budget.take(40 * kMiB, Stage::kReply, a_little));
  EXPECT_FALSE(budget.admits_connection());
  EXPECT_EQ(a_little.unused, 8 * kMiB);
  const Holder more(budget, 0, 1);
  EXPECT_TRUE(budget.admits_connection());
  EXPECT_EQ(budget.used(), 32 * kMiB - 1);
}

TEST(MemoryBudget, AsksEverybodyForWhatTheyDoNotUse) {
  MemoryBudget budget(64 * kMiB);
  const Holder other(budget, 10 * kMiB, 30 * kMiB);
  Holder one(budget, 0, 0);
  ASSERT_TRUE(budget.take(40 * kMiB, Stage::kReply, one));
  EXPECT_TRUE(budget.take(20 * kMiB, Stage::kCall, one));
  EXPECT_EQ(budget.used(), 30 * kMiB);
}

// For its part, and for the limit: nobody else has to give anything where that is enough.
TEST(MemoryBudget, AsksFirstWhoAsks) {
  MemoryBudget budget(64 * kMiB);
  const auto others = join(budget, 6);
  Holder idle(budget, 0, kMiB), one(budget, 2 * kMiB, 6 * kMiB);
  ASSERT_TRUE(budget.take(41 * kMiB, Stage::kReply, idle));
  EXPECT_FALSE(budget.take(7 * kMiB, Stage::kCall, one));
  EXPECT_EQ(one.unused, 6 * kMiB);
  EXPECT_TRUE(budget.take(6 * kMiB, Stage::kCall, one));
  EXPECT_EQ(one.unused, 0U);
  EXPECT_EQ(budget.used(), 41 * kMiB);

  one.unused = 6 * kMiB;
  EXPECT_TRUE(budget.take(20 * kMiB, Stage::kReply, one));
  EXPECT_EQ(one.unused, 0U);
  EXPECT_EQ(budget.used(), 55 * kMiB);
  EXPECT_EQ(idle.unused, kMiB);
}

TEST(MemoryBudget, GivesNobodyMoreThanAnEqualPartWhenItRunsShort) {
  MemoryBudget budget(64 * kMiB);
  const auto others = join(budget, 5);
  Holder greedy(budget, 32 * kMiB, 0), modest(budget, 7 * kMiB, 0), full(budget, 8 * kMiB, 0);
  ASSERT_TRUE(budget.take(32 * kMiB, Stage::kCall, modest));  // one alone, while there is plenty
  EXPECT_FALSE(budget.presses(greedy));
  EXPECT_FALSE(budget.take(kMiB, Stage::kCall, greedy));
  EXPECT_TRUE(budget.take(kMiB, Stage::kReply, greedy));  // what lets its Calls finish
  EXPECT_TRUE(budget.presses(greedy));
  EXPECT_FALSE(budget.presses(full));
  EXPECT_TRUE(budget.take(kMiB, Stage::kCall, modest));
  EXPECT_FALSE(budget.take(kMiB, Stage::kCall, full));
  EXPECT_TRUE(budget.take(kMiB, Stage::kControl, greedy));
}

TEST(MemoryBudget, GivesEverybodyThePartThatItNeeds) {
  MemoryBudget budget(64 * kMiB, 20 * kMiB);
  const auto others = join(budget, 5);
  Holder more(budget, 13 * kMiB, 0), less(budget, 12 * kMiB, 0), full(budget, 20 * kMiB, 0);
  ASSERT_TRUE(budget.take(32 * kMiB, Stage::kCall, less));
  EXPECT_FALSE(budget.take(8 * kMiB, Stage::kCall, more));
  EXPECT_TRUE(budget.take(8 * kMiB, Stage::kCall, less));
  EXPECT_FALSE(budget.presses(full));
}

// Of pools, the greedy one first: the other still gets its part, a Call and a Reply, as soon as it asks.
TEST(MemoryBudget, IsSharedByThePoolsOfAProcess) {
  const auto budget = std::make_shared<MemoryBudget>(16 * kMiB);
  FakeEndpoint registrar{1};
  BufferPool greedy(registrar, {.budget = budget});
  BufferPool modest(registrar, {.budget = budget});
  const BufferPool third(registrar, {.budget = budget});
  std::vector<Buffer> held;
  while (auto buffer = greedy.acquire(kMiB, Purpose::kCall)) held.push_back(std::move(*buffer));
  EXPECT_GE(held.size(), 7u);
  EXPECT_LE(greedy.registered_bytes(), 10 * kMiB);
  EXPECT_GT(greedy.shortages(), 0u);
  auto call = modest.acquire(kMiB, Purpose::kCall);
  auto reply = modest.acquire(kMiB, Purpose::kReply);
  EXPECT_TRUE(call && reply);
  EXPECT_EQ(budget->used(), greedy.registered_bytes() + modest.registered_bytes());
  const std::size_t before = greedy.registered_bytes();
  held.pop_back();  // above its part, while memory is short: not kept
  EXPECT_LT(greedy.registered_bytes(), before);
  held.clear();
  call.reset();
  reply.reset();
}

TEST(MemoryBudget, ReclaimsWhatPoolsKeepForReuse) {
  const auto budget = std::make_shared<MemoryBudget>(16 * kMiB);
  FakeEndpoint registrar{1};
  {
    BufferPool idle(registrar, {.budget = budget});
    BufferPool busy(registrar, {.budget = budget});
    {
      std::vector<Buffer> burst;
      for (int i = 0; i < 3; ++i) burst.push_back(std::move(*idle.acquire(kMiB, Purpose::kReply)));
    }
    EXPECT_GT(idle.registered_bytes(), 3 * kMiB);
    std::vector<Buffer> held;
    while (auto buffer = busy.acquire(kMiB, Purpose::kReply)) held.push_back(std::move(*buffer));
    EXPECT_EQ(idle.registered_bytes(), 0u);
    EXPECT_GE(held.size(), 12u);
  }
  EXPECT_EQ(budget->used(), 0u);
}

}  // namespace
}  // namespace iwarp::rpcrdma::test
