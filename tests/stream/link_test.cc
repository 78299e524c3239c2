#include "iwarp/stream/link.h"

#include <gtest/gtest.h>

#include <array>

#include "tests/support/state_matrix.h"

namespace iwarp::stream {
namespace {

using endpoint::Ending;
using endpoint::kPhases;
using endpoint::Phase;

constexpr std::array kLink = {"open", "half-closed", "released"};
constexpr std::array kEnding = {"error", "orderly", "abrupt"};
constexpr std::array kAction = {"-", "shut down write", "close", "reset"};

TEST(Links, ActionsAreAsReviewed) {
  std::ostringstream out;
  for (std::size_t l = 0; l < kLink.size(); ++l) {
    for (std::size_t e = 0; e < kEnding.size(); ++e) {
      for (const Phase phase : {Phase::kFull, Phase::kEndWait, Phase::kLingering, Phase::kClosed}) {
        for (const bool unsent : {false, true}) {
          out << kLink[l] << ", " << kEnding[e] << ", " << name(phase) << (unsent ? ", unsent" : "") << " -> "
              << kAction[static_cast<std::size_t>(next(static_cast<Link>(l), phase, static_cast<Ending>(e), unsent))]
              << "\n";
        }
      }
    }
  }
  EXPECT_EQ(out.str(), test::reviewed("stream/actions.states.txt")) << out.str();
}

// Of the phases not in the file none is special.
TEST(Links, OnlyAnEndBringsActions) {
  for (std::size_t p = 0; p < kPhases; ++p) {
    const auto phase = static_cast<Phase>(p);
    if (phase == Phase::kClosed || phase == Phase::kEndWait) continue;
    for (std::size_t l = 0; l < kLink.size(); ++l) {
      for (std::size_t e = 0; e < kEnding.size(); ++e) {
        EXPECT_EQ(next(static_cast<Link>(l), phase, static_cast<Ending>(e), false), LinkAction::kNone) << name(phase);
      }
    }
  }
}

}  // namespace
}  // namespace iwarp::stream
