// `iwarp perf idle`: what connections cost that do nothing.
#pragma once

#include <functional>
#include <string>

#include "tools/descriptor_limit.h"
#include "tools/perf/control.h"
#include "tools/perf/spec.h"

namespace iwarp::tools::perf {

// What a process holds, as /proc tells.
struct Holdings {
  std::size_t resident_bytes = 0;
  std::size_t descriptors = 0;
  // Voluntary context switches of all threads but the calling one, which measures and sleeps in between: those of a
  // process that does nothing else stay the same.
  std::uint64_t sleeps = 0;
};
[[nodiscard]] Holdings holdings();

struct IdleReport {
  std::size_t connections = 0;
  DescriptorLimit client_limit, server_limit;
  double client_bytes_each = 0, server_bytes_each = 0;  // resident memory, queue pairs included
  double client_descriptors_each = 0, server_descriptors_each = 0;
  std::uint64_t client_sleeps = 0, server_sleeps = 0;  // in `seconds_quiet`
  double seconds_quiet = 0;
  double first_ms = 0, last_ms = 0;  // time of a connect at the beginning, and with all others open: medians
};

// Opens `count` connections to the server and keeps them. Throws std::runtime_error when a descriptor limit is too low
// (naming it), or the connection fails.
[[nodiscard]] IdleReport measure_idle(Control& control, const std::string& host, std::size_t count,
                                      const std::string& profile,
                                      const std::function<void(const std::string&)>& progress);

}  // namespace iwarp::tools::perf
