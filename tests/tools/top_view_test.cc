// `iwarp top`: what it makes of a page, and how the table adapts.
#include <gmock/gmock.h>

#include <cmath>

#include "iwarp/gateway/metrics_text.h"
#include "tools/top/document.h"
#include "tools/top/page.h"
#include "tools/top/view.h"

namespace iwarp::tools::top {
namespace {

using namespace std::chrono_literals;
using gateway::RpcProgram;
using ::testing::HasSubstr;
using ::testing::Not;

std::string page_of(gateway::Stats& stats, const std::string& name = "nfs") {
  gateway::ListenerMetrics l{name, "rdma-to-tcp", "0.0.0.0:20049", "127.0.0.1:2049", stats.snapshot()};
  l.stats.credits_granted = 64;
  l.stats.registered_bytes = 3u << 20;
  return gateway::metrics_text({l}, {"1.2.3", 1u << 30});
}

std::string joined(const std::vector<std::string>& lines) {
  std::string out;
  for (const auto& line : lines) out += line + '\n';
  return out;
}

TEST(TopPage, ReadsWhatTheGatewayWrites) {
  gateway::Stats stats;
  gateway::RpcMeter meter(stats.rpc());
  for (int i = 0; i < 3; ++i) meter.called(RpcProgram::kNfs, 100);
  meter.replied(RpcProgram::kNfs, 1000, 80us);
  stats.connection_refused(gateway::RefuseReason::kLimit);
  stats.connection_refused(gateway::RefuseReason::kNotAllowed);
  stats.rdma_bytes(gateway::RdmaOperation::kWrite, gateway::Way::kOut, 12345);
  const std::string name = "a \"b\\c\nd}";
  const auto page = parse_page(page_of(stats, name));
  ASSERT_TRUE(page);
  EXPECT_EQ(page->version, "1.2.3");
  EXPECT_EQ(page->limit_bytes, 1u << 30);
  ASSERT_EQ(page->listeners.size(), 1u);
  const Listener& l = page->listeners[0];
  EXPECT_EQ(l.name, name);
  EXPECT_EQ(l.backend, "127.0.0.1:2049");
  EXPECT_EQ(l.refused, 2);
  EXPECT_EQ(l.credits_granted, 64);
  EXPECT_EQ(l.rdma_bytes.at("write out"), 12345);
  const Program& nfs = l.programs.at("nfs");
  EXPECT_EQ(nfs.calls, 3);
  EXPECT_EQ(nfs.outstanding, 2);
  EXPECT_EQ(nfs.call_bytes, 300);
  EXPECT_EQ(nfs.latency.at(0.0001), 1);
  EXPECT_EQ(nfs.latency.at(0.00005), 0);
  EXPECT_EQ(nfs.latency.rbegin()->first, HUGE_VAL);
}

TEST(TopPage, IsNoneOfAnotherProgram) {
  for (const char* text : {"", "hello\n", "# HELP x y\nx 1\n", "{} 1\n", "a{b=\"c", "a{b=\"c\\", "a{b=\"c\"} \n"})
    EXPECT_FALSE(parse_page(text)) << text;
  // Cut anywhere: no crash.
  gateway::Stats stats;
  const std::string whole = page_of(stats);
  for (std::size_t n = 0; n < 400; ++n) (void)parse_page(std::string_view(whole).substr(0, n));
}

TEST(TopQuantile, InterpolatesWithinABucket) {
  const Histogram before = {{0.001, 10}, {0.01, 10}, {HUGE_VAL, 10}};
  const Histogram now = {{0.001, 10}, {0.01, 20}, {HUGE_VAL, 20}};
  EXPECT_DOUBLE_EQ(*quantile(now, before, 0.5), 0.0055);
  EXPECT_DOUBLE_EQ(*quantile(now, before, 1.0), 0.01);
  EXPECT_DOUBLE_EQ(*quantile(before, {}, 0.5), 0.0005);
  EXPECT_FALSE(quantile(before, before, 0.5));
  EXPECT_FALSE(quantile({}, {}, 0.5));
  EXPECT_TRUE(std::isinf(*quantile({{0.001, 0}, {HUGE_VAL, 2}}, {}, 0.5)));
}

TEST(TopView, WritesShortNumbersAndTimes) {
  const std::vector<std::pair<double, const char*>> numbers = {
      {0, "0"},       {7, "7"},       {0.5, "0.5"},     {12.4, "12"},     {999, "999"},        {1000, "1.0k"},
      {9940, "9.9k"}, {70123, "70k"}, {999499, "999k"}, {999600, "1.0M"}, {1234567890, "1.2G"}};
  for (const auto& [value, text] : numbers) EXPECT_EQ(short_number(value), text);
  const std::vector<std::pair<double, const char*>> times = {{12e-6, "12us"}, {0.9994e-3, "999us"}, {1.5e-3, "1.5ms"},
                                                             {0.25, "250ms"}, {2, "2.0s"},          {HUGE_VAL, ">30s"}};
  for (const auto& [value, text] : times) EXPECT_EQ(short_time(value), text);
}

class TopTable : public ::testing::Test {
 protected:
  TopTable() {
    before = *parse_page(page_of(stats));
    for (int i = 0; i < 200; ++i) meter.called(RpcProgram::kNfs, 100);
    for (int i = 0; i < 199; ++i) meter.replied(RpcProgram::kNfs, 5000, 80us);
    stats.rdma_bytes(gateway::RdmaOperation::kWrite, gateway::Way::kOut, 2'000'000);
    now = *parse_page(page_of(stats));
  }

