#include "iwarp/mpa/state_tables.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "tests/support/vectors.h"

namespace iwarp::mpa {
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

std::string reviewed(const std::string& file) {
  std::ifstream in(test::vector_path("mpa/" + file));
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

// A difference means that the protocol changed: if on purpose, replace the file by what this test prints.
TEST(StateTables, InitiatorIsAsReviewed) {
  const std::string now = matrix<InitiatorState, InitiatorInput>(kInitiatorStates, kInitiatorInputs);
  EXPECT_EQ(now, reviewed("initiator.states.txt")) << now;
}

TEST(StateTables, ResponderIsAsReviewed) {
  const std::string now = matrix<ResponderState, ResponderInput>(kResponderStates, kResponderInputs);
  EXPECT_EQ(now, reviewed("responder.states.txt")) << now;
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
