#include "iwarp/gateway/session_life.h"

#include <gtest/gtest.h>

#include "tests/support/state_matrix.h"

namespace iwarp::gateway {
namespace {

TEST(SessionLife, IsAsReviewed) {
  const auto is = test::state_matrix<Life, LifeInput>(kLives, kLifeInputs);
  EXPECT_EQ(is, test::reviewed("gateway/life.states.txt")) << is;
}

TEST(SessionLife, IsOverOnceFromEverywhere) {
  for (std::size_t l = 0; l < kLives; ++l) {
    Life life = static_cast<Life>(l);
    EXPECT_EQ(step(life, LifeInput::kReleased), l != static_cast<std::size_t>(Life::kOver));
    EXPECT_EQ(life, Life::kOver);
    for (std::size_t i = 0; i < kLifeInputs; ++i) EXPECT_FALSE(step(life, static_cast<LifeInput>(i)));
  }
}

}  // namespace
}  // namespace iwarp::gateway
