// --stats: counters as JSON, in a file or on standard output.
#pragma once

#include <string>

#include "iwarp/gateway/stats.h"

namespace iwarp::tools {

class StatsFile {
 public:
  // `file`: "-" or empty is standard output. Throws std::runtime_error when the file could not be written.
  explicit StatsFile(std::string file);

  [[nodiscard]] bool to_output() const { return file_.empty() || file_ == "-"; }
  // Written aside and renamed, so that a reader never sees half of it. What goes wrong is logged.
  void write(const gateway::Stats::Snapshot& snapshot) const;

 private:
  std::string file_;
};

}  // namespace iwarp::tools
