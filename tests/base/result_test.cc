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
  EXPECT_THROW((void)*r, std::bad_variant_access);
}

TEST(Result, ValueThrowsTheError) {
  const Result<std::string> r = make_error(Errc::kTimeout, "too late");
  try {
    (void)r.value();
    FAIL() << "value() of an error";
  } catch (const std::system_error& thrown) {
    EXPECT_TRUE(thrown.code() == Errc::kTimeout);
    EXPECT_STREQ(thrown.what(), "too late");
  }
  EXPECT_THROW((void)text_or_error(false).value(), std::system_error);
  EXPECT_THROW(Result<void>(make_error(Errc::kQueueFull)).value(), std::system_error);
  EXPECT_NO_THROW(Result<void>().value());
}

TEST(Result, MovesItsValueOut) {
  Result<std::unique_ptr<int>> r(std::make_unique<int>(3));
  *r.value() = 4;
  const std::unique_ptr<int> out = std::move(r).value();
  EXPECT_EQ(*out, 4);
  Result<std::unique_ptr<int>> again(std::make_unique<int>(5));
  const std::unique_ptr<int> moved = *std::move(again);
  EXPECT_EQ(*moved, 5);
}

TEST(Result, GivesAnotherValueInPlaceOfAnError) {
  EXPECT_EQ(text_or_error(true).value_or("nothing"), "fine");
  EXPECT_EQ(text_or_error(false).value_or("nothing"), "nothing");
  const auto kept = text_or_error(true);
  EXPECT_EQ(kept.value_or("nothing"), "fine");
  EXPECT_EQ(*kept, "fine");
  Result<std::unique_ptr<int>> r(std::make_unique<int>(3));
  EXPECT_EQ(*std::move(r).value_or(nullptr), 3);
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
