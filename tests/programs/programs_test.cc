// Random legal programs of two hosts against the model. scripts/programs runs many.
//   IWARP_PROGRAMS        how many programs (1000)
//   IWARP_PROGRAMS_SEED   the seed of the first; the others follow (1)
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

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

TEST(Programs, KeepTheRules) {
  const std::uint64_t count = from_environment("IWARP_PROGRAMS", 1000),
                      first = from_environment("IWARP_PROGRAMS_SEED", 1);
  std::size_t failures = 0, taken = 0, skipped = 0, refused = 0, completions = 0;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    const Program program = generate(seed);
    const Outcome out = run(program);
    taken += out.taken;
    skipped += out.skipped;
    refused += out.refused;
    completions += out.completions;
    if (out.fault.empty()) continue;
    ++failures;
    if (failures > kMostReports) {
      ADD_FAILURE() << "seed " << seed << ": " << out.fault;
      continue;
    }
    const Program shorter = shrink(program);
    const Outcome again = run(shorter);
    ADD_FAILURE() << "seed " << seed << ": " << out.fault << "\nShortened, it fails at step " << again.step << ": "
                  << again.fault << "\n"
                  << to_string(shorter) << "Repeat: IWARP_PROGRAMS=1 IWARP_PROGRAMS_SEED=" << seed
                  << " test_programs --gtest_filter=Programs.KeepTheRules";
  }
  RecordProperty("steps", std::to_string(taken));
  RecordProperty("skipped", std::to_string(skipped));
  RecordProperty("refused", std::to_string(refused));
  RecordProperty("completions", std::to_string(completions));
  EXPECT_LT(skipped, taken / 20 + 1) << "the generator makes steps that are not legal";
}

// The model is worth something only if it notices what is wrong.
class Planted : public ::testing::TestWithParam<Fault> {};

TEST_P(Planted, IsNoticed) {
  constexpr std::size_t kWanted = 20;
  std::size_t planted = 0;
  for (std::uint64_t seed = 1; planted < kWanted && seed < 3000; ++seed) {
    const Program program = generate(seed);
    const Outcome out = run(program, GetParam());
    if (!out.planted) continue;
    ++planted;
    EXPECT_FALSE(out.fault.empty()) << "a fault passes: " << name(GetParam()) << "\n" << to_string(program);
  }
  EXPECT_EQ(planted, kWanted) << "of " << name(GetParam());
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
