// The tables of this layer as reviewed files. A difference means that the life of an engine or of a socket changed: if
// on purpose, replace the file by what the test prints.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "iwarp/cm/leader.h"
#include "iwarp/cm/socket_side.h"
#include "tests/support/vectors.h"

namespace iwarp::cm {
namespace {

template <class State, class Input>
std::string matrix(std::size_t states, std::size_t inputs) {
  std::ostringstream out;
  for (std::size_t s = 0; s < states; ++s) {
    for (std::size_t i = 0; i < inputs; ++i) {
      const auto from = static_cast<State>(s);
      const auto on = static_cast<Input>(i);
      const auto to = next(from, on);
      out << name(from) << " + " << name(on) << " -> " << (to ? name(*to) : "-") << "\n";
    }
  }
  return out.str();
}

std::string reviewed(const char* file) {
  std::ifstream in(test::vector_path(file));
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

TEST(States, LeaderIsAsReviewed) {
  const auto is = matrix<Leader, LeaderInput>(kLeaders, kLeaderInputs);
  EXPECT_EQ(is, reviewed("cm/leader.states.txt")) << is;
}

TEST(States, BackgroundIsAsReviewed) {
  const auto is = matrix<Background, BackgroundInput>(kBackgrounds, kBackgroundInputs);
  EXPECT_EQ(is, reviewed("cm/background.states.txt")) << is;
}

TEST(States, SideIsAsReviewed) {
  const auto is = matrix<Side, SideInput>(kSides, kSideInputs);
  EXPECT_EQ(is, reviewed("cm/side.states.txt")) << is;
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
