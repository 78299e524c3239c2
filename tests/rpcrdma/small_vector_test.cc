#include "iwarp/rpcrdma/small_vector.h"

#include <gtest/gtest.h>

namespace iwarp::rpcrdma {
namespace {

using Vector = SmallVector<int, 2>;

Vector filled(int n) {
  Vector v;
  for (int i = 0; i < n; ++i) v.push_back(i);
  return v;
}

TEST(SmallVector, KeepsItsElementsAcrossTheStepToTheHeap) {
  for (int n = 0; n < 9; ++n) {
    const Vector v = filled(n);
    ASSERT_EQ(v.size(), static_cast<std::size_t>(n));
    EXPECT_EQ(v.empty(), n == 0);
    for (int i = 0; i < n; ++i) EXPECT_EQ(v[static_cast<std::size_t>(i)], i);
    EXPECT_EQ(v.end() - v.begin(), n);
  }
}

TEST(SmallVector, ComparesElementsWhereverTheyLive) {
  Vector reserved;
  reserved.reserve(10);
  reserved.push_back(0);
  EXPECT_EQ(reserved, filled(1));
  EXPECT_NE(reserved, filled(2));
  EXPECT_EQ(filled(5), filled(5));
  EXPECT_EQ((Vector{0, 1, 2}), filled(3));
}

TEST(SmallVector, ReserveKeepsWhatIsThere) {
  Vector v = filled(2);
  v.reserve(2);
  EXPECT_EQ(v, filled(2));
  v.reserve(100);
  EXPECT_EQ(v, filled(2));
}

TEST(SmallVector, CopiesAndMovesAreIndependent) {
  for (int n : {1, 5}) {
    Vector a = filled(n);
    Vector b = a;
    b.push_back(77);
    EXPECT_EQ(a, filled(n));
    Vector c = std::move(a);
    EXPECT_EQ(c, filled(n));
    a = filled(1);  // a moved-from vector may be assigned
    EXPECT_EQ(a, filled(1));
  }
}

TEST(SmallVector, ClearedVectorIsUsableAgain) {
  Vector v = filled(5);
  v.clear();
  EXPECT_TRUE(v.empty());
  v.push_back(0);
  EXPECT_EQ(v, filled(1));
}

}  // namespace
}  // namespace iwarp::rpcrdma
