// The table of `iwarp top` as JSON (docs/JSON.md).
#pragma once

#include <nlohmann/json.hpp>

#include "tools/top/page.h"

namespace iwarp::tools::top {

// What has come between two pages, `seconds` apart, and what there is now.
[[nodiscard]] nlohmann::ordered_json document(const Page& now, const Page& before, double seconds);

}  // namespace iwarp::tools::top
