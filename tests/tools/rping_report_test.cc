// What `iwarp rping` says at its end: pure.
#include "tools/rping_report.h"

#include <gmock/gmock.h>

namespace iwarp::test {
namespace {

using namespace tools::rping;
using namespace std::chrono_literals;

TEST(RoundTrips, HaveLeastMostMeanAndDeviation) {
  RoundTrips t;
  for (const auto took : {20us, 40us, 40us, 40us, 50us, 50us, 70us, 90us}) t.add(took);
  EXPECT_EQ(t.count(), 8U);
  EXPECT_DOUBLE_EQ(t.min(), 20);
  EXPECT_DOUBLE_EQ(t.max(), 90);
  EXPECT_DOUBLE_EQ(t.mean(), 50);
  EXPECT_DOUBLE_EQ(t.deviation(), 20);
  EXPECT_EQ(t.to_string(), "RTT min 20.0 us, avg 50.0 us, max 90.0 us, stddev 20.0 us");
}

TEST(RoundTrips, OfOnePingHaveNoDeviation) {
  RoundTrips t;
  t.add(1500us);
  EXPECT_EQ(t.to_string(), "RTT min 1.50 ms, avg 1.50 ms, max 1.50 ms, stddev 0.0 us");
}

TEST(RpingReport, Durations) {
  EXPECT_EQ(duration_text(0), "0.0 us");
  EXPECT_EQ(duration_text(999.9), "999.9 us");
  EXPECT_EQ(duration_text(1000), "1.00 ms");
  EXPECT_EQ(duration_text(2.5e6), "2.50 s");
}

TEST(RpingReport, SummaryNamesTheCountThatIsMissing) {
  Report r{.role = "client", .peer = "a:1", .pings = 1, .wanted = 1, .size = 64};
  EXPECT_EQ(summary(r), "1 ping of 64 octets");
  r.pings = 0;
  r.wanted = 3;
  EXPECT_EQ(summary(r), "0 of 3 pings of 64 octets");
  r.pings = 7;
  r.wanted = 0;
  EXPECT_EQ(summary(r), "7 pings of 64 octets");
  EXPECT_EQ(summary(Report{.role = "server", .peer = "a:1", .pings = 2}), "2 pings answered");
}

TEST(RpingReport, EndsAreNamedByWhatHappened) {
  stream::Disconnected how{};
  how.reason = make_error(Errc::kPeerClosed);
  EXPECT_EQ(end_text(how, "server", " after 3 of 10 pings"), "the server closed the connection after 3 of 10 pings");
  how.reason = make_error(Errc::kConnectionLost, "reset");
  EXPECT_EQ(end_text(how, "server", " after 1 ping"), "the connection to the server was lost after 1 ping: reset");
  how.reason = make_error(Errc::kCrcMismatch, "wrong");
  EXPECT_EQ(end_text(how, "client"), "the connection to the client ended: wrong");
  how.received.emplace();
  EXPECT_THAT(end_text(how, "server", " after 1 ping"),
              ::testing::StartsWith("the server ended the connection after 1 ping, with Terminate 0/0/0 "));
}

}  // namespace
}  // namespace iwarp::test
