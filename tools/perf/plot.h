// Results as a picture: bars with their spread for throughput and rates, a sweep where a test has three sizes or more,
// and for latency the part of the operations that took no longer than so many microseconds.
#pragma once

#include <string>
#include <vector>

#include "tools/perf/row.h"
#include "tools/perf/table.h"

namespace iwarp::tools::perf {

// SVG. Rows without a pair are left out. `subtitle`: a line about where and how it was measured.
[[nodiscard]] std::string plot(const std::vector<Row>& rows, Units units, const std::string& subtitle);

}  // namespace iwarp::tools::perf
