#include "iwarp/gateway/port_memory.h"

#include <gtest/gtest.h>

#include <array>

namespace iwarp::gateway {
namespace {

using namespace std::chrono_literals;
using boost::asio::ip::make_address;

const auto kClient = make_address("192.168.1.2");
const auto kOther = make_address("192.168.1.3");
constexpr TimePoint kNow{};

TEST(PortMemory, GivesAPortBackOnce) {
  PortMemory m({});
  EXPECT_FALSE(m.take(kClient, kNow));
  m.remember(kClient, 700, true, kNow);
  EXPECT_FALSE(m.take(kOther, kNow));
  EXPECT_EQ(m.take(kClient, kNow), 700);
  EXPECT_FALSE(m.take(kClient, kNow)) << "two connections cannot have one port";
  EXPECT_EQ(m.addresses(), 0U);
}

TEST(PortMemory, PutsLostCallsFirstInTheOrderOfTheirLoss) {
  PortMemory m({});
  m.remember(kClient, 1, false, kNow);  // unmounted
  m.remember(kClient, 2, true, kNow);
  m.remember(kClient, 3, false, kNow);
  m.remember(kClient, 4, true, kNow);
  for (const int port : {2, 4, 3, 1}) EXPECT_EQ(m.take(kClient, kNow), port);
  EXPECT_FALSE(m.take(kClient, kNow));
}

TEST(PortMemory, KeepsAPortOnceWithItsLatestState) {
  PortMemory m({});
  m.remember(kClient, 1, true, kNow);
  m.remember(kClient, 2, true, kNow);
  m.remember(kClient, 1, false, kNow);
  EXPECT_EQ(m.take(kClient, kNow), 2);
  EXPECT_EQ(m.take(kClient, kNow), 1);
  EXPECT_FALSE(m.take(kClient, kNow));
}

TEST(PortMemory, ForgetsWhatServersForgot) {
  PortMemory m({.expiry = 10s});
  m.remember(kClient, 1, true, kNow);
  m.remember(kClient, 2, false, kNow + 4s);
  m.remember(kClient, 3, true, kNow + 5s);
  EXPECT_EQ(m.take(kClient, kNow + 10s), 3) << "port 1 expired at 10 s sharp";
  EXPECT_EQ(m.take(kClient, kNow + 13s), 2);
  m.remember(kClient, 4, true, kNow + 13s);
  EXPECT_FALSE(m.take(kClient, kNow + 30s));
  EXPECT_EQ(m.addresses(), 0U);
}

TEST(PortMemory, BoundsThePortsOfAClient) {
  PortMemory m({.max_ports_per_address = 2});
  m.remember(kClient, 1, true, kNow);
  m.remember(kClient, 2, false, kNow);
  m.remember(kClient, 3, false, kNow);  // drives out 2, which would have come last
  EXPECT_EQ(m.take(kClient, kNow), 1);
  EXPECT_EQ(m.take(kClient, kNow), 3);
  EXPECT_FALSE(m.take(kClient, kNow));
}

TEST(PortMemory, ForgetsTheClientLongestUntouched) {
  PortMemory m({.max_addresses = 2});
  const auto third = make_address("fd00::3");
  m.remember(kClient, 1, true, kNow);
  m.remember(kOther, 2, true, kNow);
  m.remember(kClient, 3, true, kNow);
  m.remember(third, 4, true, kNow);
  EXPECT_EQ(m.addresses(), 2U);
  EXPECT_FALSE(m.take(kOther, kNow));
  EXPECT_EQ(m.take(third, kNow), 4);
  EXPECT_EQ(m.take(kClient, kNow), 1);
}

TEST(PortMemory, TakesMappedAddressesAsTheIpv4Address) {
  PortMemory m({});
  m.remember(make_address("::ffff:192.168.1.2"), 1, true, kNow);
  EXPECT_EQ(m.take(kClient, kNow), 1);
}

TEST(PortMemory, IgnoresPortZeroAndBoundsOfZero) {
  PortMemory m({});
  m.remember(kClient, 0, true, kNow);
  EXPECT_EQ(m.addresses(), 0U);
  PortMemory no_addresses({.max_addresses = 0});
  no_addresses.remember(kClient, 1, true, kNow);
  EXPECT_FALSE(no_addresses.take(kClient, kNow));
  PortMemory no_ports({.max_ports_per_address = 0});
  no_ports.remember(kClient, 1, true, kNow);
  EXPECT_FALSE(no_ports.take(kClient, kNow));
}

TEST(PortMemory, TellsWhichReservedPortsItRemembers) {
  PortMemory m({.expiry = 10s});
  for (const std::uint16_t port : std::initializer_list<std::uint16_t>{511, 512, 700, 1023, 1024})
    m.remember(kClient, port, false, kNow);
  const ReservedPortSet set = m.reserved(kNow);
  EXPECT_EQ(set.count(), 3u);
  EXPECT_TRUE(set.test(0));
  EXPECT_TRUE(set.test(700 - 512));
  EXPECT_TRUE(set.test(511));
  EXPECT_TRUE(m.reserved(kNow + 10s).none());
}

// The next two see what a process hands over to the one that comes after it.
TEST(PortMemory, RestoresWhatAnotherHadInItsOrder) {
  PortMemory before({});
  before.remember(kClient, 700, false, kNow);
  before.remember(kClient, 701, true, kNow);
  before.remember(kOther, 702, false, kNow);
  before.remember(kClient, 703, true, kNow);
  PortMemory after({});
  for (const auto& entry : before.entries(kNow)) after.restore(entry, kNow);
  EXPECT_EQ(after.entries(kNow), before.entries(kNow));
  for (const int port : {701, 703, 700}) EXPECT_EQ(after.take(kClient, kNow), port);
}

// Whoever is in use again is told of once, as lost with its Calls.
TEST(PortMemory, HandsOverAPortInUseOnce) {
  const auto m = std::make_shared<PortMemory>(PortMemoryOptions{.expiry = 10s});
  m->remember(kClient, 700, false, kNow);
  const auto use = PortMemory::use(m, kClient, 700);
  EXPECT_EQ(m->entries(kNow + 1s), (std::vector<PortMemory::Entry>{{kClient, 700, true, kNow + 11s}}));
}

TEST(PortMemory, RestoresWithinItsLimits) {
  PortMemory small({.max_addresses = 1, .max_ports_per_address = 2, .expiry = 10s});
  small.restore({kOther, 600, false, kNow + 5s}, kNow);
  for (const std::uint16_t port : std::array<std::uint16_t, 3>{700, 701, 702})
    small.restore({kClient, port, false, kNow + 1h}, kNow);
  small.restore({kClient, 703, false, kNow}, kNow);  // expired
  small.restore({kClient, 0, false, kNow + 5s}, kNow);
  EXPECT_EQ(small.addresses(), 1u);
  EXPECT_EQ(small.take(kClient, kNow), 700);
  EXPECT_EQ(small.take(kClient, kNow + 9s), 701);
  small.restore({kClient, 704, true, kNow + 1h}, kNow);
  EXPECT_FALSE(small.take(kClient, kNow + 10s));
}

}  // namespace
}  // namespace iwarp::gateway
