// The measured loop of the latency tests, of iwarp and plain TCP's.
#pragma once

#include "tools/perf/end.h"

namespace iwarp::tools::perf {

// `turn()` there and back, again and again for this long; `size` octets each way. The samples are one way.
template <class Turn>
Sample ping_pong(std::chrono::nanoseconds duration, std::size_t size, const Turn& turn) {
  using Clock = std::chrono::steady_clock;
  Sample s;
  s.microseconds.reserve(1 << 16);
  const auto begin = Clock::now();
  auto now = begin;
  while (now < begin + duration && !interrupted) {
    turn();
    const auto after = Clock::now();
    s.microseconds.push_back(std::chrono::duration<float, std::micro>(after - now).count() / 2);
    now = after;
  }
  s.seconds = std::chrono::duration<double>(now - begin).count();
  s.operations = s.microseconds.size();
  s.octets = s.operations * size * 2;
  return s;
}

}  // namespace iwarp::tools::perf
