// The time type of the pure layers. They never read a clock: `now` is passed in and never goes backwards.
#pragma once

#include <chrono>

namespace iwarp {

using TimePoint = std::chrono::steady_clock::time_point;
using Duration = std::chrono::steady_clock::duration;

// The latest time there is when the sum would be later, as with time-outs that mean "for ever".
[[nodiscard]] inline TimePoint add_saturating(TimePoint now, Duration timeout) {
  return timeout < TimePoint::max() - now ? now + timeout : TimePoint::max();
}

}  // namespace iwarp
