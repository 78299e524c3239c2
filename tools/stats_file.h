// --stats: counters as JSON (docs/JSON.md), in a file or on standard output.
#pragma once

#include <string>

#include "iwarp/gateway/stats.h"

namespace iwarp::tools {

class StatsFile {
 public:
  // `file`: "-" or empty is standard output. Throws std::runtime_error when the file could not be written.
  explicit StatsFile(std::string file);

  [[nodiscard]] bool to_output() const { return file_.empty() || file_ == "-"; }
  // A file is written aside and renamed, so that a reader never sees half of it; what goes wrong is logged. On standard
  // output it is a line.
  void write(const gateway::Stats::Snapshot& snapshot) const;

 private:
  std::string file_;
};

}  // namespace iwarp::tools
