// Records as JSON (docs/TRACE.md).
#pragma once

#include <nlohmann/json.hpp>

#include "iwarp/trace/record.h"
#include "iwarp/trace/summary.h"

namespace iwarp::tools {

// The schema of what follows; a new one for each change that breaks a reader.
inline constexpr const char* kTraceSchema = "iwarp-trace/1";
inline constexpr const char* kTraceSummarySchema = "iwarp-trace-summary/1";

// `start`: of the trace, since 1970.
[[nodiscard]] nlohmann::ordered_json to_json(const trace::Record& record, Duration start);
[[nodiscard]] nlohmann::ordered_json to_json(const trace::Summary& summary);

}  // namespace iwarp::tools
