#include "iwarp/stream/outward.h"

#include <gtest/gtest.h>

#include <array>

#include "tests/support/covers.h"
#include "tests/support/state_matrix.h"

namespace iwarp::stream {
namespace {

constexpr std::array kHeard = {"nothing heard", "parameters", "an FPDU"};
constexpr std::array kTold = {"nothing told", "established told", "all told"};
constexpr std::array kNews = {"-", "Established", "Disconnected"};
constexpr std::array kLink = {"open", "half-closed", "released"};
constexpr std::array kEnding = {"error", "orderly", "reset"};
constexpr std::array kAction = {"-", "shut down write", "close", "reset"};

template <class State>
State at(std::size_t i) {
  return static_cast<State>(i);
}

TEST(Outward, NewsAreAsReviewed) {
  COVERS("RFC6581-3-4");
  std::ostringstream out;
  for (std::size_t t = 0; t < kTold.size(); ++t) {
    for (std::size_t h = 0; h < kHeard.size(); ++h) {
      for (const Heard opener : {Heard::kParameters, Heard::kFpdu}) {
        for (const Phase phase : {Phase::kFull, Phase::kClosed}) {
          out << kTold[t] << ", " << kHeard[h] << ", opened by " << kHeard[static_cast<std::size_t>(opener)] << ", "
              << name(phase) << " -> "
              << kNews[static_cast<std::size_t>(next(at<Told>(t), at<Heard>(h), opener, phase))] << "\n";
        }
      }
    }
  }
  EXPECT_EQ(out.str(), test::reviewed("stream/news.states.txt")) << out.str();
}

TEST(Outward, ActionsAreAsReviewed) {
  std::ostringstream out;
  for (std::size_t l = 0; l < kLink.size(); ++l) {
    for (std::size_t e = 0; e < kEnding.size(); ++e) {
      for (const Phase phase : {Phase::kFull, Phase::kFinWait, Phase::kLingering, Phase::kClosed}) {
        for (const bool unsent : {false, true}) {
          out << kLink[l] << ", " << kEnding[e] << ", " << name(phase) << (unsent ? ", unsent" : "") << " -> "
              << kAction[static_cast<std::size_t>(next(at<Link>(l), phase, at<Ending>(e), unsent))] << "\n";
        }
      }
    }
  }
  EXPECT_EQ(out.str(), test::reviewed("stream/actions.states.txt")) << out.str();
}

// Of the phases not in the files none is special.
TEST(Outward, OnlyTheEndBringsDisconnectedAndActions) {
  for (std::size_t p = 0; p < kPhases; ++p) {
    const auto phase = static_cast<Phase>(p);
    for (std::size_t t = 0; t < kTold.size(); ++t) {
      if (phase == Phase::kClosed) continue;
      EXPECT_NE(next(at<Told>(t), Heard::kFpdu, Heard::kFpdu, phase), News::kDisconnected) << name(phase);
    }
    for (std::size_t l = 0; l < kLink.size(); ++l) {
      for (std::size_t e = 0; e < kEnding.size(); ++e) {
        if (phase == Phase::kClosed || phase == Phase::kFinWait) continue;
        EXPECT_EQ(next(at<Link>(l), phase, at<Ending>(e), false), LinkAction::kNone) << name(phase);
      }
    }
  }
}

}  // namespace
}  // namespace iwarp::stream
