// Whole sessions between two ends, in every order that SCTP and the applications may show.
#include "tests/sctp/message_net.h"

#include "tests/support/covers.h"

namespace iwarp::sctp {
namespace {

TEST(MessageNet, AcceptedAndTerminatedByTheActiveSide) {
  COVERS("RFC5043-5.2.2-2");
  COVERS("RFC5043-6.1-2");
  COVERS("RFC5043-6.1-4");
  COVERS("RFC5043-6.2-5");
  COVERS("RFC5043-6.6-1");
  COVERS("RFC5043-6.6-4");
  Scenario s;
  s.when_all_sent = true;
  EXPECT_GT(explore(s), 7000U);
}

TEST(MessageNet, TerminatedByTheActiveSideAtAnyTime) {
  COVERS("RFC5043-6.6-1");
  Scenario s;
  s.segments = {0, 1};
  EXPECT_GT(explore(s), 1000U);
}

TEST(MessageNet, TerminatedByThePassiveSideAtAnyTime) {
  COVERS("RFC5043-6.6-1");
  COVERS("RFC5043-6.2-4");
  Scenario s;
  s.terminates = {false, true};
  s.segments = {1, 0};
  EXPECT_GT(explore(s), 600U);
}

TEST(MessageNet, TerminatedByBothAtAnyTime) {
  COVERS("RFC5043-6.2-5");
  COVERS("RFC5043-6.6-1");
  Scenario s;
  s.terminates = {true, true};
  s.segments = {0, 1};
  EXPECT_GT(explore(s), 6000U);
}

TEST(MessageNet, RejectedOrRefusedWhileTheActiveSideMayWithdraw) {
  COVERS("RFC5043-6.3-1");
  COVERS("RFC5043-6.4-4");
  for (const Decision d : {Decision::kReject, Decision::kRefuse}) {
    Scenario s;
    s.decision = d;
    s.terminates = {true, false};
    EXPECT_GT(explore(s), 20U);
  }
}

TEST(MessageNet, TheAssociationMayBeLostAtAnyTime) {
  COVERS("RFC5043-11.3-1");
  COVERS("RFC5043-11.3-3");
  Scenario s;
  s.may_be_lost = true;
  s.segments = {0, 1};
  EXPECT_GT(explore(s), 2000U);
}

TEST(MessageNet, OneSessionBehindTheOtherOnOneStream) {
  COVERS("RFC5043-6-1");
  COVERS("RFC5043-6.1-1");
  COVERS("RFC5043-6.6-5");
  Scenario s;
  s.sessions = 2;
  s.segments = {0, 0};
  EXPECT_GT(explore(s), 10000U);
}

TEST(MessageNet, SegmentsOvertakeEachOtherAndTheTerminate) {
  COVERS("RFC5043-10-2");
  COVERS("RFC5043-6.2-3");
  Scenario s;
  s.segments = {3, 0};
  s.when_all_sent = true;
  EXPECT_GT(explore(s), 1000U);
}

// Placed as they come, delivered in order; the same runs as without.
TEST(MessageNet, SegmentsArePlacedBeforeThoseInFrontOfThem) {
  COVERS("RFC5041-3-6");
  COVERS("RFC5041-3-7");
  COVERS("RFC5043-6.1-4");
  Scenario s;
  s.segments = {3, 0};
  s.when_all_sent = true;
  const std::size_t runs = explore(s);
  s.places = true;
  int early = 0;
  EXPECT_EQ(explore(s, &early), runs);
  EXPECT_GT(early, 1000);
}

TEST(MessageNet, SegmentsThatArePlacedMayBeLostWithTheAssociation) {
  COVERS("RFC5041-5.4-3");
  Scenario s;
  s.places = true;
  s.may_be_lost = true;
  s.segments = {0, 2};
  s.terminates = {false, true};
  s.when_all_sent = true;
  int early = 0;
  EXPECT_GT(explore(s, &early), 1000U);
  EXPECT_GT(early, 100);
}

TEST(MessageNet, SegmentsOfBothEndsArePlacedWhileTheSessionEnds) {
  COVERS("RFC5043-6.2-7");
  Scenario s;
  s.places = true;
  s.segments = {2, 0};
  s.terminates = {false, true};
  int early = 0;
  EXPECT_GT(explore(s, &early), 1000U);
  EXPECT_GT(early, 100);
}

TEST(MessageNet, TwoSessionsAtOnce) {
  COVERS("RFC5043-11.3-5");
  COVERS("RFC5043-2-1");
  Scenario s;
  s.sessions = 2;
  s.at_once = true;
  s.segments = {0, 0};
  s.when_all_sent = true;
  s.decision = Decision::kReject;
  s.terminates = {false, false};
  EXPECT_GT(explore(s), 20U);
}

}  // namespace
}  // namespace iwarp::sctp
