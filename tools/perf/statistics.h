// Medians and percentiles of samples. Precondition of all: the list is not empty.
#pragma once

#include <vector>

namespace iwarp::tools::perf {

[[nodiscard]] double median(std::vector<double> values);
// The value below which `fraction` (0 to 1) of the values lie, nearest rank.
[[nodiscard]] double percentile(std::vector<float>& values, double fraction);

}  // namespace iwarp::tools::perf
