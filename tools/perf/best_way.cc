#include "tools/perf/best_way.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "tools/perf/statistics.h"

namespace iwarp::tools::perf {
namespace {

constexpr unsigned kFirstRound = 3;  // samples of each way; every round takes twice as many as the one before
constexpr std::size_t kRemains = 3;  // one of so many

struct Candidate {
  Way way;
  std::vector<double> values;
};

std::size_t remaining(std::size_t ways) {
  return (ways + kRemains - 1) / kRemains;
}

}  // namespace

std::vector<Way> bulk_ways(bool spin) {
  constexpr std::uint32_t kKi = 1024;
  constexpr std::array kCalls = {64 * kKi, 256 * kKi, 1024 * kKi};
  std::vector<Way> all;
  for (const std::uint32_t send : kCalls) {
    for (const std::uint32_t receive : kCalls) all.push_back({send, receive, spin, true});
  }
  return all;
}

std::vector<Way> frame_ways(std::uint32_t frame, bool spin) {
  constexpr std::uint32_t kReceive = 64 * 1024;
  return {{frame, kReceive, spin, false}, {frame, kReceive, spin, true}};
}

Way best_way(std::vector<Way> ways, const std::function<double(const Way&)>& sample) {
  std::vector<Candidate> left;
  for (const Way& way : ways) left.push_back({way, {}});
  for (unsigned samples = kFirstRound; left.size() > 1; samples *= 2) {
    for (unsigned n = 0; n < samples; ++n) {
      for (Candidate& c : left) c.values.push_back(sample(c.way));
    }
    std::stable_sort(left.begin(), left.end(),
                     [](const Candidate& a, const Candidate& b) { return median(a.values) > median(b.values); });
    left.resize(remaining(left.size()));
  }
  return left.front().way;
}

std::size_t samples_to_find_best(std::size_t ways) {
  std::size_t all = 0;
  for (unsigned samples = kFirstRound; ways > 1; ways = remaining(ways), samples *= 2) all += ways * samples;
  return all;
}

}  // namespace iwarp::tools::perf
