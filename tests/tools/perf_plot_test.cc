#include "tools/perf/plot.h"

#include <gmock/gmock.h>

#include "tests/tools/perf_rows.h"
#include "tools/perf/chart.h"

namespace iwarp::tools::perf {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

const std::vector<std::pair<double, double>> kPairs{{4e9, 6e9}, {5e9, 8e9}};

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

TEST(Plot, OfFewSizesHasTwoBarsForEachRow) {
  const std::string svg =
      plot({row_of(perf::Test::kWriteBw, 65536, kPairs), row_of(perf::Test::kReadBw, 65536, kPairs)}, {}, "here");
  EXPECT_THAT(svg, StartsWith("<svg "));
  EXPECT_THAT(svg, HasSubstr("</svg>\n"));
  EXPECT_THAT(svg, HasSubstr(">here</text>"));
  EXPECT_THAT(svg, HasSubstr("fill=\"#ffffff\"")) << "readable in a dark viewer, too";
  EXPECT_THAT(svg, HasSubstr(">write_bw 64k</text>"));
  EXPECT_EQ(count(svg, "<rect"), 1U + 2 + 2 * 2) << "the ground, the legend, the bars";
}

TEST(Plot, OfManySizesIsASweepOverThem) {
  std::vector<Row> rows;
  for (const std::uint32_t size : {65536U, 2U, 1024U}) rows.push_back(row_of(perf::Test::kWriteBw, size, kPairs));
  const std::string svg = plot(rows, {.gbit = true}, "");
  EXPECT_EQ(count(svg, "<rect"), 1U);
  EXPECT_THAT(svg, HasSubstr(">write_bw: plain TCP</text>"));
  EXPECT_THAT(svg, HasSubstr(">32k</text>"));
  EXPECT_THAT(svg, HasSubstr(">Gbit/s</text>"));
}

TEST(Plot, OfLatencyIsItsDistribution) {
  const std::string svg = plot({row_of(perf::Test::kSendLat, 8, {{4, 3}})}, {}, "");
  EXPECT_THAT(svg, HasSubstr("part of the operations that took no longer"));
  EXPECT_THAT(svg, HasSubstr(">send_lat 8: plain TCP</text>"));
}

TEST(Plot, OfEachKindOfTestIsAPanelOfItsOwn) {
  const std::string svg = plot({row_of(perf::Test::kSendLat, 8, {{4, 3}}), row_of(perf::Test::kWriteBw, 8, kPairs),
                                row_of(perf::Test::kConnectRate, 8, {{1e4, 2e4}})},
                               {}, "");
  for (const char* title : {">Throughput: ", ">Operations: ", ">Latency, one way: "})
    EXPECT_THAT(svg, HasSubstr(title));
}

TEST(Plot, LeavesOutWhatHasNoPair) {
  const std::string svg = plot({row_of(perf::Test::kWriteBw, 8, {})}, {}, "a < b & c");
  EXPECT_THAT(svg, Not(HasSubstr("write_bw")));
  EXPECT_THAT(svg, HasSubstr(">a &lt; b &amp; c</text>"));
}

TEST(Axis, LinearStartsAtZeroAndEndsAtARoundNumber) {
  const Axis axis = linear_axis("", 8.4);
  EXPECT_EQ(axis.place(0), 0);
  EXPECT_GE(axis.high, 8.4);
  EXPECT_LE(axis.high, 10);
  EXPECT_EQ(axis.ticks.front().second, "0");
  EXPECT_EQ(axis.place(100), 1) << "what lies beyond stays at the end";
}

TEST(Axis, LogarithmicGoesFromARoundNumberToAnother) {
  const Axis axis = logarithmic_axis("", 2.3, 48);
  std::vector<std::string> texts;
  for (const auto& [value, text] : axis.ticks) texts.push_back(text);
  EXPECT_THAT(texts, ::testing::ElementsAre("2", "5", "10", "20", "50"));
  EXPECT_NEAR(axis.place(10), 0.5, 1e-9);
}

TEST(Axis, OfSizesHasPowersOfTwo) {
  std::vector<std::string> texts;
  for (const auto& [value, text] : size_axis(2, 8 << 20).ticks) texts.push_back(text);
  EXPECT_THAT(texts,
              ::testing::ElementsAre("2", "8", "32", "128", "512", "2k", "8k", "32k", "128k", "512k", "2m", "8m"));
}

}  // namespace
}  // namespace iwarp::tools::perf
