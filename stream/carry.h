// The start of an FPDU whose rest has not arrived: kept between two reads.
#pragma once

#include <cstddef>
#include <memory>

#include "iwarp/base/bytes.h"

namespace iwarp::stream {

// Owns its memory, which is not initialised before octets arrive in it. Not thread-safe.
class Carry {
 public:
  [[nodiscard]] bool empty() const { return used_ == 0; }
  // As many octets are here as were wanted.
  [[nodiscard]] bool complete() const { return used_ == wanted_; }

  // What has arrived, and where the rest of what is wanted goes. Valid until keep(), clear() or release().
  [[nodiscard]] MutBytes arrived() const { return {memory_.get(), used_}; }
  [[nodiscard]] MutBytes missing() const { return {memory_.get() + used_, wanted_ - used_}; }
  [[nodiscard]] std::size_t missing_bytes() const { return wanted_ - used_; }

  // Starts, or goes on, with `partial`, which may be arrived() itself, and asks for `wanted` octets in all, at least as
  // many as `partial` has.
  void keep(ConstBytes partial, std::size_t wanted);
  // `n` octets, at most missing_bytes(), have been written into missing().
  void arrived(std::size_t n) { used_ += n; }
  // Nothing is kept any more. The memory stays for the next, until release().
  void clear() { used_ = wanted_ = 0; }
  // Gives the memory of an empty Carry back.
  void release();

 private:
  std::unique_ptr<std::byte[]> memory_;
  std::size_t capacity_ = 0;
  std::size_t used_ = 0;
  std::size_t wanted_ = 0;
};

}  // namespace iwarp::stream
