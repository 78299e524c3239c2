// Records as JSON (docs/JSON.md).
#pragma once

#include <nlohmann/json.hpp>

#include "iwarp/trace/record.h"
#include "iwarp/trace/summary.h"

namespace iwarp::tools {

// `start`: of the trace, since 1970.
[[nodiscard]] nlohmann::ordered_json to_json(const trace::Record& record, Duration start);
[[nodiscard]] nlohmann::ordered_json to_json(const trace::Summary& summary);

}  // namespace iwarp::tools
