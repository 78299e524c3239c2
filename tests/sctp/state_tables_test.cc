#include "iwarp/sctp/state_tables.h"

#include <gtest/gtest.h>

#include <sstream>

#include "tests/support/state_matrix.h"

namespace iwarp::sctp {
namespace {

// Every pair that the role can meet, a line each: "FROM + input -> TO", with what is sent, or "-".
std::string matrix(Role role) {
  std::ostringstream out;
  for (std::size_t s = 0; s < kSessionStates; ++s) {
    const auto from = static_cast<SessionState>(s);
    if (!is_of(role, from)) continue;
    for (std::size_t i = 0; i < kSessionInputs; ++i) {
      const auto on = static_cast<SessionInput>(i);
      const auto step = next(role, from, on);
      out << name(from) << " + " << name(on) << " -> " << (step ? name(step->to) : "-");
      if (step && step->sends != Sends::kNothing) out << ", sends " << name(step->sends);
      out << "\n";
    }
  }
  return out.str();
}

// A difference means that the protocol changed: if on purpose, replace the file by what this test prints.
TEST(SctpStateTables, ActiveIsAsReviewed) {
  const std::string now = matrix(Role::kActive);
  EXPECT_EQ(now, test::reviewed("sctp/active.states.txt")) << now;
}

TEST(SctpStateTables, PassiveIsAsReviewed) {
  const std::string now = matrix(Role::kPassive);
  EXPECT_EQ(now, test::reviewed("sctp/passive.states.txt")) << now;
}

template <class Check>
void each_step(const Check& check) {
  for (const Role role : {Role::kActive, Role::kPassive}) {
    for (std::size_t s = 0; s < kSessionStates; ++s) {
      for (std::size_t i = 0; i < kSessionInputs; ++i) {
        const auto from = static_cast<SessionState>(s);
        if (const auto step = next(role, from, static_cast<SessionInput>(i)))
          check(role, from, static_cast<SessionInput>(i), *step);
      }
    }
  }
}

TEST(SctpStateTables, EveryLivingStateCanBeLostOrBroken) {
  for (const Role role : {Role::kActive, Role::kPassive}) {
    for (std::size_t s = 0; s < kSessionStates; ++s) {
      const auto state = static_cast<SessionState>(s);
      if (is_over(state) || !is_of(role, state)) continue;
      EXPECT_EQ(next(role, state, SessionInput::kLost)->to, SessionState::kLost) << name(state);
      const auto broken = next(role, state, SessionInput::kViolation);
      const bool deaf = state == SessionState::kFailing || state == SessionState::kAnswering;
      EXPECT_EQ(broken.has_value(), !deaf) << name(state);
    }
  }
}

TEST(SctpStateTables, RolesDoNotMixAndNothingLeadsOutOfTheEnd) {
  each_step([](Role role, SessionState from, SessionInput, const SessionStep& step) {
    EXPECT_TRUE(is_of(role, from)) << name(from);
    EXPECT_TRUE(is_of(role, step.to)) << name(step.to);
    EXPECT_FALSE(is_over(from));
  });
}

}  // namespace
}  // namespace iwarp::sctp
