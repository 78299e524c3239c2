#include "iwarp/sctp_cm/peers.h"

#include <gtest/gtest.h>

namespace iwarp::sctp_cm {
namespace {

using namespace std::chrono_literals;

Peer peer(std::uint16_t port) {
  return {nullptr, {boost::asio::ip::make_address("192.0.2.1"), 9899}, port, 5043};
}

const TimePoint kStart{1h};

TEST(SctpPeers, AskingAgainKeepsThePlace) {
  Peers peers(10);
  const Handle first = peers.ask(peer(1), kStart);
  EXPECT_EQ(peers.ask(peer(1), kStart), first);
  EXPECT_NE(peers.ask(peer(2), kStart), first);
  EXPECT_EQ(peers.asking(), 2u);
  EXPECT_EQ(peers.asking(peer(1)), first);
  EXPECT_EQ(peers.known(peer(1)), kNoHandle);
  EXPECT_EQ(*peers.find(first), peer(1));
}

TEST(SctpPeers, TheOldestMakesRoom) {
  Peers peers(3);
  const Handle first = peers.ask(peer(1), kStart);
  for (std::uint16_t p = 2; p <= 5; ++p) peers.ask(peer(p), kStart);
  EXPECT_EQ(peers.asking(), 3u);
  EXPECT_EQ(peers.displaced(), 2u);
  EXPECT_EQ(peers.asking(peer(1)), kNoHandle);
  EXPECT_EQ(peers.find(first), nullptr);
  EXPECT_NE(peers.ask(peer(1), kStart), first);  // its old cookie is no good
}

TEST(SctpPeers, SettlesUnderTheHandleOfTheCookie) {
  Peers peers(3);
  const Handle asked = peers.ask(peer(1), kStart);
  EXPECT_EQ(peers.settle(peer(1), kStart), asked);
  EXPECT_EQ(peers.known(peer(1)), asked);
  EXPECT_EQ(peers.asking(), 0u);
  peers.unsettle(asked, kStart);
  EXPECT_EQ(peers.known(peer(1)), kNoHandle);
  EXPECT_EQ(peers.asking(peer(1)), asked);
}

TEST(SctpPeers, AHandleRestsAsLongAsACookieIsGood) {
  Peers peers(3);
  const Handle handle = peers.settle(peer(1), kStart);
  EXPECT_TRUE(peers.first_use(handle));
  EXPECT_FALSE(peers.first_use(handle));
  peers.forget(handle, kStart);
  EXPECT_EQ(peers.find(handle), nullptr);
  EXPECT_NE(peers.settle(peer(2), kStart + Peers::kCookieLife), handle);
  EXPECT_EQ(peers.settle(peer(3), kStart + 2 * Peers::kCookieLife), handle);
  EXPECT_FALSE(peers.first_use(handle));  // SCTP knows it
}

TEST(SctpPeers, ThoseOfAnEndGoWithIt) {
  Peers peers(10);
  for (std::uint16_t p = 1; p <= 5; ++p) peers.ask(peer(p), kStart);
  peers.drop_asking(nullptr, kStart);
  EXPECT_EQ(peers.asking(), 0u);
}

}  // namespace
}  // namespace iwarp::sctp_cm
