// The time type of the pure layers. They never read a clock: `now` is passed in and never goes backwards.
#pragma once

#include <chrono>

namespace iwarp {

using TimePoint = std::chrono::steady_clock::time_point;
using Duration = std::chrono::steady_clock::duration;

}  // namespace iwarp
