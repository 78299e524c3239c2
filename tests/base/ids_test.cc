#include "iwarp/base/ids.h"

#include <gtest/gtest.h>

#include <type_traits>

namespace iwarp {
namespace {

static_assert(!std::is_convertible_v<Stag, std::uint32_t>);
static_assert(!std::is_convertible_v<std::uint32_t, Stag>);
static_assert(!std::is_same_v<std::underlying_type_t<Stag>, PdId>);
static_assert(sizeof(Stag) == 4 && sizeof(Msn) == 4);

TEST(Stag, GivesItsRawValue) {
  EXPECT_EQ(raw(Stag{0x01020304}), 0x01020304u);
}

TEST(Msn, StartsAtOneAndWrapsToZero) {
  Msn m;
  EXPECT_EQ(m.value, 1u);
  m.advance();
  EXPECT_EQ(m, Msn{2});
  Msn last{0xFFFFFFFFu};
  last.advance();
  EXPECT_EQ(last.value, 0u);
}

TEST(Msn, DistanceIsModuloTwoToTheThirtyTwo) {
  EXPECT_EQ(Msn{5}.distance_from(Msn{3}), 2);
  EXPECT_EQ(Msn{3}.distance_from(Msn{5}), -2);
  EXPECT_EQ(Msn{1}.distance_from(Msn{0xFFFFFFFFu}), 2) << "across the wrap";
  EXPECT_EQ(Msn{0xFFFFFFFFu}.distance_from(Msn{1}), -2);
  EXPECT_EQ(Msn{7}.distance_from(Msn{7}), 0);
  EXPECT_EQ(Msn{0x80000000u}.distance_from(Msn{1}), 0x7FFFFFFF) << "the farthest that still counts as later";
}

}  // namespace
}  // namespace iwarp
