#include "iwarp/stream/phase.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "tests/support/vectors.h"

namespace iwarp::stream {
namespace {

std::string matrix() {
  std::ostringstream out;
  for (std::size_t p = 0; p < kPhases; ++p) {
    for (std::size_t i = 0; i < kInputs; ++i) {
      const auto from = static_cast<Phase>(p);
      const auto on = static_cast<Input>(i);
      const auto to = next(from, on);
      out << name(from) << " + " << name(on) << " -> " << (to ? name(*to) : "-") << "\n";
    }
  }
  return out.str();
}

// A difference means that the life of a connection changed: if on purpose, replace the file by what this test prints.
TEST(Phases, AreAsReviewed) {
  std::ifstream in(test::vector_path("stream/phase.states.txt"));
  std::ostringstream reviewed;
  reviewed << in.rdbuf();
  EXPECT_EQ(matrix(), reviewed.str()) << matrix();
}

TEST(Phases, ClosedIsFinalAndReachableFromEverywhere) {
  for (std::size_t i = 0; i < kInputs; ++i) EXPECT_FALSE(next(Phase::kClosed, static_cast<Input>(i)));
  for (std::size_t p = 0; p + 1 < kPhases; ++p) {
    EXPECT_EQ(next(static_cast<Phase>(p), Input::kAbort), Phase::kClosed);
    if (p == 0) continue;
    for (const Input end : {Input::kPeerFin, Input::kPeerReset, Input::kTimeout}) {
      EXPECT_EQ(next(static_cast<Phase>(p), end), Phase::kClosed) << name(static_cast<Phase>(p)) << " + " << name(end);
    }
  }
}

}  // namespace
}  // namespace iwarp::stream
