#include "tools/perf/table.h"

#include <gmock/gmock.h>

#include <sstream>

#include "tests/tools/perf_rows.h"

namespace iwarp::tools::perf {
namespace {

struct Beware {
  perf::Test test;
  const char* congestion_control;
  bool warned;
};
class Warning : public ::testing::TestWithParam<Beware> {};

TEST_P(Warning, IsOfThroughputThatWasPaced) {
  Row other;
  other.spec.test = perf::Test::kTcpLat;
  other.congestion_control = GetParam().congestion_control;
  Row row = other;
  row.spec.test = GetParam().test;
  EXPECT_EQ(!warning({other, row}).empty(), GetParam().warned);
}

INSTANTIATE_TEST_SUITE_P(
    Rows, Warning,
    ::testing::Values(Beware{perf::Test::kReadBw, "bbr", true}, Beware{perf::Test::kTcpBw, "bbr", true},
                      Beware{perf::Test::kWriteBw, "bbr2", true}, Beware{perf::Test::kWriteBw, "cubic", false},
                      Beware{perf::Test::kWriteBw, "unknown", false}, Beware{perf::Test::kSendLat, "bbr", false},
                      Beware{perf::Test::kSendRate, "bbr", false}));

using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

const Row kSmall = row_of(perf::Test::kWriteBw, 2, {{1.5e6, 3e6}});
const Row kLarge = row_of(perf::Test::kReadBw, 8388608, {{12.5e9, 25e9}, {12.5e9, 25e9}});

TEST(Table, HasTheColumnsOfPerftest) {
  const auto bulk = lines_of(Table({}).add(kLarge));
  ASSERT_EQ(bulk.size(), 2U);
  EXPECT_THAT(bulk[0], ::testing::ContainsRegex("octets +iterations +BW peak.GB/s. +BW average.GB/s. +MsgRate.Mpps."));
  EXPECT_THAT(bulk[1], ::testing::ContainsRegex("read_bw +8388608 +2000 +12.50 +12.50 +0.002000 +25.00 +0.50 "));
  const auto latency = lines_of(Table({}).add(row_of(perf::Test::kSendLat, 8, {{4, 2}})));
  ASSERT_EQ(latency.size(), 2U);
  EXPECT_THAT(latency[0], ::testing::ContainsRegex("t_min.us. +t_typical +p50 +p99 +p99.9 +t_max +TCP p50"));
  EXPECT_THAT(latency[1], ::testing::ContainsRegex("send_lat +8 +1000 +2.00 +4.[0-9]+ +4.00 +40.00 +40.00 +40.00"));
}

TEST(Table, SmallFiguresCanBeSeen) {
  const Row row = row_of(perf::Test::kWriteBw, 2, {{1.5e6, 1e9}});
  EXPECT_THAT(Table({}).add(row), ::testing::ContainsRegex("write_bw +2 +[0-9]+ +0.0015 +0.0015 .* 1.00 +0.0015 "));
  EXPECT_EQ(value_text(Unit::kOctetsPerSecond, 2.75e6, {}), "0.0027 GB/s");
}

// A row is printed before the next one is known.
TEST(Table, ColumnsStandBelowEachOtherWhateverIsInThem) {
  Table table({});
  const auto first = lines_of(table.add(kSmall)), second = lines_of(table.add(kLarge));
  ASSERT_EQ(first.size(), 2U);
  ASSERT_EQ(second.size(), 1U) << "the heading once";
  const std::size_t how = first[0].find("how");
  for (const std::string& line : {first[1], second[0]}) EXPECT_EQ(line.substr(how, 3), "crc") << line;
}

TEST(Table, AnotherKindOfTestHasAnotherHeading) {
  Table table({});
  (void)table.add(kSmall);
  const auto lines = lines_of(table.add(row_of(perf::Test::kConnectRate, 8, {{5e3, 1e4}})));
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[0], "");
  EXPECT_THAT(lines[1], HasSubstr("TCP[k/s]"));
  EXPECT_THAT(lines[2], ::testing::ContainsRegex("connect_rate +- +1000 +5.0 +5.0 +10.0 +0.50 "));
}

TEST(Table, GbitOnRequest) {
  const std::string text = Table({.gbit = true}).add(kLarge);
  EXPECT_THAT(text, HasSubstr("BW average[Gbit/s]"));
  EXPECT_THAT(text, ::testing::ContainsRegex(" 100.00 +100.00 .* 200.00 "));
  EXPECT_EQ(value_text(Unit::kOctetsPerSecond, 1e9, {.gbit = true}), "8.00 Gbit/s");
}

TEST(Table, MarksWhatWasInterrupted) {
  Row row = kLarge;
  row.planned = 7;
  EXPECT_THAT(Table({}).add(row), HasSubstr("; interrupted: 2 of 7 pairs\n"));
  EXPECT_THAT(Table({}).add(kLarge), Not(HasSubstr("interrupted")));
  EXPECT_THAT(markdown_line(row, {}), HasSubstr("crc; interrupted |"));
}

TEST(Table, PlainTcpAloneHasNoRatio) {
  EXPECT_THAT(Table({}).add(row_of(perf::Test::kTcpBw, 65536, {{0, 3e9}})),
              ::testing::ContainsRegex("tcp_bw +65536 +1000 +3.00 +3.00 +0.002000 +- +- "));
}

// bench/plot reads them.
TEST(Table, MarkdownHasTheColumnsOfThePage) {
  EXPECT_THAT(markdown_heading(), HasSubstr("| test | size | how | iwarp | plain TCP | ratio "));
  EXPECT_EQ(markdown_line(kLarge, {}),
            "| read_bw | 8 MiB | crc | 12.50 GB/s | 25.00 GB/s | 0.50 (0.50-0.50) | 0.00 + 0.00 CPU s/GB | "
            "0.00 + 0.00 CPU s/GB; calls of 64 KiB and 64 KiB, sleeping |\n");
}

TEST(Notes, SayThatTcpCouldBeFasterUnlessItsBestCallsWereSought) {
  EXPECT_THAT(notes({kSmall}, false), HasSubstr("TCP in 64 KiB calls; tuned TCP is faster: --baseline best\n"));
  EXPECT_THAT(notes({kSmall}, true), Not(HasSubstr("--baseline")));
  const Row latency = row_of(perf::Test::kSendLat, 8, {{4, 2}});
  EXPECT_THAT(notes({latency}, false), Not(HasSubstr("--baseline"))) << "there is one way only";
  EXPECT_THAT(notes({latency}, false), HasSubstr("TCP congestion control here: cubic\n"));
}

TEST(Brief, IsTheValueAndTheRatio) {
  EXPECT_EQ(brief(kLarge, {}), "12.50 GB/s, 0.50 of plain TCP");
  EXPECT_EQ(brief(row_of(perf::Test::kTcpLat, 8, {{0, 3.25}}), {}), "3.2 us");
}

}  // namespace
}  // namespace iwarp::tools::perf
