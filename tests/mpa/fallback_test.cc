#include "iwarp/mpa/fallback.h"

#include <gtest/gtest.h>

#include "tests/support/covers.h"

namespace iwarp::mpa {
namespace {

// What is asked for from the first Request to the last: "0" and "1" stand for flag A, "r1" for revision 1.
std::string order(Policy policy) {
  std::string all;
  for (int i = 0; i < 10; ++i) {
    all += policy.revision == 1 ? "r1 " : policy.peer_to_peer ? "1 " : "0 ";
    const Fallback next = next_fallback(policy);
    if (next == Fallback::kNone) return all;
    policy = with_fallback(policy, next);
    EXPECT_TRUE(validate(policy).ok());
  }
  return all + "without end";
}

TEST(MpaFallback, AsksForEachThingOnce) {
  COVERS("RFC6581-10-12");
  EXPECT_EQ(order({.peer_to_peer = false}), "0 1 r1 ");
  EXPECT_EQ(order({.peer_to_peer = true}), "1 r1 ");
  EXPECT_EQ(order({.revision = 1}), "r1 ");
}

TEST(MpaFallback, AsksForNothingThatPolicyForbids) {
  EXPECT_EQ(order({.peer_to_peer = false, .allow_peer_to_peer_fallback = false}), "0 r1 ");
  EXPECT_EQ(order({.peer_to_peer = false, .allow_revision_1_fallback = false}), "0 1 ");
  EXPECT_EQ(order({.peer_to_peer = true, .allow_revision_1_fallback = false}), "1 ");
}

TEST(MpaFallback, BeginsWithWhatIsRememberedOnlyIfItWouldComeToIt) {
  constexpr Policy kClientServer{.peer_to_peer = false};
  for (const Fallback f : {Fallback::kNone, Fallback::kPeerToPeer, Fallback::kRevision1})
    EXPECT_EQ(reachable(kClientServer, f), f);
  EXPECT_EQ(reachable({}, Fallback::kPeerToPeer), Fallback::kNone) << "asked for first in any case";
  EXPECT_EQ(reachable({}, Fallback::kRevision1), Fallback::kRevision1);
  EXPECT_EQ(reachable({.allow_revision_1_fallback = false}, Fallback::kRevision1), Fallback::kNone);
  EXPECT_EQ(reachable({.revision = 1}, Fallback::kPeerToPeer), Fallback::kNone);
}

}  // namespace
}  // namespace iwarp::mpa
