#include "iwarp/gateway/stall_watch.h"

#include <gtest/gtest.h>

namespace iwarp::gateway {
namespace {

using namespace std::chrono_literals;

TEST(StallWatch, ExpiresWhenNothingMovesForAsLongAsTheLimit) {
  StallWatch watch(10s);
  const TimePoint start = TimePoint{} + 100s;
  EXPECT_FALSE(watch.deadline());
  watch.look(true, 5, start);
  EXPECT_EQ(watch.deadline(), start + 10s);
  EXPECT_FALSE(watch.expired(start + 10s - 1ns));
  watch.look(true, 5, start + 9s);  // looking is no progress
  EXPECT_TRUE(watch.expired(start + 10s));
}

TEST(StallWatch, BeginsAnewWithEveryProgress) {
  StallWatch watch(10s);
  const TimePoint start = TimePoint{} + 100s;
  watch.look(true, 5, start);
  watch.look(true, 6, start + 9s);
  EXPECT_FALSE(watch.expired(start + 18s));
  EXPECT_TRUE(watch.expired(start + 19s));
}

TEST(StallWatch, DoesNotCountTheTimeBetweenTwoWaits) {
  StallWatch watch(10s);
  const TimePoint start = TimePoint{} + 100s;
  watch.look(true, 5, start);
  watch.look(false, 5, start + 1s);
  EXPECT_FALSE(watch.deadline());
  EXPECT_FALSE(watch.expired(start + 1h));
  watch.look(true, 5, start + 1h);
  EXPECT_FALSE(watch.expired(start + 1h + 9s));
  EXPECT_TRUE(watch.expired(start + 1h + 10s));
}

TEST(StallWatch, WaitsForEverWithTheLongestLimit) {
  StallWatch watch(std::chrono::milliseconds::max());
  watch.look(true, 0, TimePoint{} + 100s);
  EXPECT_FALSE(watch.expired(TimePoint{} + 10000h));
}

}  // namespace
}  // namespace iwarp::gateway
