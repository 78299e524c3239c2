#include "iwarp/cm/operations.h"

#include <gtest/gtest.h>

namespace iwarp::cm {
namespace {

TEST(Canceller, CancelsOnce) {
  Canceller c;
  int cancelled = 0;
  c.set([&] { ++cancelled; });
  c.cancel();
  c.cancel();
  EXPECT_EQ(cancelled, 1);
}

TEST(Canceller, CancelsAtOnceWhatItWasAskedForBefore) {
  Canceller c;
  int cancelled = 0;
  c.cancel();
  c.set([&] { ++cancelled; });
  EXPECT_EQ(cancelled, 1);
}

TEST(Canceller, NeitherCancelsNorKeepsWhatIsOver) {
  Canceller c;
  const auto held = std::make_shared<int>();
  c.set([held] { FAIL(); });
  c.drop();
  EXPECT_EQ(held.use_count(), 1);
  c.set([held] { FAIL(); });
  EXPECT_EQ(held.use_count(), 1);
  c.cancel();
  c.set([held] { FAIL(); });
}

TEST(Cancellers, CancelAllThatAreThere) {
  Cancellers all;
  int cancelled = 0;
  const auto one = all.make(), other = all.make();
  {
    const auto gone = all.make();
    gone->set([&] { ++cancelled; });
  }
  one->set([&] { ++cancelled; });
  all.cancel();
  other->set([&] { ++cancelled; });
  EXPECT_EQ(cancelled, 2);
  all.make()->set([&] { ++cancelled; });
  EXPECT_EQ(cancelled, 2);
}

}  // namespace
}  // namespace iwarp::cm
