#include "iwarp/base/result.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace iwarp {
namespace {

Result<std::string> text_or_error(bool ok) {
  if (!ok) return make_error(Errc::kTimeout);
  return std::string("fine");
}

TEST(Result, HoldsAValue) {
  const auto r = text_or_error(true);
  ASSERT_TRUE(r.ok());
  EXPECT_TRUE(static_cast<bool>(r));
  EXPECT_EQ(*r, "fine");
  EXPECT_EQ(r->size(), 4u);
  EXPECT_EQ(r.value(), "fine");
  EXPECT_THROW((void)r.error(), std::bad_variant_access);
}

TEST(Result, HoldsAnError) {
  auto r = text_or_error(false);
  EXPECT_FALSE(r.ok());
  EXPECT_FALSE(static_cast<bool>(r));
  EXPECT_EQ(r.error().code, Errc::kTimeout);
  EXPECT_THROW((void)r.value(), std::bad_variant_access);
}

TEST(Result, MovesItsValueOut) {
  Result<std::unique_ptr<int>> r(std::make_unique<int>(3));
  *r.value() = 4;
  const std::unique_ptr<int> out = std::move(r).value();
  EXPECT_EQ(*out, 4);
}

TEST(ResultOfVoid, IsOkUnlessGivenAnError) {
  const Result<void> fine;
  EXPECT_TRUE(fine.ok());
  EXPECT_TRUE(static_cast<bool>(fine));
  const Result<void> bad = make_error(Errc::kQueueFull, "no room");
  EXPECT_FALSE(bad.ok());
  EXPECT_EQ(bad.error().code, Errc::kQueueFull);
  EXPECT_STREQ(bad.error().why, "no room");
}

}  // namespace
}  // namespace iwarp
