// The time type of the pure layers. They never read a clock: `now` is passed in and never goes backwards.
#pragma once

#include <chrono>

namespace iwarp {

using TimePoint = std::chrono::steady_clock::time_point;  // a moment of the steady clock
using Duration = std::chrono::steady_clock::duration;     // the difference of two of them

// The latest time there is when the sum would be later, as with time-outs that mean "for ever": the greatest of any
// unit, such as milliseconds::max(), which no Duration holds. The epoch when it would be earlier. Precondition: `now`
// is not before the epoch.
template <class Rep, class Period>
[[nodiscard]] constexpr TimePoint add_saturating(TimePoint now, std::chrono::duration<Rep, Period> timeout) {
  using Unit = std::chrono::duration<Rep, Period>;
  // Rounded down in their unit, so that what is within them fits.
  if (timeout > std::chrono::duration_cast<Unit>(TimePoint::max() - now)) return TimePoint::max();
  if (timeout < -std::chrono::duration_cast<Unit>(now.time_since_epoch())) return TimePoint{};
  return now + std::chrono::duration_cast<Duration>(timeout);
}

}  // namespace iwarp
