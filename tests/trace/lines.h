// Records as lines, for tests.
#pragma once

#include <string>
#include <vector>

#include "iwarp/trace/line_writer.h"

namespace iwarp::trace {

inline std::vector<std::string> lines_of(const std::vector<Record>& records) {
  std::vector<std::string> out;
  LineWriter writer{{}};
  for (const Record& r : records) out.push_back(writer.line(r));
  return out;
}

}  // namespace iwarp::trace
