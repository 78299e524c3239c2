#include "tools/perf/row.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/tools/perf_rows.h"

namespace iwarp::tools::perf {
namespace {

TEST(PerfRow, PeakIsTheBestSampleAndAverageTheMean) {
  const Row row = row_of(perf::Test::kWriteBw, 65536, {{1e9, 2e9}, {3e9, 2e9}, {8e9, 4e9}});
  EXPECT_EQ(row.iwarp.most, 8e9);
  EXPECT_EQ(row.iwarp.least, 1e9);
  EXPECT_EQ(row.iwarp.average, 4e9);
  EXPECT_EQ(row.iwarp.median, 3e9);
  EXPECT_EQ(row.iwarp.operations, 3000U);
  EXPECT_EQ(row.iwarp.operations_per_second, 2000);
}

TEST(PerfRow, RatioIsThatOfThePairs) {
  const Row row = row_of(perf::Test::kWriteBw, 65536, {{1e9, 2e9}, {3e9, 2e9}, {4e9, 4e9}});
  EXPECT_EQ(row.ratio, 1);
  EXPECT_EQ(row.lowest, 0.5);
  EXPECT_EQ(row.highest, 1.5);
}

TEST(PerfRow, BestWayOfPlainTcpCounts) {
  Row row = row_of(perf::Test::kWriteBw, 65536, {{1e9, 2e9}, {1e9, 2e9}});
  Rival faster = row.rivals[0];
  faster.spec.call = 1048576;
  for (Measured& m : faster.samples) m.value = 4e9;
  row.rivals.push_back(faster);
  conclude(row);
  EXPECT_EQ(row.baseline().call, 1048576U);
  EXPECT_EQ(row.tcp.median, 4e9);
  EXPECT_EQ(row.ratio, 0.25);
}

// One side of the pair under way had its sample.
TEST(PerfRow, WhatWasInterruptedHasItsCompletePairs) {
  Row row = row_of(perf::Test::kWriteBw, 65536, {{1e9, 2e9}, {1e9, 2e9}, {9e9, 9e9}});
  row.pairs = 2;
  row.rivals[0].samples.pop_back();
  conclude(row);
  EXPECT_FALSE(row.complete());
  EXPECT_EQ(row.iwarp.most, 1e9);
  EXPECT_EQ(row.iwarp.operations, 2000U);
  const nlohmann::ordered_json j = row;
  EXPECT_FALSE(j.at("complete").get<bool>());
  EXPECT_EQ(j.at("pairs"), 2);
  EXPECT_EQ(j.at("iwarp").at("samples").size(), 2U);
}

TEST(PerfRow, JsonOfLatencyHasTheDistribution) {
  const nlohmann::ordered_json j = row_of(perf::Test::kSendLat, 8, {{4, 3}, {4, 3}});
  EXPECT_EQ(j.at("unit"), "us");
  for (const char* figure : {"t_min", "t_typical", "p50", "p99", "p999", "t_max"})
    EXPECT_GT(j.at("iwarp").at(figure), 0) << figure;
  EXPECT_EQ(j.at("tcp").at("p50"), 3);
  EXPECT_EQ(j.at("iwarp").at("cdf").size(), kQuantiles);
  EXPECT_EQ(j.at("iwarp").at("cdf").front().at(1), 2);
}

TEST(PerfRow, JsonOfPlainTcpHasNoRatio) {
  const nlohmann::ordered_json j = row_of(perf::Test::kTcpBw, 65536, {{0, 3e9}});
  EXPECT_EQ(j.at("tcp").at("value"), 3e9);
  EXPECT_FALSE(j.contains("iwarp"));
  EXPECT_FALSE(j.contains("ratio"));
}

}  // namespace
}  // namespace iwarp::tools::perf
