#include "iwarp/sctp_cm/peers.h"

#include <gtest/gtest.h>

#include <vector>

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
}

TEST(SctpPeers, ExpectsTheTagsOfItsLastAnswers) {
  Peers peers(3);
  const Handle asked = peers.ask(peer(1), kStart);
  EXPECT_FALSE(peers.expects(peer(1), 0));
  for (std::uint32_t tag = 1; tag <= 5; ++tag) peers.answered(asked, tag);
  peers.answered(Handle{77}, 9);
  for (std::uint32_t tag = 2; tag <= 5; ++tag) EXPECT_TRUE(peers.expects(peer(1), tag));
  EXPECT_FALSE(peers.expects(peer(1), 1));
  EXPECT_FALSE(peers.expects(peer(1), 9));
  EXPECT_FALSE(peers.expects(peer(2), 5));
}

TEST(SctpPeers, AskingEndsWithTheLifeOfACookie) {
  Peers peers(3);
  const Handle first = peers.ask(peer(1), kStart);
  peers.ask(peer(2), kStart + 1s);
  peers.ask(peer(1), kStart + 2s);  // again
  peers.expire(kStart + Peers::kCookieLife + 999ms);
  EXPECT_EQ(peers.asking(), 2u);
  peers.expire(kStart + Peers::kCookieLife + 1s);
  EXPECT_EQ(peers.asking(peer(2)), kNoHandle);
  EXPECT_EQ(peers.asking(peer(1)), first);
  peers.expire(kStart + Peers::kCookieLife + 2s);
  EXPECT_EQ(peers.asking(), 0u);
  EXPECT_EQ(peers.find(first), nullptr);
}

TEST(SctpPeers, OwnPortsToAPeerEnd) {
  Peers peers(3);
  Peer p = peer(1);
  const auto all_free = [](std::uint16_t) { return false; };
  EXPECT_EQ(peers.free_own_port(p, 49152, 16384 + 5, all_free), 49157);
  EXPECT_EQ(peers.free_own_port(p, 49152, 5, [](std::uint16_t port) { return port < 49160; }), 49160);
  for (std::uint32_t port = 49152; port <= 65535; ++port) {
    p.own_port = static_cast<std::uint16_t>(port);
    if (port != 50000) peers.settle(p, kStart);
  }
  EXPECT_EQ(peers.free_own_port(p, 49152, 16000, all_free), 50000);
  p.own_port = 50000;
  peers.settle(p, kStart);
  EXPECT_EQ(peers.free_own_port(p, 49152, 16000, all_free), 0);
  EXPECT_TRUE(peers.has_any(nullptr));
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

// SCTP may know no further handle, and forged INITs come: an honest peer gets one of those that it knows.
TEST(SctpPeers, AFloodDoesNotTakeTheHandlesThatSctpKnows) {
  constexpr std::size_t kLimit = 30;
  Peers peers(20, kLimit);
  std::vector<Handle> handles;
  for (std::uint16_t p = 1; p <= kLimit; ++p) {
    handles.push_back(peers.settle(peer(p), kStart));
    ASSERT_TRUE(peers.may_use(handles.back()));
    ASSERT_TRUE(peers.first_use(handles.back()));
  }
  for (const Handle handle : handles) peers.forget(handle, kStart);
  TimePoint now = kStart + 2 * Peers::kCookieLife;
  for (std::uint16_t p = 1000; p < 5000; ++p, now += 10ms) {
    peers.expire(now);
    peers.ask(peer(p), now);
    if (p % 100 == 0) {
      EXPECT_TRUE(peers.may_use(peers.ask(peer(7), now))) << p;
    }
  }
  EXPECT_EQ(peers.in_use(), kLimit);
}

// Who has asked when all known handles rested, and asks again.
TEST(SctpPeers, AskingAgainGetsAHandleThatCanBeUsed) {
  Peers peers(3, 1);
  const Handle known = peers.settle(peer(1), kStart);
  EXPECT_TRUE(peers.first_use(known));
  peers.forget(known, kStart);
  const Handle other = peers.ask(peer(2), kStart + 19s);
  EXPECT_FALSE(peers.may_use(other));
  peers.answered(other, 5);
  EXPECT_EQ(peers.ask(peer(2), kStart + 19s), other);
  EXPECT_EQ(peers.ask(peer(2), kStart + 20s), known);
  EXPECT_FALSE(peers.expects(peer(2), 5));  // the cookie is of the other handle
  EXPECT_EQ(peers.find(other), nullptr);
  EXPECT_EQ(*peers.find(known), peer(2));
}

TEST(SctpPeers, ThoseOfAnEndGoWithIt) {
  Peers peers(10);
  for (std::uint16_t p = 1; p <= 5; ++p) peers.ask(peer(p), kStart);
  peers.drop_asking(nullptr);
  EXPECT_EQ(peers.asking(), 0u);
}

}  // namespace
}  // namespace iwarp::sctp_cm
