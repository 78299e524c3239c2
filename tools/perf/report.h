// Results as a table for people.
#pragma once

#include <string>
#include <vector>

#include "tools/perf/runner.h"

namespace iwarp::tools::perf {

// Heading and one line per row. `markdown`: with bars.
[[nodiscard]] std::string table(const std::vector<Row>& rows, bool markdown);
// What to beware of in these rows; empty when nothing.
[[nodiscard]] std::string warning(const std::vector<Row>& rows);

}  // namespace iwarp::tools::perf
