#include "iwarp/base/ring.h"

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <random>

#include "iwarp/base/chunked_ring.h"

namespace iwarp {
namespace {

// Of both kinds.
template <class R>
class AnyRing : public ::testing::Test {};
using Kinds = ::testing::Types<Ring<int>, ChunkedRing<int>>;
TYPED_TEST_SUITE(AnyRing, Kinds);

TYPED_TEST(AnyRing, IsFifoAndBounded) {
  TypeParam r(3);
  EXPECT_TRUE(r.empty());
  EXPECT_TRUE(r.push(1));
  EXPECT_TRUE(r.push(2));
  EXPECT_TRUE(r.push(3));
  EXPECT_TRUE(r.full());
  EXPECT_FALSE(r.push(4));
  EXPECT_EQ(r.size(), 3u);
  EXPECT_EQ(r.front(), 1);
  EXPECT_EQ(r.pop(), 1);
  EXPECT_TRUE(r.push(5)) << "the slot is free again";
  EXPECT_EQ(r.at(0), 2);
  EXPECT_EQ(r.at(2), 5);
  EXPECT_EQ(r.pop(), 2);
  EXPECT_EQ(r.pop(), 3);
  EXPECT_EQ(r.pop(), 5);
  EXPECT_TRUE(r.empty());
}

TYPED_TEST(AnyRing, ElementsAreFilledInAndLookedAtWhereTheyLie) {
  TypeParam r(20);
  EXPECT_TRUE(r.push(0));
  for (int i = 0; i < 100; ++i) {
    for (int k = 1; k < 20; ++k) {
      int* const added = r.add();
      ASSERT_NE(added, nullptr);
      *added = i + k;
    }
    EXPECT_EQ(r.add(), nullptr) << "full";
    for (int k = 0; k < 19; ++k) {
      EXPECT_EQ(r.front(), i + k);
      r.drop();
    }
    ASSERT_EQ(r.size(), 1U);
    r.front() = i + 1;
  }
}

TYPED_TEST(AnyRing, OfCapacityZeroIsAlwaysFullAndEmpty) {
  TypeParam r(0);
  EXPECT_EQ(r.add(), nullptr);
  EXPECT_TRUE(r.full());
  EXPECT_TRUE(r.empty());
  EXPECT_FALSE(r.push(1));
}

TYPED_TEST(AnyRing, BehavesLikeADequeUnderRandomUse) {
  std::mt19937 random(42);
  for (const std::size_t capacity : {1u, 5u, 8u, 9u, 64u}) {
    TypeParam r(capacity);
    std::deque<int> model;
    std::mt19937::result_type likely = 2;  // of four: fills and empties in turn
    for (int i = 0; i < 20000; ++i) {
      if (i % 300 == 0) likely = 1 + random() % 3;
      if (random() % 4 < likely) {
        const bool fits = model.size() < capacity;
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
}

TEST(Ring, KnowsItsCapacityAndItsLast) {
  Ring<int> r(2);
  EXPECT_EQ(r.capacity(), 2u);
  for (int i = 0; i < 3; ++i) {
    r.push(i);
    EXPECT_EQ(r.back(), i);
    if (r.full()) (void)r.pop();
  }
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

}  // namespace
}  // namespace iwarp
