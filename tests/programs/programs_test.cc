// Random legal programs of two hosts against the model. scripts/programs runs many.
//   IWARP_PROGRAMS        how many programs (1000)
//   IWARP_PROGRAMS_SEED   the seed of the first; the others follow (1)
//   IWARP_PROGRAMS_TALLY  1: prints what has happened in them (0)
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>

#include "tests/programs/generator.h"
#include "tests/programs/runner.h"
#include "tests/programs/shrinker.h"

namespace iwarp::programs {
namespace {

constexpr std::size_t kMostReports = 3;

std::uint64_t from_environment(const char* variable, std::uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// What came of many programs.
struct Sum {
  std::size_t programs = 0, skipped = 0, refused = 0;
  std::array<std::size_t, kDos> steps{};
  Tally tally;

  void add(const Outcome& out) {
    ++programs;
    skipped += out.skipped;
    refused += out.refused;
    for (std::size_t i = 0; i < kDos; ++i) steps[i] += out.steps[i];
    for (std::size_t i = 0; i < kSendOps; ++i) {
      tally.done[i] += out.tally.done[i];
      tally.flushed[i] += out.tally.flushed[i];
    }
    tally.received += out.tally.received;
    tally.receives_flushed += out.tally.receives_flushed;
    tally.waited += out.tally.waited;
    tally.ended_in_order += out.tally.ended_in_order;
    tally.ended_otherwise += out.tally.ended_otherwise;
  }
};

std::ostream& operator<<(std::ostream& out, const Sum& s) {
  out << s.programs << " programs, " << s.skipped << " steps skipped, " << s.refused << " posts refused\n";
  for (std::size_t i = 0; i < kDos; ++i) out << "  " << name(static_cast<Do>(i)) << " " << s.steps[i];
  out << "\n";
  for (std::size_t i = 0; i < kSendOps; ++i)
    out << "  " << name(static_cast<rdmap::SendOp>(i)) << " " << s.tally.done[i] << " done, " << s.tally.flushed[i]
        << " flushed\n";
  return out << "  messages " << s.tally.received << ", Receives flushed " << s.tally.receives_flushed << ", waited "
             << s.tally.waited << "\n  ended in order " << s.tally.ended_in_order << ", otherwise "
             << s.tally.ended_otherwise << "\n";
}

void report(const Program& program, const Outcome& out) {
  const Program shorter = shrink(program);
  const Outcome again = run(shorter);
  ADD_FAILURE() << "seed " << program.seed << ": " << out.fault << "\nShortened, it fails at step " << again.step
                << ": " << again.fault << "\n"
                << to_string(shorter) << "Repeat: IWARP_PROGRAMS=1 IWARP_PROGRAMS_SEED=" << program.seed
                << " test_programs --gtest_filter=Programs.KeepTheRules";
}

TEST(Programs, KeepTheRules) {
  const std::uint64_t count = from_environment("IWARP_PROGRAMS", 1000),
                      first = from_environment("IWARP_PROGRAMS_SEED", 1);
  std::size_t failures = 0;
  Sum sum;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    const Program program = generate(seed);
    const Outcome out = run(program);
    sum.add(out);
    if (out.fault.empty()) continue;
    if (++failures <= kMostReports) {
      report(program, out);
    } else {
      ADD_FAILURE() << "seed " << seed << ": " << out.fault;
    }
  }
  if (count < 500) return;
  // A generator that leaves something out would leave it untested.
  for (std::size_t i = 0; i < kDos; ++i)
    EXPECT_GT(sum.steps[i], count / 100) << name(static_cast<Do>(i)) << "\n" << sum;
  for (std::size_t i = 0; i < kSendOps; ++i)
    EXPECT_TRUE(sum.tally.done[i] > count / 10 && sum.tally.flushed[i] > count / 50)
        << name(static_cast<rdmap::SendOp>(i)) << "\n"
        << sum;
  EXPECT_GT(sum.tally.waited, count / 10) << sum;
  EXPECT_LT(sum.skipped, count) << sum;
  if (from_environment("IWARP_PROGRAMS_TALLY", 0) != 0) std::cout << sum;
}

// The model is worth something only if it notices what is wrong.
class Planted : public ::testing::TestWithParam<Fault> {};

TEST_P(Planted, IsNoticed) {
  constexpr std::size_t kWanted = 60;
  std::size_t planted = 0;
  for (std::uint64_t seed = 1; planted < kWanted && seed < 5000; ++seed) {
    const Program program = generate(seed);
    const Outcome out = run(program, GetParam());
    if (!out.planted) continue;
    ++planted;
    EXPECT_FALSE(out.fault.empty()) << "a fault passes: " << name(GetParam()) << "\n" << to_string(program);
  }
  EXPECT_EQ(planted, kWanted) << "of " << name(GetParam());
}

// A message with a wrong octet needs a Receive, a Send and a connection.
TEST(Shrinker, LeavesWhatMatters) {
  std::size_t tried = 0;
  for (std::uint64_t seed = 1; tried < 5; ++seed) {
    const Program program = generate(seed);
    if (!run(program, Fault::kReceived).planted) continue;
    ++tried;
    const Program shorter = shrink(program, Fault::kReceived);
    EXPECT_FALSE(run(shorter, Fault::kReceived).fault.empty());
    EXPECT_LE(shorter.steps.size(), 6U) << to_string(shorter);
  }
}

TEST(Generator, MakesTheSameOfTheSameSeed) {
  for (std::uint64_t seed = 1; seed < 20; ++seed) {
    EXPECT_EQ(to_string(generate(seed)), to_string(generate(seed)));
    EXPECT_NE(to_string(generate(seed)), to_string(generate(seed + 1)));
  }
}

std::vector<Fault> all_faults() {
  std::vector<Fault> out;
  for (std::size_t i = 1; i < kFaults; ++i) out.push_back(static_cast<Fault>(i));
  return out;
}

INSTANTIATE_TEST_SUITE_P(Programs, Planted, ::testing::ValuesIn(all_faults()), [](const auto& fault) {
  std::string out = name(fault.param);
  std::replace(out.begin(), out.end(), ' ', '_');
  return out;
});

}  // namespace
}  // namespace iwarp::programs
