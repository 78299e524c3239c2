#include "iwarp/endpoint/news.h"

#include <gtest/gtest.h>

#include <array>

#include "tests/support/covers.h"
#include "tests/support/state_matrix.h"

namespace iwarp::endpoint {
namespace {

constexpr std::array kHeard = {"nothing heard", "parameters", "a segment"};
constexpr std::array kTold = {"nothing told", "established told", "all told"};
constexpr std::array kNews = {"-", "Established", "Ended"};

template <class State>
State at(std::size_t i) {
  return static_cast<State>(i);
}

TEST(News, AreAsReviewed) {
  COVERS("RFC6581-3-4");
  std::ostringstream out;
  for (std::size_t t = 0; t < kTold.size(); ++t) {
    for (std::size_t h = 0; h < kHeard.size(); ++h) {
      for (const Heard opener : {Heard::kParameters, Heard::kSegment}) {
        for (const Phase phase : {Phase::kFull, Phase::kClosed}) {
          out << kTold[t] << ", " << kHeard[h] << ", opened by " << kHeard[static_cast<std::size_t>(opener)] << ", "
              << name(phase) << " -> "
              << kNews[static_cast<std::size_t>(next(at<Told>(t), at<Heard>(h), opener, phase))] << "\n";
        }
      }
    }
  }
  EXPECT_EQ(out.str(), test::reviewed("endpoint/news.states.txt")) << out.str();
}

// Of the phases not in the file none is special.
TEST(News, OnlyTheEndIsOne) {
  for (std::size_t p = 0; p < kPhases; ++p) {
    const auto phase = static_cast<Phase>(p);
    for (std::size_t t = 0; t < kTold.size(); ++t) {
      if (phase == Phase::kClosed) continue;
      EXPECT_NE(next(at<Told>(t), Heard::kSegment, Heard::kSegment, phase), News::kEnded) << name(phase);
    }
  }
}

}  // namespace
}  // namespace iwarp::endpoint
