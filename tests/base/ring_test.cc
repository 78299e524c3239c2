#include "iwarp/base/ring.h"

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <random>

namespace iwarp {
namespace {

TEST(Ring, IsFifoAndBounded) {
  Ring<int> r(3);
  EXPECT_TRUE(r.empty());
  EXPECT_EQ(r.capacity(), 3u);
  EXPECT_TRUE(r.push(1));
  EXPECT_TRUE(r.push(2));
  EXPECT_TRUE(r.push(3));
  EXPECT_TRUE(r.full());
  EXPECT_FALSE(r.push(4));
  EXPECT_EQ(r.size(), 3u);
  EXPECT_EQ(r.front(), 1);
  EXPECT_EQ(r.back(), 3);
  EXPECT_EQ(r.pop(), 1);
  EXPECT_TRUE(r.push(5)) << "the slot is free again";
  EXPECT_EQ(r.at(0), 2);
  EXPECT_EQ(r.at(2), 5);
  EXPECT_EQ(r.pop(), 2);
  EXPECT_EQ(r.pop(), 3);
  EXPECT_EQ(r.pop(), 5);
  EXPECT_TRUE(r.empty());
}

TEST(Ring, OfCapacityZeroIsAlwaysFullAndEmpty) {
  Ring<int> r(0);
  EXPECT_TRUE(r.full());
  EXPECT_TRUE(r.empty());
  EXPECT_FALSE(r.push(1));
}

TEST(Ring, HoldsMoveOnlyValuesAndFreesThem) {
  Ring<std::shared_ptr<int>> r(2);
  auto watched = std::make_shared<int>(7);
  r.push(watched);
  EXPECT_EQ(watched.use_count(), 2);
  EXPECT_EQ(*r.pop(), 7);
  EXPECT_EQ(watched.use_count(), 1) << "a popped slot keeps nothing alive";
  r.push(watched);
  r.clear();
  EXPECT_EQ(watched.use_count(), 1);
  Ring<std::unique_ptr<int>> m(1);
  EXPECT_TRUE(m.push(std::make_unique<int>(9)));
  EXPECT_EQ(*m.pop(), 9);
}

TEST(Ring, BehavesLikeADequeUnderRandomUse) {
  std::mt19937 random(42);
  Ring<unsigned> r(5);
  std::deque<unsigned> model;
  for (unsigned i = 0; i < 10000; ++i) {
    if (random() % 2 == 0) {
      const bool fits = model.size() < 5;
      EXPECT_EQ(r.push(i), fits);
      if (fits) model.push_back(i);
    } else if (!model.empty()) {
      EXPECT_EQ(r.pop(), model.front());
      model.pop_front();
    }
    ASSERT_EQ(r.size(), model.size());
    for (std::size_t k = 0; k < model.size(); ++k) ASSERT_EQ(r.at(k), model[k]);
  }
}

}  // namespace
}  // namespace iwarp
