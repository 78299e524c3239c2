#include "tools/perf/spec.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tools/perf/rdma_side.h"
#include "tools/perf/server.h"

namespace iwarp::tools::perf {
namespace {

Spec spec_of(Test test, std::uint32_t size) {
  Spec s;
  s.test = test;
  s.size = size;
  return s;
}

std::uint32_t frame(std::uint32_t size, const std::string& fpdu = "max") {
  Spec s = spec_of(Test::kSendRate, size);
  s.fpdu = fpdu;
  const Spec base = baseline_spec(s);
  EXPECT_EQ(base.test, Test::kTcpRate);
  EXPECT_EQ(base.call, base.size) << "a call for each frame";
  return base.size;
}

// 2 of length, 18 of header, padding to four, 4 of CRC.
TEST(PerfSpec, BaselineOfSendRateHasOurFraming) {
  EXPECT_EQ(frame(8), 32U);
  EXPECT_EQ(frame(1), 32U) << "every message has room for a note";
  EXPECT_EQ(frame(9), 36U);
  EXPECT_EQ(frame(64), 88U);
  EXPECT_EQ(frame(64748), 64748U + 24) << "the longest that fits one FPDU";
  EXPECT_EQ(frame(64749), 64748U + 24 + 28) << "a second FPDU, with one octet and three of pad";
  EXPECT_EQ(frame(32768, "16k"), 32768U + 3 * 24) << "16384 - 24 octets fit into an FPDU";
}

TEST(PerfSpec, RefusesProfilesThatThereAreNot) {
  nlohmann::json j = spec_of(perf::Test::kSendRate, 8);
  EXPECT_EQ(j.get<Spec>().profile, "generic");
  j["profile"] = "linux-cxgb4";
  EXPECT_FALSE(policy_of(j.get<Spec>()).rtr_write);
  EXPECT_FALSE(stream_of(j.get<Spec>()).early_wake);
  j["profile"] = "linux-swi";
  EXPECT_THROW((void)j.get<Spec>(), std::invalid_argument);
}

TEST(PerfSpec, MarkersAreAskedForWhenWished) {
  Spec s = spec_of(perf::Test::kWriteBw, 8);
  EXPECT_EQ(policy_of(s).markers, mpa::Policy{}.markers);
  s.markers = true;
  EXPECT_EQ(policy_of(nlohmann::json(s).get<Spec>()).markers, mpa::Policy::Markers::kAsk);
}

TEST(PerfSpec, RawTestsAreTheirOwnBaseline) {
  for (const perf::Test test : all_tests()) {
    if (!is_raw(test)) continue;
    const Spec base = baseline_spec(spec_of(test, 32));
    EXPECT_EQ(base.test, test);
    EXPECT_EQ(base.size, 32U) << name(test);
  }
}

TEST(PerfSpec, BaselineOfReadsFlowsTheirWay) {
  for (const perf::Test test : all_tests())
    EXPECT_EQ(baseline_spec(spec_of(test, 8)).fetch, test == perf::Test::kReadBw) << name(test);
}

TEST(PerfSpec, RegionsGrantWhatTheTestNeeds) {
  using ddp::Access;
  Spec read = spec_of(perf::Test::kReadBw, 8);
  EXPECT_EQ(region_access(read), Access::kLocalWrite | Access::kRemoteRead | Access::kStableSource);
  read.stable = false;
  EXPECT_EQ(region_access(read), Access::kLocalWrite | Access::kRemoteRead);
  EXPECT_EQ(region_access(spec_of(perf::Test::kWriteBw, 8)), Access::kLocalWrite | Access::kRemoteWrite);
  EXPECT_EQ(region_access(spec_of(perf::Test::kSendBw, 8)), Access::kLocalWrite);
}

TEST(PerfSpec, BaselineOfTheLargestSizeIsAllowed) {
  for (const perf::Test test : all_tests()) {
    Spec s = spec_of(test, 16U << 20);
    s.list = s.depth = 1;
    EXPECT_NO_THROW((void)nlohmann::json(baseline_spec(s)).get<Spec>()) << name(test);
    s.size += is_raw(test) ? 2U << 20 : 1;
    EXPECT_THROW((void)nlohmann::json(s).get<Spec>(), std::invalid_argument) << name(test);
  }
}

TEST(PerfSpec, EachTestCanSweepAllSizes) {
  EXPECT_EQ(all_sizes().front(), 2U);
  EXPECT_EQ(all_sizes().back(), 8U << 20);
  EXPECT_EQ(all_sizes().size(), 23U);
  for (const perf::Test test : all_tests()) {
    for (const std::uint32_t size : all_sizes()) {
      Spec s = spec_of(test, size);
      s.depth = default_depth(test, size);
      s.list = std::min(64U, s.depth);
      EXPECT_NO_THROW((void)nlohmann::json(baseline_spec(s)).get<Spec>()) << name(test) << ' ' << size;
      EXPECT_NO_THROW((void)nlohmann::json(s).get<Spec>()) << name(test) << ' ' << size;
    }
  }
}

TEST(PerfSpec, CongestionControlsHaveShortPlainNames) {
  for (const char* good : {"", "cubic", "highspeed", "a-b_9", "fifteen-letters"}) {
    Spec s;
    s.congestion = good;
    EXPECT_EQ(nlohmann::json(s).get<Spec>().congestion, good);
  }
  for (const char* bad : {"sixteen-letters_", "a/b", "a b", "Cubic", "a\n"}) {
    Spec s;
    s.congestion = bad;
    EXPECT_THROW((void)nlohmann::json(s).get<Spec>(), std::invalid_argument) << bad;
  }
}

TEST(PerfSpec, SilenceIsAllowedForAsLongAsTheSampleTakes) {
  using namespace std::chrono_literals;
  Spec s;
  s.milliseconds = 1000;
  const auto least = longest_silence(s);
  EXPECT_GT(least, 1s);
  EXPECT_LE(least, 15min);
  s.milliseconds += 3'000'000;
  EXPECT_EQ(longest_silence(s) - least, 3'000s);
  s.milliseconds = 4'000'000;
  EXPECT_THROW((void)nlohmann::json(s).get<Spec>(), std::invalid_argument);
}

}  // namespace
}  // namespace iwarp::tools::perf
