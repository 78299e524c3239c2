// What the times of many operations come to: the figures that perftest has, and the distribution.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

namespace iwarp::tools::perf {

// The parts of the operations at which the distribution is kept: every hundredth, and the far end more closely.
inline constexpr std::size_t kQuantiles = 104;
[[nodiscard]] const std::array<double, kQuantiles>& quantile_fractions();

// Microseconds.
struct Latency {
  double least = 0;
  double typical = 0;  // the middle of the fullest bin of a histogram whose bins are 5 % of the median wide
  double p50 = 0, p99 = 0, p999 = 0;
  double most = 0;
  std::array<double, kQuantiles> quantiles{};  // of quantile_fractions(), none less than the one before
};

// Sorts `microseconds`, which must not be empty.
[[nodiscard]] Latency latency_of(std::vector<float>& microseconds);

// Several samples as one: the least of all, the largest of all, and of everything else the median over the samples, so
// that one sample which something disturbed decides nothing. `samples` must not be empty.
[[nodiscard]] Latency joined(const std::vector<Latency>& samples);

}  // namespace iwarp::tools::perf
