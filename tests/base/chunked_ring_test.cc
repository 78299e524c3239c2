#include "iwarp/base/chunked_ring.h"

#include <gtest/gtest.h>

#include <random>

namespace iwarp {
namespace {

constexpr std::size_t kChunk = ChunkedRing<int>::kChunk;

TEST(ChunkedRing, TakesMemoryForWhatItHasHeldAtATime) {
  ChunkedRing<unsigned> r(64);
  EXPECT_EQ(r.allocated(), 0u);
  for (unsigned i = 0; i < 1000; ++i) {
    r.push(i);
    EXPECT_EQ(r.pop(), i);
  }
  EXPECT_EQ(r.allocated(), kChunk);
  r.push(0);
  for (unsigned i = 1; i < 1000; ++i) {
    r.push(i);
    EXPECT_EQ(r.pop(), i - 1);
  }
  EXPECT_EQ(r.allocated(), 2 * kChunk) << "two elements may lie in two chunks";
  while (r.push(1)) {
  }
  EXPECT_EQ(r.size(), 64u);
  EXPECT_LE(r.allocated(), 64 + kChunk);
  EXPECT_GE(r.allocated(), 64u);
}

TEST(ChunkedRing, DoesNotMoveElements) {
  ChunkedRing<int> r(64);
  r.push(7);
  const int* const first = &r.front();
  while (r.push(1)) {
  }
  EXPECT_EQ(&r.front(), first);
  EXPECT_EQ(*first, 7);
}

bool no_memory = false;
struct Element {
  int value = 0;
  void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
    return no_memory ? nullptr : ::operator new(size, std::nothrow);
  }
  void operator delete[](void* p) { ::operator delete(p); }
};

TEST(ChunkedRing, GoesOnAfterAShortageOfMemory) {
  ChunkedRing<Element> r(64);
  no_memory = true;
  EXPECT_FALSE(r.push({1}));
  EXPECT_TRUE(r.empty());
  EXPECT_FALSE(r.full());
  no_memory = false;
  for (int i = 0; i < static_cast<int>(kChunk); ++i) EXPECT_TRUE(r.push({i}));
  no_memory = true;
  EXPECT_FALSE(r.push({100}));
  EXPECT_EQ(r.pop().value, 0);
  EXPECT_FALSE(r.push({100})) << "the first chunk is still in use";
  no_memory = false;
  EXPECT_TRUE(r.push({100}));
  for (int i = 1; i < static_cast<int>(kChunk); ++i) EXPECT_EQ(r.pop().value, i);
  EXPECT_EQ(r.pop().value, 100);
}

TEST(ChunkedRing, TakesNoMoreThanTwoChunksBeyondItsCapacity) {
  std::mt19937 random(42);
  for (const std::size_t capacity : {1u, 5u, 8u, 9u, 64u}) {
    ChunkedRing<int> r(capacity);
    for (int i = 0; i < 20000; ++i) {
      if (r.empty() || (!r.full() && random() % 2 == 0)) {
        EXPECT_TRUE(r.push(i));
      } else {
        (void)r.pop();
      }
    }
    EXPECT_LE(r.allocated(), capacity + 2 * kChunk);
  }
}

TEST(ChunkedRing, ReservesSoThatAddSucceeds) {
  ChunkedRing<int> ring(20);
  EXPECT_TRUE(ring.reserve(0));
  EXPECT_EQ(ring.allocated(), 0u);
  EXPECT_TRUE(ring.reserve(9));
  EXPECT_EQ(ring.allocated(), 16u);
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(ring.push(i));
  EXPECT_FALSE(ring.reserve(1));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(ring.pop(), i);
  EXPECT_TRUE(ring.reserve(5));
  EXPECT_FALSE(ring.reserve(6));
  const std::size_t before = ring.allocated();
  for (int i = 20; i < 25; ++i) ASSERT_TRUE(ring.push(i));
  EXPECT_EQ(ring.allocated(), before);
  for (int i = 5; i < 25; ++i) EXPECT_EQ(ring.pop(), i);
}

}  // namespace
}  // namespace iwarp
