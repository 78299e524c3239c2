// With which calls plain TCP does best: found by trying, because it depends on the machine, the size, and the hour.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace iwarp::tools::perf {

struct Way {
  std::uint32_t send = 0;     // octets given to one sending call
  std::uint32_t receive = 0;  // octets that one receiving call may take
  bool spin = false;          // the receiver: instead of sleeping
  bool nodelay = true;        // the sender: without Nagle's algorithm, which sends small frames together
  friend bool operator==(const Way&, const Way&) = default;
};

// What is tried for throughput: calls of 64 KiB, 256 KiB and 1 MiB in every combination.
[[nodiscard]] std::vector<Way> bulk_ways(bool spin);
// What is tried for frames of so many octets, a sending call for each: with Nagle's algorithm and without.
[[nodiscard]] std::vector<Way> frame_ways(std::uint32_t frame, bool spin);

// The best of `ways`, which must not be empty. `sample` measures one, the more the better; it is called in rounds, so
// that what disturbs the machine disturbs all of them. After each round only the best third by median remains, and is
// measured twice as often in the next: to take a way that is not the best would flatter iwarp.
[[nodiscard]] Way best_way(std::vector<Way> ways, const std::function<double(const Way&)>& sample);
// How often it calls `sample` for so many ways.
[[nodiscard]] std::size_t samples_to_find_best(std::size_t ways);

}  // namespace iwarp::tools::perf
