// Medians and percentiles of samples. Precondition of all: the list is not empty.
#pragma once

#include <vector>

namespace iwarp::tools::perf {

[[nodiscard]] double median(std::vector<double> values);
// Of values in ascending order: the one below which `fraction` (0 to 1) of them lie, nearest rank.
[[nodiscard]] double percentile(const std::vector<float>& sorted, double fraction);

}  // namespace iwarp::tools::perf
