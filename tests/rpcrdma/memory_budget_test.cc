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

TEST(MemoryBudget, LeavesSomeForWhatGivesMemoryBack) {
  MemoryBudget budget(64 * kMiB);
  EXPECT_FALSE(budget.take(48 * kMiB + 1, Stage::kCall, 0));
  ASSERT_TRUE(budget.take(32 * kMiB, Stage::kCall, 0));
  EXPECT_FALSE(budget.admits_connection());
  ASSERT_TRUE(budget.take(16 * kMiB, Stage::kCall, 0));
  EXPECT_FALSE(budget.take(1, Stage::kCall, 0));
  ASSERT_TRUE(budget.take(8 * kMiB, Stage::kReply, 0));
  EXPECT_FALSE(budget.take(1, Stage::kReply, 0));
  ASSERT_TRUE(budget.take(8 * kMiB, Stage::kControl, 0));
  EXPECT_FALSE(budget.take(1, Stage::kControl, 0));
  EXPECT_EQ(budget.used(), budget.limit());
  budget.give(64 * kMiB);
  EXPECT_TRUE(budget.admits_connection());
}

class Idle final : public MemoryBudget::Member {
 public:
  Idle(MemoryBudget& budget, std::size_t bytes) : budget_(budget), bytes_(bytes) {}
  void give_back() override { budget_.give(std::exchange(bytes_, 0)); }
  [[nodiscard]] std::size_t idle_bytes() const override { return bytes_; }

 private:
  MemoryBudget& budget_;
  std::size_t bytes_;
};

// A connection that has its part asks again and again.
TEST(MemoryBudget, LeavesOthersTheirIdleMemoryWhereTakingItCannotHelp) {
  MemoryBudget budget(64 * kMiB);
  ASSERT_TRUE(budget.take(40 * kMiB, Stage::kReply, 0));
  Idle a_little(budget, 2 * kMiB), greedy(budget, 0);
  budget.join(a_little);
  budget.join(greedy);
  EXPECT_FALSE(budget.take(1 * kMiB, Stage::kCall, 32 * kMiB));
  EXPECT_EQ(a_little.idle_bytes(), 2 * kMiB);
  Idle more(budget, 10 * kMiB);
  budget.join(more);
  EXPECT_TRUE(budget.take(1 * kMiB, Stage::kCall, 32 * kMiB));
  EXPECT_EQ(a_little.idle_bytes() + more.idle_bytes(), 0U);
  for (Idle* member : {&a_little, &greedy, &more}) budget.leave(*member);
}

TEST(MemoryBudget, AsksEverybodyForWhatTheyDoNotUse) {
  MemoryBudget budget(64 * kMiB);
  ASSERT_TRUE(budget.take(40 * kMiB, Stage::kReply, 0));
  Idle one(budget, 30 * kMiB);
  budget.join(one);
  EXPECT_TRUE(budget.take(20 * kMiB, Stage::kCall, 0));
  EXPECT_EQ(budget.used(), 30 * kMiB);
  budget.leave(one);
}

TEST(MemoryBudget, GivesNobodyMoreThanAnEqualPartWhenItRunsShort) {
  MemoryBudget budget(64 * kMiB);
  std::vector<std::unique_ptr<Idle>> members;
  for (int i = 0; i < 8; ++i) budget.join(*members.emplace_back(std::make_unique<Idle>(budget, 0)));
  ASSERT_TRUE(budget.take(32 * kMiB, Stage::kCall, 0));  // one alone, while there is plenty
  EXPECT_FALSE(budget.presses(32 * kMiB));
  EXPECT_FALSE(budget.take(kMiB, Stage::kCall, 32 * kMiB));
  EXPECT_TRUE(budget.take(kMiB, Stage::kReply, 32 * kMiB));  // what lets its Calls finish
  EXPECT_TRUE(budget.presses(32 * kMiB));
  EXPECT_FALSE(budget.presses(7 * kMiB));
  EXPECT_TRUE(budget.take(kMiB, Stage::kCall, 7 * kMiB));
  EXPECT_FALSE(budget.take(kMiB, Stage::kCall, 8 * kMiB));
  EXPECT_TRUE(budget.take(kMiB, Stage::kControl, 32 * kMiB));
}

TEST(MemoryBudget, GivesEverybodyThePartThatItNeeds) {
  MemoryBudget budget(64 * kMiB, 20 * kMiB);
  std::vector<std::unique_ptr<Idle>> members;
  for (int i = 0; i < 8; ++i) budget.join(*members.emplace_back(std::make_unique<Idle>(budget, 0)));
  ASSERT_TRUE(budget.take(32 * kMiB, Stage::kCall, 0));
  EXPECT_FALSE(budget.take(8 * kMiB, Stage::kCall, 13 * kMiB));
  EXPECT_TRUE(budget.take(8 * kMiB, Stage::kCall, 12 * kMiB));
  EXPECT_FALSE(budget.presses(20 * kMiB));
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
