#include "tools/perf/report.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace iwarp::tools::perf
