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

}  // namespace
}  // namespace iwarp