  gateway::Stats stats;
  gateway::RpcMeter meter{stats.rpc()};
  Page before, now;
};

TEST_F(TopTable, ShowsWhatCameInBetween) {
  const std::string text = joined(table(now, before, 2.0, 100));
  EXPECT_THAT(text, HasSubstr("calls/s 100"));
  EXPECT_THAT(text, HasSubstr("memory 3.0 MiB of 1024.0 MiB"));
  EXPECT_THAT(text, HasSubstr("nfs  rdma-to-tcp  0.0.0.0:20049 -> 127.0.0.1:2049"));
  EXPECT_THAT(text, HasSubstr("credits 0 of 64"));
  EXPECT_THAT(text, HasSubstr("write in 0 out 1.0M"));
  EXPECT_THAT(text, ::testing::ContainsRegex("nfs +100 +100 +1 +75us +[0-9]+us +10k +498k +0"));
  EXPECT_THAT(text, Not(HasSubstr("mount")));  // never called
  EXPECT_THAT(text, Not(HasSubstr("siw")));
  EXPECT_THAT(text, Not(HasSubstr("version")));
}

TEST_F(TopTable, ShowsVersionsWhereThereIsMoreThanVersion1) {
  stats.connection_speaks(gateway::Spoken::kVersion1);
  const auto one = parse_page(page_of(stats));
  ASSERT_TRUE(one);
  EXPECT_THAT(joined(table(*one, now, 1.0, 100)), Not(HasSubstr("version")));
  stats.connection_speaks(gateway::Spoken::kDraft2005);
  const auto page = parse_page(page_of(stats));
  ASSERT_TRUE(page);
  EXPECT_THAT(joined(table(*page, now, 1.0, 100)),
              HasSubstr("connections by version of RPC-over-RDMA:  1: 1  2: 0  2005: 1"));
  EXPECT_EQ(document(*page, now, 1.0)["listeners"][0]["connections_by_version"].dump(), R"({"1":1,"2":0,"2005":1})");
}

TEST_F(TopTable, FitsIntoAnyWidth) {
  for (std::size_t width = 1; width < 120; ++width) {
    for (const std::string& line : table(now, before, 2.0, width))
      EXPECT_LE(line.size(), std::max<std::size_t>(width, 20));
  }
  EXPECT_THAT(joined(table(now, before, 2.0, 60)), HasSubstr("P99"));
  EXPECT_THAT(joined(table(now, before, 2.0, 60)), Not(HasSubstr("FAILED")));
}

// The gateway was started again meanwhile.
TEST_F(TopTable, TakesCountersThatBeganAnew) {
  gateway::Stats anew;
  gateway::RpcMeter m(anew.rpc());
  for (int i = 0; i < 10; ++i) m.called(RpcProgram::kNfs, 1);
  m.replied(RpcProgram::kNfs, 1, 2ms);
  const std::string text = joined(table(*parse_page(page_of(anew)), now, 1.0, 100));
  EXPECT_THAT(text, HasSubstr("calls/s 10"));
  EXPECT_THAT(text, Not(HasSubstr("-1")));
  EXPECT_THAT(text, HasSubstr("ms"));
}

TEST_F(TopTable, WarnsOfTheCrcFaultAndCleansNames) {
  stats.crc_terminate(true);
  const auto page = parse_page(page_of(stats, "x\n\x1b[2J"));
  ASSERT_TRUE(page);
  const std::string text = joined(table(*page, now, 1.0, 100));
  EXPECT_THAT(text, HasSubstr("siw's CRC fault"));
  EXPECT_THAT(text, HasSubstr("x??[2J"));
}

}  // namespace
}  // namespace iwarp::tools::top
