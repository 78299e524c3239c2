// The ring that data are sent from: which of its octets are free. What was taken is given back in the same order. Not
// thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>

namespace iwarp::dropin::rsockets {

class SendRing {
 public:
  explicit SendRing(std::size_t size) : size_(size) {}

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::size_t free() const { return size_ - used_; }
  // Free octets in a row, from next() on.
  [[nodiscard]] std::size_t in_a_row() const { return std::min(free(), size_ - next_); }
  // Where the next octets go.
  [[nodiscard]] std::size_t next() const { return next_; }
  // Precondition: octets <= in_a_row().
  void take(std::size_t octets) {
    next_ = next_ + octets == size_ ? 0 : next_ + octets;
    used_ += octets;
  }
  // Precondition: as many were taken.
  void give_back(std::size_t octets) { used_ -= octets; }

 private:
  std::size_t size_, used_ = 0, next_ = 0;
};

}  // namespace iwarp::dropin::rsockets
