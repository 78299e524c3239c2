#include "tools/perf/end.h"

namespace iwarp::tools::perf {
namespace {

std::byte octet(std::size_t position, std::uint64_t seed) {
  const std::uint64_t mixed = (position + 1) * 0x9E3779B97F4A7C15U + seed * 0xD1B54A32D192ED03U;
  return static_cast<std::byte>(mixed >> 56);
}

}  // namespace

std::atomic<bool> interrupted{false};

void fill_pattern(std::byte* data, std::size_t size, std::uint64_t seed) {
  for (std::size_t i = 0; i < size; ++i) data[i] = octet(i, seed);
}

bool has_pattern(const std::byte* data, std::size_t size, std::uint64_t seed) {
  for (std::size_t i = 0; i < size; ++i) {
    if (data[i] != octet(i, seed)) return false;
  }
  return true;
}

}  // namespace iwarp::tools::perf
