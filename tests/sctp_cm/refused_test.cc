// Connects that come to nothing: nobody is there, ICMP says so, or somebody who forges that.
#include <gmock/gmock.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

#include "iwarp/base/wire.h"
#include "tests/sctp_cm/net.h"
#include "tests/sctp_cm/raw_peer.h"
#include "tests/support/covers.h"

namespace iwarp::sctp_cm {
namespace {

using sctp::Ppid;
using sctp::StreamId;

TEST_F(SctpTransport, SaysWhenNobodyIsThere) {
  start();
  listen();
  Hearer refused, silent;
  // Behind the UDP port nobody has that SCTP port.
  ASSERT_TRUE(stack->connect(listener->local(), 1, {}, refused));
  TransportOptions impatient;
  impatient.connect_timeout = 100ms;
  udp::socket nobody(io, udp::endpoint(boost::asio::ip::make_address("127.0.0.1"), 0));
  ASSERT_TRUE(stack->connect(nobody.local_endpoint(), kSctpPort, impatient, silent));
  ASSERT_TRUE(run([&] { return refused.end && silent.end; }));
  EXPECT_EQ(refused.end->code, Errc::kConnectionRefused);
  EXPECT_EQ(silent.end->code, Errc::kTimeout);
  EXPECT_THAT(std::string(silent.end->why), ::testing::HasSubstr("firewalls"));
}

// The address of a UDP port that was somebody's, and is nobody's.
udp::endpoint nobodys(boost::asio::io_context& io, const std::string& address) {
  return udp::socket(io, {boost::asio::ip::make_address(address), 0}).local_endpoint();
}

// ICMP tells, and what is under way at the same UDP port of this end does not suffer.
TEST_F(SctpTransport, IsRefusedWhereNobodyHasTheUdpPort) {
  start();
  listen();
  Hearer here;
  const auto a = join(here);
  std::vector<std::unique_ptr<Hearer>> refused;
  for (const char* const address : {"127.0.0.1", "::1"}) {
    for (int i = 0; i < 64; ++i) {
      refused.push_back(std::make_unique<Hearer>());
      ASSERT_TRUE(stack->connect(nobodys(io, address), kSctpPort, {}, *refused.back()));
      EXPECT_TRUE(*a->send(StreamId{2}, Ppid::kDdpSegment, true, octets("a message")));
      if (i % 8 == 0) run_for(1ms);
    }
  }
  const auto began = std::chrono::steady_clock::now();
  ASSERT_TRUE(run([&] { return std::ranges::all_of(refused, [](const auto& r) { return r->end.has_value(); }); }));
  EXPECT_LT(std::chrono::steady_clock::now() - began, TransportOptions{}.connect_timeout);
  for (const auto& r : refused) EXPECT_EQ(r->end->code, Errc::kConnectionRefused) << r->end->why;
  ASSERT_TRUE(run([&] { return passive_users[0]->got.size() == refused.size(); }));
  EXPECT_FALSE(here.end);
  EXPECT_TRUE(run([&] { return stack->associations() == 2; }));
}

// ICMP that quotes other than the INIT which waits tells nothing.
TEST_F(SctpTransport, IsNotRefusedWhereSomebodyHasAnswered) {
  start();
  Hearer here;
  TransportOptions impatient;
  impatient.connect_timeout = 300ms;
  {
    udp::socket there(io, {boost::asio::ip::make_address("127.0.0.1"), 0});
    there.non_blocking(true);
    ASSERT_TRUE(stack->connect(there.local_endpoint(), kSctpPort, impatient, here));
    Octets init(2048);
    udp::endpoint from;
    ASSERT_TRUE(run([&] {
      boost::system::error_code error;
      return there.receive_from(boost::asio::buffer(init), from, 0, error) > 20;
    }));
    const auto port_at = [&](std::size_t i) { return load_be<std::uint16_t>(ConstBytes(init).subspan(i, 2)); };
    const auto tag = load_be<std::uint32_t>(ConstBytes(init).subspan(16, 4));
    Octets value;
    put32(value, RawPeer::kTag);
    put32(value, 100000);  // window
    put16(value, 10);
    put16(value, 10);
    put32(value, 1);           // first TSN
    put32(value, 0x00070008);  // a cookie of four octets, where the INIT has its tag
    put32(value, tag);
    there.send_to(boost::asio::buffer(packet_of(port_at(2), port_at(0), tag, chunk_of(2, 0, value))), from);
  }
  // The COOKIE ECHO finds the port closed.
  ASSERT_TRUE(run([&] { return here.end.has_value(); }));
  EXPECT_EQ(here.end->code, Errc::kTimeout) << here.end->why;
}

// "Port unreachable" (RFC 792) of a UDP datagram with that payload. False: this process may not forge any.
bool forge_unreachable(const udp::endpoint& from, const udp::endpoint& to, const Octets& payload) {
  Octets icmp{std::byte{3}, std::byte{3}, {}, {}, {}, {}, {}, {}};
  put16(icmp, 0x4500);  // the IP header, as far as it is looked at
  put16(icmp, 28 + payload.size());
  put32(icmp, 0);
  put16(icmp, 0x4011);
  put16(icmp, 0);
  put32(icmp, from.address().to_v4().to_uint());
  put32(icmp, to.address().to_v4().to_uint());
  put16(icmp, from.port());
  put16(icmp, to.port());
  put16(icmp, 8 + payload.size());
  put16(icmp, 0);
  icmp.insert(icmp.end(), payload.begin(), payload.end());
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < icmp.size(); i += 2) sum += load_be<std::uint16_t>(ConstBytes(icmp).subspan(i, 2));
  while (sum > 0xFFFF) sum = (sum & 0xFFFF) + (sum >> 16);
  store_be(MutBytes(icmp).subspan(2, 2), static_cast<std::uint16_t>(~sum));
  const int fd = ::socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP);
  if (fd < 0) return false;
  const auto n = ::sendto(fd, icmp.data(), icmp.size(), 0, from.data(), static_cast<socklen_t>(from.size()));
  ::close(fd);
  return n == static_cast<ssize_t>(icmp.size());
}

