// Refused clients. Each is counted; the log gets at most five lines a second for each reason, however many come:
// clients decide how often they try. One thread.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "iwarp/base/time.h"
#include "iwarp/gateway/stats.h"

namespace iwarp::gateway {

class Refusals {
 public:
  // `stats` must outlive this object.
  explicit Refusals(Stats& stats) : stats_(stats) {}

  // `line` says who and why. The next line for that reason says how many were left out before it; the
  // counters count all. `now` never goes backwards.
  void add(RefuseReason why, const std::string& line, TimePoint now);

 private:
  struct Told {
    std::optional<TimePoint> since;  // when the present second began
    unsigned lines = 0;              // in it
    std::uint64_t left_out = 0;
  };

  Stats& stats_;
  std::array<Told, kRefuseReasons> told_{};
};

}  // namespace iwarp::gateway
