#include "iwarp/verbs/turn_mutex.h"

#include <gtest/gtest.h>

#include <mutex>
#include <thread>
#include <vector>

#include "tests/support/eventually.h"

namespace iwarp::verbs {
namespace {

// Asked by another thread: the holder may not.
bool is_free(TurnMutex& mu) {
  bool got = false;
  std::thread([&] {
    got = mu.try_lock();
    if (got) mu.unlock();
  }).join();
  return got;
}

TEST(TurnMutex, GivesWayToWhoWaits) {
  TurnMutex mu;
  mu.lock();
  EXPECT_FALSE(mu.wanted());
  bool had = false;
  std::thread other([&] {
    const std::lock_guard lock(mu);
    had = true;
  });
  ASSERT_TRUE(test::eventually([&] { return mu.wanted(); }));
  ASSERT_FALSE(had);
  // At once as a rule; on a machine that is busy otherwise its patience may end first, so it is asked again.
  EXPECT_TRUE(test::eventually([&] {
    mu.give_way();
    return had;
  }));
  EXPECT_FALSE(mu.wanted());
  EXPECT_FALSE(is_free(mu)) << "who gave way holds it again";
  mu.unlock();
  other.join();
}

TEST(TurnMutex, CountsEveryTurn) {
  TurnMutex mu;
  constexpr int kThreads = 4, kTurns = 5000;
  int count = 0;
  {
    std::vector<std::jthread> all;
    for (int i = 0; i < kThreads; ++i) {
      all.emplace_back([&] {
        for (int n = 0; n < kTurns; ++n) {
          const std::lock_guard lock(mu);
          ++count;
          if (n % 64 == 0 && mu.wanted()) mu.give_way();
        }
      });
    }
  }
  EXPECT_EQ(count, kThreads * kTurns);
  EXPECT_FALSE(mu.wanted());
}

// With nobody there it is not even unlocked for long.
TEST(TurnMutex, NobodyWaits) {
  TurnMutex mu;
  mu.lock();
  mu.give_way();
  EXPECT_FALSE(is_free(mu));
  mu.unlock();
}

}  // namespace
}  // namespace iwarp::verbs
