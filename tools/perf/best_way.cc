#include "tools/perf/best_way.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "tools/perf/statistics.h"

namespace iwarp::tools::perf {
namespace {

constexpr unsigned kSamplesPerRound = 2;
constexpr std::size_t kRemains = 3;  // one of so many

struct Candidate {
  Way way;
  std::vector<double> values;
};

}  // namespace

const std::vector<Way>& all_ways() {
  static const std::vector<Way> ways = [] {
    constexpr std::uint32_t kKi = 1024;
    constexpr std::array kCalls = {64 * kKi, 256 * kKi, 1024 * kKi};
    std::vector<Way> all;
    for (const bool spin : {false, true}) {
      for (const std::uint32_t send : kCalls) {
        for (const std::uint32_t receive : kCalls) all.push_back({send, receive, spin});
      }
    }
    return all;
  }();
  return ways;
}

Way best_way(std::vector<Way> ways, const std::function<double(const Way&)>& sample) {
  std::vector<Candidate> left;
  for (const Way& way : ways) left.push_back({way, {}});
  while (left.size() > 1) {
    for (unsigned n = 0; n < kSamplesPerRound; ++n) {
      for (Candidate& c : left) c.values.push_back(sample(c.way));
    }
    std::stable_sort(left.begin(), left.end(),
                     [](const Candidate& a, const Candidate& b) { return median(a.values) > median(b.values); });
    left.resize((left.size() + 2) / kRemains);
  }
  return left.front().way;
}

}  // namespace iwarp::tools::perf
