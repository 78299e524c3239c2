// Rows for tests, as if they had been measured.
#pragma once

#include <algorithm>
#include <vector>

#include "tools/perf/row.h"

namespace iwarp::tools::perf {

// A pair for each element: what iwarp reached, and plain TCP beside it. Operations: 1000 in each sample of half a
// second. Latencies: from half of the value to ten times as much.
inline Row row_of(Test test, std::uint32_t size, const std::vector<std::pair<double, double>>& pairs) {
  const auto measured = [&](double value) {
    Measured m{.value = value, .operations = 1000, .seconds = 0.5};
    if (unit_of(test) == Unit::kMicroseconds) {
      std::vector<float> times(1000, static_cast<float>(value));
      std::fill_n(times.begin(), 50, static_cast<float>(value / 2));
      std::fill_n(times.rbegin(), 50, static_cast<float>(value * 10));
      m.latency = latency_of(times);
    }
    return m;
  };
  Row row;
  row.spec.test = test;
  row.spec.size = size;
  row.spec.list = default_list(test, row.spec.depth);
  row.congestion_control = "cubic";
  row.rivals.push_back({baseline_spec(row.spec), {}});
  for (const auto& [iwarp, tcp] : pairs) {
    if (!is_raw(test)) row.samples.push_back(measured(iwarp));
    row.rivals[0].samples.push_back(measured(tcp));
  }
  row.pairs = row.planned = static_cast<unsigned>(pairs.size());
  if (row.pairs > 0) conclude(row);
  return row;
}

}  // namespace iwarp::tools::perf
