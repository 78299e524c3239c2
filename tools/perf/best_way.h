// How plain TCP moves the most: found by trying, because it depends on the machine, the size, and the hour.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace iwarp::tools::perf {

struct Way {
  std::uint32_t send = 0;     // octets given to one sending call
  std::uint32_t receive = 0;  // octets that one receiving call may take
  bool spin = false;          // the receiver: instead of sleeping
  friend bool operator==(const Way&, const Way&) = default;
};

// All that are tried: calls of 64 KiB, 256 KiB and 1 MiB in every combination.
[[nodiscard]] const std::vector<Way>& all_ways();

// The best of `ways`, which must not be empty. `sample` measures one, the more the better; it is called in rounds, so
// that what disturbs the machine disturbs all of them, and after each round only the best third by median remains.
[[nodiscard]] Way best_way(std::vector<Way> ways, const std::function<double(const Way&)>& sample);

}  // namespace iwarp::tools::perf
