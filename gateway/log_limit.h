// How often one kind of log line is written: at most so many lines in each period, however often its cause happens.
// What is left out is counted, so that the next line can say so. Pure: time is passed in. Not thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

#include "iwarp/base/time.h"

namespace iwarp::gateway {

struct LogRate {
  unsigned lines = 5;  // in each period, at least 1
  std::chrono::seconds period{1};
};

class LogLimit {
 public:
  explicit LogLimit(const LogRate& rate) : rate_(rate) {}

  // Whether the line may be written: then the number of lines that were left out since the last one. `now` never goes
  // backwards.
  [[nodiscard]] std::optional<std::uint64_t> admit(TimePoint now) {
    if (!since_ || now - *since_ >= rate_.period) {
      since_ = now;
      lines_ = 0;
    }
    if (lines_ == rate_.lines) {
      ++left_out_;
      return std::nullopt;
    }
    ++lines_;
    return std::exchange(left_out_, 0);
  }
  // Left out since the last line written.
  [[nodiscard]] std::uint64_t left_out() const { return left_out_; }

 private:
  LogRate rate_;
  std::optional<TimePoint> since_;  // when the present period began
  unsigned lines_ = 0;              // in it
  std::uint64_t left_out_ = 0;
};

}  // namespace iwarp::gateway
