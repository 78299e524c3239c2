#include "iwarp/base/time.h"

#include <gtest/gtest.h>

namespace iwarp {
namespace {

using std::chrono::nanoseconds;

TEST(AddSaturating, StopsAtTheLatestTimeThereIs) {
  const TimePoint now{std::chrono::hours(1)};
  EXPECT_EQ(add_saturating(now, nanoseconds(5)), now + nanoseconds(5));
  EXPECT_EQ(add_saturating(now, nanoseconds(-5)), now - nanoseconds(5));
  EXPECT_EQ(add_saturating(now, nanoseconds::max()), TimePoint::max());
  EXPECT_EQ(add_saturating(now, TimePoint::max() - now - nanoseconds(1)), TimePoint::max() - nanoseconds(1));
  EXPECT_EQ(add_saturating(now, TimePoint::max() - now), TimePoint::max());
}

TEST(AddSaturating, TakesWhatNoDurationHolds) {
  const TimePoint now{std::chrono::hours(1)};
  using std::chrono::milliseconds, std::chrono::seconds;
  EXPECT_EQ(add_saturating(now, milliseconds::max()), TimePoint::max());
  EXPECT_EQ(add_saturating(now, seconds::max()), TimePoint::max());
  EXPECT_EQ(add_saturating(now, seconds(5)), now + seconds(5));
  EXPECT_EQ(add_saturating(now, milliseconds(-5)), now - milliseconds(5));
  EXPECT_EQ(add_saturating(now, milliseconds::min()), TimePoint{});
}

}  // namespace
}  // namespace iwarp
