// When an Initiator wakes a peer that may have overlooked its first FPDUs: Linux siw notices octets that came before it
// took over the socket only when more come. A zero-length RDMA Write is such more. A value: no clock, no timer.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <optional>

#include "iwarp/base/time.h"

namespace iwarp::stream {

class EarlyWake {
 public:
  // From the first octets of full operation handed to TCP. 20 ms is longer than an idle siw takes, and short for who
  // waits; a busy machine may be slower, hence the others. Whom three do not wake is not asleep.
  static constexpr std::array<std::chrono::milliseconds, 3> kAfter{
      std::chrono::milliseconds{20}, std::chrono::milliseconds{100}, std::chrono::milliseconds{500}};

  // Octets of full operation were handed to TCP. Only the first call counts.
  void begin(TimePoint now) {
    if (!began_) began_ = now;
  }
  // The peer was heard, or the connection is ending: none is due any more.
  void end() {
    if (!began_) began_ = TimePoint{};
    next_ = kAfter.size();
  }
  // When the next one is due. Nothing: none is.
  [[nodiscard]] std::optional<TimePoint> deadline() const {
    if (!began_ || next_ == kAfter.size()) return std::nullopt;
    return *began_ + kAfter[next_];
  }
  // True when one is due now; then it is done with. Who comes late for several makes up for them with one.
  [[nodiscard]] bool expire(TimePoint now) {
    const std::size_t before = next_;
    for (auto due = deadline(); due && now >= *due; due = deadline()) ++next_;
    return next_ != before;
  }

 private:
  std::optional<TimePoint> began_;
  std::size_t next_ = 0;  // of kAfter
};

}  // namespace iwarp::stream
