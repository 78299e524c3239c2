#include "iwarp/gateway/xid_table.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace iwarp::gateway {
namespace {

using Insert = XidTable::Insert;

TEST(XidTable, TakesEachXidOnce) {
  XidTable t(4);
  EXPECT_TRUE(t.empty());
  EXPECT_EQ(t.insert(0), Insert::kInserted);
  EXPECT_EQ(t.insert(0xFFFFFFFF), Insert::kInserted);
  EXPECT_EQ(t.insert(0), Insert::kDuplicate);
  EXPECT_TRUE(t.contains(0));
  EXPECT_FALSE(t.contains(1));
  EXPECT_EQ(t.size(), 2U);
  EXPECT_TRUE(t.erase(0));
  EXPECT_FALSE(t.erase(0)) << "the second Reply to one Call";
  EXPECT_EQ(t.insert(0), Insert::kInserted) << "an xid may come again after its Reply";
}

TEST(XidTable, IsBounded) {
  XidTable t(3);
  for (const std::uint32_t xid : {10U, 20U, 30U}) EXPECT_EQ(t.insert(xid), Insert::kInserted);
  EXPECT_EQ(t.insert(40), Insert::kFull);
  EXPECT_EQ(t.insert(20), Insert::kDuplicate) << "a duplicate is one even when the table is full";
  EXPECT_TRUE(t.erase(20));
  EXPECT_EQ(t.insert(40), Insert::kInserted);
  t.clear();
  EXPECT_TRUE(t.empty());
  EXPECT_FALSE(t.contains(10));
  EXPECT_EQ(t.insert(10), Insert::kInserted);
}

TEST(XidTable, CapacityZeroTakesNothing) {
  XidTable t(0);
  EXPECT_EQ(t.insert(1), Insert::kFull);
  EXPECT_FALSE(t.erase(1));
}

TEST(XidTable, AgreesWithASetOverRandomOperations) {
  const unsigned seed = std::random_device{}();
  std::mt19937 random(seed);
  constexpr std::size_t kCapacity = 64;
  for (const std::uint32_t xids : {70U, 200U, 100000U}) {  // few xids: long runs and many collisions
    XidTable t(kCapacity);
    std::set<std::uint32_t> oracle;
    for (int i = 0; i < 20000; ++i) {
      const auto xid = static_cast<std::uint32_t>(random() % xids);
      if (random() % 2 == 0) {
        const Insert expected = oracle.count(xid) != 0       ? Insert::kDuplicate
                                : oracle.size() == kCapacity ? Insert::kFull
                                                             : Insert::kInserted;
        ASSERT_EQ(t.insert(xid), expected) << "seed " << seed;
        if (expected == Insert::kInserted) oracle.insert(xid);
      } else {
        ASSERT_EQ(t.erase(xid), oracle.erase(xid) == 1) << "seed " << seed;
      }
      ASSERT_EQ(t.size(), oracle.size());
    }
    for (std::uint32_t xid = 0; xid < xids; ++xid) ASSERT_EQ(t.contains(xid), oracle.count(xid) == 1);
  }
}

}  // namespace
}  // namespace iwarp::gateway
