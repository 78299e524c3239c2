#include "tools/perf/best_way.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <tuple>

namespace iwarp::tools::perf {
namespace {

std::tuple<std::uint32_t, std::uint32_t, bool> key(const Way& way) {
  return {way.send, way.receive, way.spin};
}

TEST(BestWay, TriesShortAndLongCallsSleepingAndSpinning) {
  std::set<std::tuple<std::uint32_t, std::uint32_t, bool>> seen;
  for (const bool spin : {false, true}) {
    for (const Way& way : bulk_ways(spin)) EXPECT_TRUE(seen.insert(key(way)).second);
    for (const std::uint32_t send : {65536U, 262144U, 1048576U}) {
      for (const std::uint32_t receive : {65536U, 262144U, 1048576U}) EXPECT_TRUE(seen.contains({send, receive, spin}));
    }
  }
}

TEST(BestWay, TriesFramesWithAndWithoutNagleSleepingAndSpinning) {
  std::set<std::pair<bool, bool>> seen;
  for (const bool spin : {false, true}) {
    for (const Way& way : frame_ways(36, spin)) {
      EXPECT_EQ(way.send, 36U) << "a call for each";
      seen.emplace(way.nodelay, way.spin);
    }
  }
  EXPECT_EQ(seen.size(), 4U);
}

TEST(BestWay, KnowsHowManySamplesItTakes) {
  for (const std::size_t n : {1U, 2U, 4U, 9U, 18U}) {
    std::size_t samples = 0;
    (void)best_way(std::vector<Way>(n), [&](const Way&) { return static_cast<double>(++samples); });
    EXPECT_EQ(samples_to_find_best(n), samples);
  }
}

TEST(BestWay, FindsEachOne) {
  for (const Way& best : bulk_ways(true)) {
    EXPECT_EQ(best_way(bulk_ways(true), [&](const Way& way) { return way == best ? 2.0 : 1.0; }), best);
  }
  EXPECT_EQ(best_way({bulk_ways(true)[3]}, [](const Way&) { return 0.0; }), bulk_ways(true)[3]);
}

// One sample that something disturbed decides nothing, be it the best one's or another's.
TEST(BestWay, OneOutlierInARoundDecidesNothing) {
  const Way best = bulk_ways(true)[7];
  std::map<std::tuple<std::uint32_t, std::uint32_t, bool>, unsigned> samples;
  const auto sample = [&](const Way& way) {
    const unsigned n = ++samples[key(way)];
    if (way == best) return 2.0;
    return n == 1 && way == bulk_ways(true)[1] ? 2.5 : 1.0;
  };
  EXPECT_EQ(best_way(bulk_ways(true), sample), best);
}

// Whoever is left is measured again, in turn with the others.
TEST(BestWay, MeasuresTheBetterOnesMoreOften) {
  std::map<std::uint32_t, unsigned> samples;
  std::vector<Way> ways;
  for (std::uint32_t i = 1; i <= 9; ++i) ways.push_back({i, 1, false});
  EXPECT_EQ(best_way(ways, [&](const Way& way) { return ++samples[way.send], way.send; }), ways[8]);
  EXPECT_EQ(samples[1], 3U);
  EXPECT_EQ(samples[7], 9U);
  EXPECT_EQ(samples[9], 9U);
}

}  // namespace
}  // namespace iwarp::tools::perf
