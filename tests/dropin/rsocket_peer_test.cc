// Rsockets, and peers that connect and then are silent, or say large numbers.
#include "tests/dropin/rsocket_support.h"
//
#include <malloc.h>

#include <array>
#include <chrono>
#include <vector>

#include "dropin/rsocket/stream.h"
#include "dropin/rsocket/wire.h"
#include "tests/cm/raw_tcp.h"
#include "tests/support/sanitized.h"

namespace iwarp::dropin::test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using iwarp::test::RawTcp;

rsockets::ConnectionData data_of_a_peer() {
  return {.credits = 384,
          .mappings = 16,
          .grants = {.address = 0x1000, .key = 0x100, .length = rsockets::kGrants},
          .first = {.address = 0x2000, .key = 0x200, .length = 65536}};
}

// Has asked to be connected, as an rsocket does, has heard that it is accepted, and says nothing more.
RawTcp silent_peer(std::uint16_t port, bool peer_to_peer) {
  RawTcp peer = RawTcp::connect(port);
  const auto data = data_of_a_peer().to_bytes();
  auto request = iwarp::test::good_request(data);
  request.enhanced_data.peer_to_peer = peer_to_peer;
  EXPECT_TRUE(peer.send(iwarp::test::octets(request)));
  const auto reply = iwarp::test::read_frame(peer, true);
  EXPECT_TRUE(reply.complete);
  EXPECT_FALSE(reply.frame.reject);
  return peer;
}

// Where a peer asks for peer-to-peer this end is not connected before the peer's first segment.
TEST_F(RsocketTest, WhoIsSilentKeepsNobodyOut) {
  const Rsocket short_one;
  const auto any = loopback();
  ASSERT_EQ(::rbind(short_one, as_sockaddr(any), sizeof any), 0);
  ASSERT_EQ(::rlisten(short_one, 1), 0);
  std::vector<RawTcp> silent;
  for (int i = 0; i < 3; ++i) silent.push_back(silent_peer(port_of(short_one), true));
  const auto address = loopback(port_of(short_one));
  ASSERT_EQ(::rconnect(client, as_sockaddr(address), sizeof address), 0) << std::strerror(errno);
  for (auto& peer : silent) EXPECT_EQ(peer.end(0), RawTcp::End::kTimeout) << "it waited until the silent one was lost";
  accepted = ::raccept(short_one, nullptr, nullptr);
  ASSERT_GE(accepted, 0);
  EXPECT_EQ(send_text(client, "x"), 1);
  EXPECT_EQ(receive_text(accepted), "x");
}

TEST_F(RsocketTest, ALongerBacklogTakesThoseWhoWait) {
  const Rsocket short_one;
  const auto any = loopback();
  ASSERT_EQ(::rbind(short_one, as_sockaddr(any), sizeof any), 0);
  ASSERT_EQ(::rlisten(short_one, 1), 0);
  const auto address = loopback(port_of(short_one));
  ASSERT_EQ(::rconnect(client, as_sockaddr(address), sizeof address), 0);
  EXPECT_EQ(polled(short_one, POLLIN, 5000), POLLIN);
  const Rsocket second, third;  // the second was asked for before the first had arrived
  ASSERT_EQ(::rconnect(second, as_sockaddr(address), sizeof address), 0);
  set_nonblocking(third);
  EXPECT_EQ(::rconnect(third, as_sockaddr(address), sizeof address), -1);
  EXPECT_EQ(polled(third, POLLOUT, 50), 0);
  EXPECT_EQ(::rlisten(short_one, 3), 0);
  EXPECT_EQ(polled(third, POLLOUT, 20'000), POLLOUT);
  EXPECT_EQ(option(third, SOL_SOCKET, SO_ERROR), 0);
}

// It is owed what this end grants, and nothing of the application's: before it speaks nothing may be sent to it.
TEST_F(RsocketTest, AnEndDoesNotWaitForWhatASilentPeerIsOwed) {
  const RawTcp peer = silent_peer(port_of(listener), false);
  Rsocket socket(::raccept(listener, nullptr, nullptr));
  const auto begin = Clock::now();
  EXPECT_EQ(::rshutdown(socket, SHUT_WR), 0);
  socket.close();
  EXPECT_LT(Clock::now() - begin, 30s) << "not because its time was over";
}

// A peer says by one octet how many regions may be mapped there.
TEST(RsocketStream, NumbersOfThePeerTakeNoMemory) {
  if (iwarp::test::kSanitized) GTEST_SKIP() << "the sanitizers' allocators tell no figures";
  rsockets::Stream stream({}, [] {});
  const auto in_use = [] {
    const auto figures = ::mallinfo2();
    return figures.uordblks + figures.hblkhd;
  };
  const std::size_t before = in_use();
  auto data = data_of_a_peer();
  data.mappings = rsockets::sayable(0xFFFFFFFF);
  EXPECT_EQ(data.mappings, 32512U);
  stream.set_peer(data);
  EXPECT_LT(in_use(), before + 100'000);
}

TEST(RsocketStream, AsManyRegionsAreMappedAsThePeerSays) {
  rsockets::Stream stream({}, [] {});
  auto data = data_of_a_peer();
  data.mappings = 100;
  stream.set_peer(data);
  std::array<std::byte, 8> memory{};
  for (int times = 0; times < 2; ++times) {
    for (std::uint32_t i = 0; i < data.mappings; ++i) EXPECT_EQ(stream.map(memory, i), 0);
    EXPECT_EQ(stream.map(memory, data.mappings), ENOMEM);
    for (std::uint32_t i = 0; i < data.mappings; ++i) EXPECT_TRUE(stream.unmap(memory));
    EXPECT_FALSE(stream.unmap(memory));
  }
}

}  // namespace
}  // namespace iwarp::dropin::test
