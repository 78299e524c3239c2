// Numbers that follow from a seed, the same everywhere.
#pragma once

#include <cstdint>
#include <initializer_list>

namespace iwarp::programs {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15ULL + 0x1234567) {}

  std::uint64_t next() {  // splitmix64
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15ULL);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
  }
  // From 0 to n - 1.
  std::uint32_t below(std::uint64_t n) { return n == 0 ? 0 : static_cast<std::uint32_t>(next() % n); }
  // Once in n times.
  bool once_in(std::uint64_t n) { return below(n) == 0; }
  template <class T>
  T among(std::initializer_list<T> of) {
    return *(of.begin() + below(of.size()));
  }

 private:
  std::uint64_t state_;
};

}  // namespace iwarp::programs
