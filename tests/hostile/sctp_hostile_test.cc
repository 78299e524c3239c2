// Each row of cases.tsv whose victim speaks SCTP, against our own stack: a fresh association, one broken rule, the
// reaction named there. An honest peer has an association of its own throughout and is served before each case,
// whenever the hostile one waits for the victim, and afterwards; at the end every association and descriptor is gone.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>

#include "tests/faults/process_facts.h"
#include "tests/hostile/case_list.h"
#include "tests/hostile/sctp_victim.h"
#include "tests/support/covers.h"
#include "tests/support/eventually.h"

namespace iwarp::hostile::sctp {
namespace {

constexpr std::string_view kResponder = "sctp responder", kInitiator = "sctp initiator";

std::vector<Case> cases() {
  std::vector<Case> out = read_cases(IWARP_HOSTILE_CASES);
  std::erase_if(
      out, [](const Case& c) { return not_applicable(c.expected) || (c.role != kResponder && c.role != kInitiator); });
  return out;
}

std::string case_name(const ::testing::TestParamInfo<Case>& info) {
  std::string name = info.param.role + "_" + info.param.requirement + "_" + info.param.script;
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

class HostileToSctp : public ::testing::TestWithParam<Case> {
 protected:
  static void SetUpTestSuite() {
    descriptors_ = faults::descriptors(::getpid());
    victim_ = std::make_unique<Victim>();
    honest_ = std::make_unique<Association>(*victim_);
  }
  static void TearDownTestSuite() {
    honest_.reset();
    EXPECT_TRUE(test::eventually([] { return victim_->living() == 0; })) << victim_->living() << " are left";
    victim_.reset();
    EXPECT_EQ(faults::descriptors(::getpid()), descriptors_);
  }

  inline static std::unique_ptr<Victim> victim_;
  inline static std::unique_ptr<Association> honest_;
  inline static std::size_t descriptors_ = 0;
};

TEST_P(HostileToSctp, ReactsAsListed) {
  const Case& c = GetParam();
  COVERS(c.requirement);
  const auto scripts = c.role == kResponder ? responder_scripts() : initiator_scripts();
  const auto script = std::find_if(scripts.begin(), scripts.end(), [&](const Script& s) { return s.name == c.script; });
  ASSERT_NE(script, scripts.end());
  ASSERT_TRUE(in_vocabulary(c.expected));
  ASSERT_TRUE(honest_->neighbour.is_served()) << "before";
  std::size_t served = 0;
  victim_->meanwhile = [&] {
    EXPECT_TRUE(honest_->neighbour.is_served()) << "meanwhile";
    ++served;
  };
  EXPECT_EQ(script->run(*victim_), c.expected) << c.note;
  victim_->meanwhile = nullptr;
  EXPECT_GT(served, 0u) << "the honest peer had no chance while the case was under way";
  EXPECT_TRUE(honest_->neighbour.is_served()) << "afterwards";
}

INSTANTIATE_TEST_SUITE_P(Each, HostileToSctp, ::testing::ValuesIn(cases()), case_name);

}  // namespace
}  // namespace iwarp::hostile::sctp
