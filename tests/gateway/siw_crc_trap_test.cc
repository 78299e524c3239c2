#include "iwarp/gateway/siw_crc_trap.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace iwarp::gateway {
namespace {

using namespace std::chrono_literals;
using Verdict = SiwCrcTrap::Verdict;
using boost::asio::ip::make_address;

const TimePoint kStart{1000s};

TEST(SiwCrcTrap, RecognisesWhoDoesItAgainAndAgain) {
  SiwCrcTrap trap;
  const auto host = make_address("192.0.2.1");
  EXPECT_EQ(trap.ended(host, kStart), Verdict::kSingle);
  EXPECT_EQ(trap.ended(host, kStart + 1s), Verdict::kSingle);
  EXPECT_EQ(trap.ended(host, kStart + 2s), Verdict::kTell);
  EXPECT_EQ(trap.ended(host, kStart + 3s), Verdict::kRecognised);
  EXPECT_EQ(trap.ended(host, kStart + 29min), Verdict::kSingle);  // the others are too old
}

TEST(SiwCrcTrap, TellsAgainAfterAWhile) {
  SiwCrcTrap trap;
  const auto host = make_address("fd00::1");
  std::vector<TimePoint> told;
  for (TimePoint now = kStart; now < kStart + 90min; now += 1min) {
    if (trap.ended(host, now) == Verdict::kTell) told.push_back(now);
  }
  EXPECT_EQ(told, (std::vector<TimePoint>{kStart + 2min, kStart + 32min, kStart + 62min}));
}

TEST(SiwCrcTrap, AnEndInAWhileIsNoPattern) {
  SiwCrcTrap trap;
  for (int i = 0; i < 50; ++i)
    EXPECT_EQ(trap.ended(make_address("192.0.2.1"), kStart + i * (SiwCrcTrap::kWithin / 2 + 1s)), Verdict::kSingle);
}

// The clock begins with the machine: ends that have not been are not of its first moment.
TEST(SiwCrcTrap, TwoEndsSoonAfterBootAreNoPattern) {
  SiwCrcTrap trap;
  const auto host = make_address("192.0.2.1");
  EXPECT_EQ(trap.ended(host, TimePoint{1s}), Verdict::kSingle);
  EXPECT_EQ(trap.ended(host, TimePoint{2s}), Verdict::kSingle);
  EXPECT_EQ(trap.ended(host, TimePoint{3s}), Verdict::kTell);
}

TEST(SiwCrcTrap, TellsHostsApart) {
  SiwCrcTrap trap;
  for (int i = 0; i < 2; ++i) {
    for (const char* host : {"192.0.2.1", "192.0.2.2"})
      EXPECT_EQ(trap.ended(make_address(host), kStart + 1s * i), Verdict::kSingle);
  }
  EXPECT_EQ(trap.ended(make_address("192.0.2.2"), kStart + 3s), Verdict::kTell);
}

TEST(SiwCrcTrap, ForgetsTheAddressThatWasQuietForLongest) {
  SiwCrcTrap trap;
  const auto host = [](unsigned n) { return boost::asio::ip::address(boost::asio::ip::address_v4(n)); };
  const auto known = host(1), forgotten = host(2);
  (void)trap.ended(forgotten, kStart);
  (void)trap.ended(forgotten, kStart);
  for (unsigned i = 0; i < 3 * SiwCrcTrap::kAddresses; ++i) {
    (void)trap.ended(known, kStart + 1ms * i);
    (void)trap.ended(host(100 + i), kStart + 1ms * i);
  }
  EXPECT_EQ(trap.size(), SiwCrcTrap::kAddresses);
  EXPECT_EQ(trap.ended(known, kStart + 10s), Verdict::kRecognised);
  EXPECT_EQ(trap.ended(forgotten, kStart + 10s), Verdict::kSingle);
}

TEST(SiwCrcTrap, NamesCauseAndCure) {
  const std::string text = explain_siw_crc_trap(make_address("192.0.2.7"));
  for (const char* part : {"192.0.2.7", "siw", "Terminate 2/0/2", "scripts/build-siw", "--crc prefer-off"})
    EXPECT_THAT(text, ::testing::HasSubstr(part));
}

}  // namespace
}  // namespace iwarp::gateway
