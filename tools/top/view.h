// The table of `iwarp top`, as lines of text.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tools/top/page.h"

namespace iwarp::tools::top {

// At most five characters: "0", "12", "9.9k", "70k", "1.2M".
[[nodiscard]] std::string short_number(double value);
// "12us", "1.5ms", "2.0s"; ">30s" for an infinite one.
[[nodiscard]] std::string short_time(double seconds);

// What has come between two pages, `seconds` apart. No line is longer than `width`: columns that do not fit are left
// out.
[[nodiscard]] std::vector<std::string> table(const Page& now, const Page& before, double seconds, std::size_t width);

}  // namespace iwarp::tools::top
