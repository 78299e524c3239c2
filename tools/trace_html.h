// A trace as a page with a ladder diagram: one file, which loads nothing.
#pragma once

#include <cstddef>
#include <string>

namespace iwarp::tools {

// Records in a page; what comes behind them is counted.
inline constexpr std::size_t kMaxTracePageRecords = 20000;

// The page, with @DATA@ where the records go.
extern const char* const kTracePage;

// JSON that may stand inside of a script element: nothing in it ends the element.
[[nodiscard]] std::string script_safe(std::string json);

}  // namespace iwarp::tools
