#include "iwarp/verbs/turn_mutex.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
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

// By one that locks and unlocks without a pause, on a processor that both share: without the limit it does so until its
// time slice is over, some hundred turns.
TEST(TurnMutex, NobodyIsKeptWaitingForLong) {
  cpu_set_t before, one;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  CPU_ZERO(&one);
  CPU_SET(::sched_getcpu(), &one);
  (void)::sched_setaffinity(0, sizeof one, &one);  // the thread that follows inherits it
  TurnMutex mu;
  std::atomic<std::uint64_t> turns{0};
  std::atomic<bool> over{false};
  std::uint64_t most = 0;
  {
    std::jthread busy([&] {
      while (!over) {
        const std::lock_guard lock(mu);
        turns.fetch_add(1);
        for (const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds{5};
             std::chrono::steady_clock::now() < end;) {
        }
      }
    });
    for (int i = 0; i < 100; ++i) {
      const std::uint64_t now = turns.load();
      mu.lock();
      most = std::max(most, turns.load() - now);
      mu.unlock();
      std::this_thread::sleep_for(std::chrono::microseconds{100});
    }
    over = true;
  }
  (void)::sched_setaffinity(0, sizeof before, &before);
  EXPECT_LT(most, 4 * TurnMutex::kMostPassed);
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