// Who has not seen the INIT cannot know its tag.
TEST_F(SctpTransport, IsRefusedByWhoHasSeenTheInitAlone) {
  start();
  Hearer here;
  udp::socket there(io, {boost::asio::ip::make_address("127.0.0.1"), 0});
  there.non_blocking(true);
  ASSERT_TRUE(stack->connect(there.local_endpoint(), kSctpPort, {}, here));
  Octets init(2048);
  udp::endpoint from;
  ASSERT_TRUE(run([&] {
    boost::system::error_code error;
    const std::size_t n = there.receive_from(boost::asio::buffer(init), from, 0, error);
    if (n > 20) init.resize(n & ~std::size_t{1});
    return n > 20;
  }));
  Octets other = init;
  other[19] ^= std::byte{1};  // of the Initiate Tag
  if (!forge_unreachable(from, there.local_endpoint(), other)) GTEST_SKIP() << "no raw sockets here";
  run_for(100ms);
  EXPECT_FALSE(here.end);
  ASSERT_TRUE(forge_unreachable(from, there.local_endpoint(), init));
  ASSERT_TRUE(run([&] { return here.end.has_value(); }));
  EXPECT_EQ(here.end->code, Errc::kConnectionRefused);
}

TEST_F(SctpTransport, SaysWhatTheSystemSays) {
  start();
  Hearer here;
  // The limited broadcast, which a socket has to be allowed to use.
  ASSERT_TRUE(stack->connect({boost::asio::ip::make_address("255.255.255.255"), 9899}, kSctpPort, {}, here));
  ASSERT_TRUE(run([&] { return here.end.has_value(); }));
  EXPECT_EQ(here.end->code, Errc::kSystem);
  EXPECT_THAT(std::string(here.end->why),  // the latter where there is no route at all
              ::testing::AnyOf(::testing::HasSubstr("Permission denied"), ::testing::HasSubstr("unreachable")));
}

}  // namespace
}  // namespace iwarp::sctp_cm
