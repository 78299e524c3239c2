#include "tools/perf/ticker.h"

#include <gtest/gtest.h>

#include <vector>

namespace iwarp::tools::perf {
namespace {

using namespace std::chrono_literals;

TEST(Ticker, TicksAfterEachIntervalUntilItIsGone) {
  std::mutex mu;
  std::condition_variable ticked;
  std::vector<std::chrono::milliseconds> ticks;
  {
    const Ticker ticker(5ms, [&](std::chrono::milliseconds elapsed) {
      const std::lock_guard lock(mu);
      ticks.push_back(elapsed);
      ticked.notify_one();
    });
    std::unique_lock lock(mu);
    EXPECT_TRUE(ticked.wait_for(lock, 30s, [&] { return ticks.size() >= 3; }));
  }
  for (std::size_t i = 0; i < ticks.size(); ++i) EXPECT_EQ(ticks[i], (i + 1) * 5ms);
}

TEST(Ticker, EndsWithoutWaitingForTheNextTick) {
  const auto begin = std::chrono::steady_clock::now();
  {
    const Ticker ticker(1h, [](std::chrono::milliseconds) { ADD_FAILURE(); });
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 30s);
}

}  // namespace
}  // namespace iwarp::tools::perf
