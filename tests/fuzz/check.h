// What every fuzz target shares: an assertion that no build type removes, and the reading of a fuzzer's input as a
// script.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "iwarp/base/wire.h"

// Ends the process with SIGABRT, which both libFuzzer and the replay report as a finding.
#define FUZZ_CHECK(condition)                                                             \
  do {                                                                                    \
    if (!(condition)) {                                                                   \
      std::fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                       \
    }                                                                                     \
  } while (false)

namespace iwarp::fuzz {

// Reads values off the front of the input. Behind its end everything reads as 0.
class Script {
 public:
  explicit Script(ConstBytes input) : rest_(input) {}

  template <std::unsigned_integral T>
  T take() {
    T v{};
    for (std::size_t i = 0; i < sizeof(T); ++i) {
      if constexpr (sizeof(T) > 1) v = static_cast<T>(v << 8);
      if (rest_.empty()) continue;
      v = static_cast<T>(v | std::to_integer<T>(rest_[0]));
      rest_ = rest_.subspan(1);
    }
    return v;
  }
  std::uint8_t u8() { return take<std::uint8_t>(); }
  std::uint16_t u16() { return take<std::uint16_t>(); }
  std::uint32_t u32() { return take<std::uint32_t>(); }
  bool flag() { return (u8() & 1) != 0; }
  // At most n octets, fewer at the end of the input.
  ConstBytes bytes(std::size_t n) {
    const ConstBytes v = rest_.first(n < rest_.size() ? n : rest_.size());
    rest_ = rest_.subspan(v.size());
    return v;
  }
  [[nodiscard]] bool done() const { return rest_.empty(); }
  [[nodiscard]] ConstBytes rest() const { return rest_; }

 private:
  ConstBytes rest_;
};

// How TCP may cut a stream: whole reads, or pieces of 1 to 64 octets.
class Chunking {
 public:
  static Chunking whole() { return Chunking(0); }
  static Chunking pieces() { return Chunking(1); }
  // Length of the next read of at most `available` octets (not 0).
  std::size_t next(std::size_t available) {
    if (state_ == 0) return available;
    state_ = state_ * 1664525 + 1013904223;
    const std::size_t n = state_ >> 30 == 0 ? 1 : 1 + (state_ >> 8) % 64;
    return n < available ? n : available;
  }

 private:
  explicit Chunking(std::uint32_t state) : state_(state) {}
  std::uint32_t state_;
};

inline ConstBytes as_input(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const std::byte*>(data), size};
}

}  // namespace iwarp::fuzz

// What libFuzzer and the replay call. Returns 0.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
