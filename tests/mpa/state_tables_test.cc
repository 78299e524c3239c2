#include "iwarp/mpa/state_tables.h"

#include <gtest/gtest.h>

#include "tests/support/state_matrix.h"

namespace iwarp::mpa {
namespace {

// A difference means that the protocol changed: if on purpose, replace the file by what this test prints.
TEST(StateTables, InitiatorIsAsReviewed) {
  const std::string now = test::state_matrix<InitiatorState, InitiatorInput>(kInitiatorStates, kInitiatorInputs);
  EXPECT_EQ(now, test::reviewed("mpa/initiator.states.txt")) << now;
}

TEST(StateTables, ResponderIsAsReviewed) {
  const std::string now = test::state_matrix<ResponderState, ResponderInput>(kResponderStates, kResponderInputs);
  EXPECT_EQ(now, test::reviewed("mpa/responder.states.txt")) << now;
}

TEST(StateTables, EndStatesAreFinal) {
  for (std::size_t i = 0; i < kInitiatorInputs; ++i) {
    for (const auto s : {InitiatorState::kFull, InitiatorState::kRejected, InitiatorState::kFailed}) {
      EXPECT_FALSE(next(s, static_cast<InitiatorInput>(i)));
    }
  }
  for (std::size_t i = 0; i < kResponderInputs; ++i) {
    for (const auto s : {ResponderState::kFull, ResponderState::kRejected, ResponderState::kFailed}) {
      EXPECT_FALSE(next(s, static_cast<ResponderInput>(i)));
    }
  }
}

}  // namespace
}  // namespace iwarp::mpa
