#include "tools/perf/latency.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace iwarp::tools::perf {
namespace {

TEST(Latency, HasTheFiguresOfPerftest) {
  std::vector<float> times;
  for (int i = 1000; i >= 1; --i) times.push_back(static_cast<float>(i));
  const Latency l = latency_of(times);
  EXPECT_EQ(l.least, 1);
  EXPECT_EQ(l.p50, 500);
  EXPECT_EQ(l.p99, 990);
  EXPECT_EQ(l.p999, 999);
  EXPECT_EQ(l.most, 1000);
}

// Most operations take about 4 us; the median lies elsewhere.
TEST(Latency, TypicalIsWhereMostAre) {
  std::vector<float> times(40, 4.02F);
  for (int i = 0; i < 60; ++i) times.push_back(6 + static_cast<float>(i));
  const Latency l = latency_of(times);
  EXPECT_GT(l.p50, 10);
  EXPECT_NEAR(l.typical, 4, l.p50 * 0.05);
}

TEST(Latency, OfOneOperation) {
  std::vector<float> one{7};
  const Latency l = latency_of(one);
  for (const double figure : {l.least, l.typical, l.p50, l.p99, l.p999, l.most}) EXPECT_EQ(figure, 7);
}

TEST(Latency, QuantilesAscendFromTheLeastToTheMost) {
  std::vector<float> times;
  for (int i = 0; i < 5000; ++i) times.push_back(static_cast<float>((i * 7919) % 5003));
  const Latency l = latency_of(times);
  EXPECT_TRUE(std::is_sorted(l.quantiles.begin(), l.quantiles.end()));
  EXPECT_EQ(l.quantiles.front(), l.least);
  EXPECT_EQ(l.quantiles.back(), l.most);
  EXPECT_EQ(quantile_fractions().front(), 0);
  EXPECT_EQ(quantile_fractions().back(), 1);
  EXPECT_TRUE(std::is_sorted(quantile_fractions().begin(), quantile_fractions().end()));
}

TEST(Latency, OneDisturbedSampleMovesTheExtremesOnly) {
  std::vector<Latency> samples(3);
  for (Latency& l : samples) l = {.least = 2, .typical = 3, .p50 = 3, .p99 = 5, .p999 = 6, .most = 9};
  samples[1] = {.least = 1, .typical = 80, .p50 = 90, .p99 = 95, .p999 = 99, .most = 100};
  const Latency all = joined(samples);
  EXPECT_EQ(all.least, 1);
  EXPECT_EQ(all.typical, 3);
  EXPECT_EQ(all.p50, 3);
  EXPECT_EQ(all.p99, 5);
  EXPECT_EQ(all.p999, 6);
  EXPECT_EQ(all.most, 100);
}

}  // namespace
}  // namespace iwarp::tools::perf
