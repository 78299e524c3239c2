// The tables of this layer as reviewed files. A difference means that the life of an engine or of a socket changed: if
// on purpose, replace the file by what the test prints.
#include <gtest/gtest.h>

#include "iwarp/cm/io_right.h"
#include "iwarp/cm/leader.h"
#include "iwarp/cm/socket_side.h"
#include "tests/support/state_matrix.h"

namespace iwarp::cm {
namespace {

TEST(States, LeaderIsAsReviewed) {
  const auto is = test::state_matrix<Leader, LeaderInput>(kLeaders, kLeaderInputs);
  EXPECT_EQ(is, test::reviewed("cm/leader.states.txt")) << is;
}

TEST(States, BackgroundIsAsReviewed) {
  const auto is = test::state_matrix<Background, BackgroundInput>(kBackgrounds, kBackgroundInputs);
  EXPECT_EQ(is, test::reviewed("cm/background.states.txt")) << is;
}

TEST(States, PollingIsAsReviewed) {
  const auto is = test::state_matrix<Polling, PollingInput>(kPollings, kPollingInputs);
  EXPECT_EQ(is, test::reviewed("cm/polling.states.txt")) << is;
}

TEST(States, SideIsAsReviewed) {
  const auto is = test::state_matrix<Side, SideInput>(kSides, kSideInputs);
  EXPECT_EQ(is, test::reviewed("cm/side.states.txt")) << is;
}

TEST(States, IoRightIsAsReviewed) {
  const auto is = test::state_matrix<IoRight, IoRightInput>(kIoRights, kIoRightInputs);
  EXPECT_EQ(is, test::reviewed("cm/io_right.states.txt")) << is;
}

TEST(States, OnlyOneLeads) {
  for (std::size_t l = 1; l < kLeaders; ++l) {
    const auto leader = static_cast<Leader>(l);
    for (std::size_t i = 0; i < kLeaderInputs; ++i) {
      const auto on = static_cast<LeaderInput>(i);
      EXPECT_EQ(next(leader, on).has_value(), on == LeaderInput::kLeaves) << name(leader) << " + " << name(on);
    }
    EXPECT_EQ(next(leader, LeaderInput::kLeaves), Leader::kNobody);
  }
}

}  // namespace
}  // namespace iwarp::cm
