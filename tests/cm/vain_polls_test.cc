// When a thread that polls in vain goes on, yields or dozes.
#include "iwarp/cm/vain_polls.h"

#include <gtest/gtest.h>

namespace iwarp::cm {
namespace {

using namespace std::chrono_literals;
using Time = VainPolls::Clock::time_point;

const Time kBegin{1h};

bool pauses_after(VainPolls& polls, unsigned count) {
  for (unsigned i = 1; i < count; ++i) {
    if (polls.another()) return false;
  }
  return polls.another();
}

// A thread that has just learnt that others want its processor.
VainPolls contended() {
  VainPolls polls;
  polls.yielded(kBegin - 51us, kBegin);
  return polls;
}

TEST(VainPolls, SixteenInARowLeadToAPause) {
  VainPolls polls;
  EXPECT_TRUE(pauses_after(polls, 16));
  EXPECT_TRUE(pauses_after(polls, 16));
}

TEST(VainPolls, OneThatGotSomethingBeginsAnew) {
  VainPolls polls;
  for (int i = 0; i < 15; ++i) EXPECT_FALSE(polls.another());
  polls.got_some();
  EXPECT_TRUE(pauses_after(polls, 16));
}

TEST(VainPolls, NobodyDozesBeforeAYieldWasLong) {
  VainPolls polls;
  EXPECT_FALSE(polls.may_doze(kBegin));
  polls.yielded(kBegin - 50us, kBegin);
  EXPECT_FALSE(polls.may_doze(kBegin));
  polls.yielded(kBegin - 51us, kBegin);
  EXPECT_TRUE(polls.may_doze(kBegin));
}

TEST(VainPolls, ALongYieldIsKeptInMindForATenthOfASecond) {
  const VainPolls polls = contended();
  EXPECT_TRUE(polls.may_doze(kBegin + 99ms));
  EXPECT_FALSE(polls.may_doze(kBegin + 100ms));
}

TEST(VainPolls, AShortYieldDoesNotEndIt) {
  VainPolls polls = contended();
  polls.yielded(kBegin, kBegin + 1us);
  EXPECT_TRUE(polls.may_doze(kBegin + 99ms));
}

TEST(VainPolls, WhoWasWokenAtOnceYieldsNext) {
  VainPolls polls = contended();
  polls.dozed(kBegin, kBegin + 4us);
  EXPECT_FALSE(polls.may_doze(kBegin + 4us));
  polls.yielded(kBegin + 4us, kBegin + 5us);
  EXPECT_TRUE(polls.may_doze(kBegin + 5us));
}

TEST(VainPolls, ADozeThatWasOneLeadsToTheNext) {
  VainPolls polls = contended();
  polls.dozed(kBegin, kBegin + 5us);
  EXPECT_TRUE(polls.may_doze(kBegin + 5us));
}

TEST(VainPolls, WhoGotSomethingMayDozeAgain) {
  VainPolls polls = contended();
  polls.dozed(kBegin, kBegin + 4us);
  polls.got_some();
  EXPECT_TRUE(polls.may_doze(kBegin + 5us));
}

}  // namespace
}  // namespace iwarp::cm
