#include "iwarp/gateway/refusals.h"

#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <sstream>

namespace iwarp::gateway {
namespace {

using namespace std::chrono_literals;

class RefusalsTest : public ::testing::Test {
 protected:
  RefusalsTest() {
    auto logger = std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_st>(log_));
    logger->set_pattern("%l %v");
    spdlog::set_default_logger(logger);
  }
  ~RefusalsTest() override { spdlog::set_default_logger(before_); }
  // What was logged since the last call.
  std::string logged() {
    std::string out = log_.str();
    log_.str("");
    return out;
  }

  std::shared_ptr<spdlog::logger> before_ = spdlog::default_logger();
  std::ostringstream log_;
  Stats stats_;
  Refusals refusals_{stats_};
  TimePoint now_{1000s};
};

TEST_F(RefusalsTest, AreToldFiveTimesASecondAndAllCounted) {
  for (int i = 0; i < 1000; ++i) refusals_.add(RefuseReason::kLimit, "refused a", now_ + i * 1ms);
  EXPECT_EQ(logged(),
            "warning refused a\nwarning refused a\nwarning refused a\nwarning refused a\nwarning refused a\n");
  refusals_.add(RefuseReason::kLimit, "refused b", now_ + 1s);
  EXPECT_EQ(logged(), "warning refused b (995 more were refused for such reasons since the last such line)\n");
  refusals_.add(RefuseReason::kLimit, "refused c", now_ + 2s);
  EXPECT_EQ(logged(), "warning refused c\n");
  EXPECT_EQ(stats_.snapshot().refused[static_cast<std::size_t>(RefuseReason::kLimit)], 1002u);
}

TEST_F(RefusalsTest, OfOneReasonDoNotHideAnother) {
  for (int i = 0; i < 10; ++i) refusals_.add(RefuseReason::kNotAllowed, "refused a", now_);
  (void)logged();
  refusals_.add(RefuseReason::kNotAllowed, "refused b", now_);
  refusals_.add(RefuseReason::kBackendUnreachable, "refused c", now_);
  EXPECT_EQ(logged(), "error refused c\n");
}

}  // namespace
}  // namespace iwarp::gateway
