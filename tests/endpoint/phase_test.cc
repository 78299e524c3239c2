#include "iwarp/endpoint/phase.h"

#include <gtest/gtest.h>

#include "tests/support/state_matrix.h"

namespace iwarp::endpoint {
namespace {

TEST(Phases, AreAsReviewed) {
  const auto is = test::state_matrix<Phase, Input>(kPhases, kInputs);
  EXPECT_EQ(is, test::reviewed("endpoint/phase.states.txt")) << is;
}

TEST(Phases, ClosedIsFinalAndReachableFromEverywhere) {
  for (std::size_t i = 0; i < kInputs; ++i) EXPECT_FALSE(next(Phase::kClosed, static_cast<Input>(i)));
  for (std::size_t p = 0; p + 1 < kPhases; ++p) {
    EXPECT_EQ(next(static_cast<Phase>(p), Input::kAbort), Phase::kClosed);
    if (p == 0) continue;
    for (const Input end : {Input::kPeerEnd, Input::kLost, Input::kTimeout}) {
      EXPECT_EQ(next(static_cast<Phase>(p), end), Phase::kClosed) << name(static_cast<Phase>(p)) << " + " << name(end);
    }
  }
}

}  // namespace
}  // namespace iwarp::endpoint
