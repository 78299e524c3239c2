#include "iwarp/cm/fallback_memory.h"

#include <gtest/gtest.h>

namespace iwarp::cm {
namespace {

using mpa::Fallback;
using namespace std::chrono_literals;

constexpr TimePoint kStart{1000s};

FallbackMemory::Peer peer(std::uint16_t port) {
  return {boost::asio::ip::make_address("10.0.0.1"), port};
}

TEST(FallbackMemory, KnowsWhatWorkedWithEachPeer) {
  FallbackMemory m;
  EXPECT_EQ(m.recall(peer(1), kStart), Fallback::kNone);
  m.worked(peer(1), Fallback::kPeerToPeer, kStart);
  m.worked(peer(2), Fallback::kRevision1, kStart);
  EXPECT_EQ(m.recall(peer(1), kStart), Fallback::kPeerToPeer);
  EXPECT_EQ(m.recall(peer(2), kStart), Fallback::kRevision1);
  m.worked(peer(1), Fallback::kRevision1, kStart);
  EXPECT_EQ(m.recall(peer(1), kStart), Fallback::kRevision1);
  m.worked(peer(1), Fallback::kNone, kStart);
  m.forget(peer(2));
  m.forget(peer(3));
  EXPECT_EQ(m.recall(peer(1), kStart), Fallback::kNone);
  EXPECT_EQ(m.size(), 0U) << "what worked at first is not worth remembering";
}

TEST(FallbackMemory, ForgetsAfterAWhileHoweverOftenItIsOfUse) {
  FallbackMemory m;
  m.worked(peer(1), Fallback::kPeerToPeer, kStart);
  m.worked(peer(1), Fallback::kPeerToPeer, kStart + 9min);
  EXPECT_EQ(m.recall(peer(1), kStart + 10min - 1ns), Fallback::kPeerToPeer);
  EXPECT_EQ(m.recall(peer(1), kStart + 10min), Fallback::kNone);
  m.worked(peer(1), Fallback::kPeerToPeer, kStart + 11min);
  EXPECT_EQ(m.recall(peer(1), kStart + 20min), Fallback::kPeerToPeer);
}

TEST(FallbackMemory, IsBounded) {
  FallbackMemory m;
  const auto many = static_cast<std::uint16_t>(FallbackMemory::kPeers);
  for (std::uint16_t i = 0; i <= many; ++i) m.worked(peer(i), Fallback::kRevision1, kStart + i * 1ms);
  EXPECT_EQ(m.size(), FallbackMemory::kPeers);
  EXPECT_EQ(m.recall(peer(0), kStart + 1s), Fallback::kNone) << "learned first";
  EXPECT_EQ(m.recall(peer(1), kStart + 1s), Fallback::kRevision1);
  EXPECT_EQ(m.recall(peer(many), kStart + 1s), Fallback::kRevision1);
}

}  // namespace
}  // namespace iwarp::cm
