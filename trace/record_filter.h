// Which records are wanted. Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "iwarp/trace/record.h"

namespace iwarp::trace {

struct RecordFilter {
  std::vector<std::string> layers;   // empty: all
  std::optional<std::uint32_t> xid;  // only what belongs to RPCs of this xid
  bool errors = false;               // only what went wrong

  // Whether all conditions hold.
  [[nodiscard]] bool wants(const Record& r) const {
    if (errors && !r.error) return false;
    if (xid && r.xid != xid) return false;
    return layers.empty() || std::find(layers.begin(), layers.end(), r.layer) != layers.end();
  }
};

}  // namespace iwarp::trace
