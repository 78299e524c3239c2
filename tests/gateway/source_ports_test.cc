#include "iwarp/gateway/source_ports.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace iwarp::gateway {
namespace {

std::vector<std::uint16_t> all(SourcePorts ports) {
  std::vector<std::uint16_t> out;
  while (const auto port = ports.next()) out.push_back(*port);
  return out;
}

TEST(SourcePortsTest, OffIsAnyPortBehindThePreferredOne) {
  EXPECT_EQ(all({ReservedPort::kOff, std::nullopt, {}, 0}), (std::vector<std::uint16_t>{0}));
  EXPECT_EQ(all({ReservedPort::kOff, 40000, {}, 0}), (std::vector<std::uint16_t>{40000, 0}));
}

TEST(SourcePortsTest, ReservedOnesAreTriedOnceEachThenAnyPort) {
  const auto ports = all({ReservedPort::kPrefer, std::nullopt, {}, 510});
  ASSERT_EQ(ports.size(), kReservedPorts + 1);
  EXPECT_EQ(ports[0], 1022);
  EXPECT_EQ(ports[1], 1023);
  EXPECT_EQ(ports[2], 512);
  EXPECT_EQ(std::set(ports.begin(), ports.end() - 1).size(), kReservedPorts);
  EXPECT_EQ(*std::set(ports.begin(), ports.end() - 1).begin(), 512);
  EXPECT_EQ(ports.back(), 0);
}

TEST(SourcePortsTest, RequireNeverLeavesThem) {
  const auto ports = all({ReservedPort::kRequire, 40000, {}, 0});
  ASSERT_EQ(ports.size(), kReservedPorts);
  for (const std::uint16_t port : ports) EXPECT_TRUE(is_reserved(port)) << port;
  EXPECT_EQ(all({ReservedPort::kRequire, 700, {}, 0}).front(), 700);
}

TEST(SourcePortsTest, ThePortOfAnEarlierConnectionComesFirst) {
  EXPECT_EQ(all({ReservedPort::kPrefer, 40000, {}, 0}).front(), 40000);
}

TEST(SourcePortsTest, PortsToAvoidComeLast) {
  ReservedPortSet avoid;
  avoid.set(0);
  avoid.set(1);
  const auto ports = all({ReservedPort::kRequire, std::nullopt, avoid, 0});
  ASSERT_EQ(ports.size(), kReservedPorts);
  EXPECT_EQ(ports.front(), 514);
  EXPECT_EQ(ports[kReservedPorts - 2], 512);
  EXPECT_EQ(ports.back(), 513);
}

TEST(SourcePortsTest, WithoutPrivilegeTheRestIsLeftOut) {
  SourcePorts ports(ReservedPort::kPrefer, std::nullopt, {}, 0);
  EXPECT_EQ(ports.next(), 512);
  ports.no_privilege();
  EXPECT_EQ(ports.next(), 0);
  EXPECT_EQ(ports.next(), std::nullopt);
}

TEST(SourcePortsTest, ReservedAreThoseUpTo1023) {
  EXPECT_FALSE(is_reserved(0));
  EXPECT_TRUE(is_reserved(1));
  EXPECT_TRUE(is_reserved(1023));
  EXPECT_FALSE(is_reserved(1024));
}

}  // namespace
}  // namespace iwarp::gateway
