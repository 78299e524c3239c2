#include "iwarp/gateway/event_log.h"

#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <optional>
#include <sstream>

namespace iwarp::gateway {
namespace {

using namespace std::chrono_literals;

class EventLogTest : public ::testing::Test {
 protected:
  EventLogTest() {
    auto logger = std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_st>(log_));
    logger->set_pattern("%l %v");
    spdlog::set_default_logger(logger);
  }
  ~EventLogTest() override { spdlog::set_default_logger(before_); }
  // What was logged since the last call.
  std::string logged() {
    std::string out = log_.str();
    log_.str("");
    return out;
  }

  std::shared_ptr<spdlog::logger> before_ = spdlog::default_logger();
  std::ostringstream log_;
  Stats stats_;
  std::optional<EventLog> events_{std::in_place, stats_};
  TimePoint now_{1000s};
};

TEST_F(EventLogTest, TellsOfRefusalsFiveTimesASecondAndCountsAll) {
  for (int i = 0; i < 1000; ++i) events_->refused(RefuseReason::kLimit, "refused a", now_ + i * 1ms);
  EXPECT_EQ(logged(),
            "warning refused a\nwarning refused a\nwarning refused a\nwarning refused a\nwarning refused a\n");
  events_->refused(RefuseReason::kLimit, "refused b", now_ + 1s);
  EXPECT_EQ(logged(), "warning refused b (995 more such lines were left out since the last one)\n");
  events_->refused(RefuseReason::kLimit, "refused c", now_ + 2s);
  EXPECT_EQ(logged(), "warning refused c\n");
  EXPECT_EQ(stats_.snapshot().refused[static_cast<std::size_t>(RefuseReason::kLimit)], 1002u);
}

TEST_F(EventLogTest, RefusalsForOneReasonDoNotHideAnother) {
  for (int i = 0; i < 10; ++i) events_->refused(RefuseReason::kNotAllowed, "refused a", now_);
  (void)logged();
  events_->refused(RefuseReason::kNotAllowed, "refused b", now_);
  events_->refused(RefuseReason::kBackendUnreachable, "refused c", now_);
  EXPECT_EQ(logged(), "error refused c\n");
}

// 13,548 lines in 3 s came of one client.
TEST_F(EventLogTest, EveryKindOfLineHasALimitOfItsOwn) {
  for (std::size_t kind = 0; kind < kLogKinds; ++kind) {
    for (int i = 0; i < 13548; ++i) events_->warn(static_cast<LogKind>(kind), "x", now_ + i * 221us);
    const std::string told = logged();
    const auto lines = std::count(told.begin(), told.end(), '\n');
    const bool connections = kind <= static_cast<std::size_t>(LogKind::kClosed);
    EXPECT_EQ(lines, connections ? 1000 : 15) << kind;
  }
}

TEST_F(EventLogTest, TellsWhatItLeftOutAtTheEnd) {
  for (int i = 0; i < 7; ++i) events_->info(LogKind::kDropped, "dropped", now_);
  for (int i = 0; i < 8; ++i) events_->refused(RefuseReason::kLimit, "refused", now_);
  (void)logged();
  events_.reset();
  EXPECT_EQ(logged(),
            "info 2 more lines \"dropped\" were left out\ninfo 3 more lines \"refused reason=limit\" were left out\n");
}

}  // namespace
}  // namespace iwarp::gateway
