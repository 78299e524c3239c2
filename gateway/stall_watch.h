// Whether something that is awaited moves on: a half-received record, an unanswered RDMA Read, a Reply that nobody
// reads. Pure: time is passed in, and the owner wakes itself at deadline().
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>

#include "iwarp/base/time.h"

namespace iwarp::gateway {

class StallWatch {
 public:
  // How long nothing may move.
  explicit StallWatch(std::chrono::milliseconds limit)
      : limit_(std::min(limit, std::chrono::duration_cast<std::chrono::milliseconds>(Duration::max()))) {}

  // To be told after every turn of work: whether something is awaited, and a count that rises whenever some of it came.
  // The limit begins anew with each rise, and with each wait.
  void look(bool waiting, std::uint64_t progress, TimePoint now) {
    if (!waiting) {
      since_.reset();
    } else if (!since_ || progress != progress_) {
      since_ = now;
    }
    progress_ = progress;
  }
  // When the limit will have passed, if nothing moves until then.
  [[nodiscard]] std::optional<TimePoint> deadline() const {
    return since_ ? std::optional(add_saturating(*since_, limit_)) : std::nullopt;
  }
  // Nothing has moved for as long as the limit.
  [[nodiscard]] bool expired(TimePoint now) const { return since_ && now >= add_saturating(*since_, limit_); }

 private:
  Duration limit_;
  std::optional<TimePoint> since_;
  std::uint64_t progress_ = 0;
};

}  // namespace iwarp::gateway
