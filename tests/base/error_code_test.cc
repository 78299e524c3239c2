#include "iwarp/base/error_code.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace iwarp {
namespace {

TEST(ErrorCode, IsMadeOfAnErrc) {
  const std::error_code code = Errc::kCrcMismatch;
  EXPECT_TRUE(static_cast<bool>(code));
  EXPECT_STREQ(code.category().name(), "iwarp");
  EXPECT_EQ(code.value(), static_cast<int>(Errc::kCrcMismatch));
  EXPECT_EQ(code.message(), "FPDU CRC mismatch");
  EXPECT_TRUE(code == Errc::kCrcMismatch);
  EXPECT_FALSE(code == Errc::kFpduLength);
}

TEST(ErrorCode, WithoutAnErrorIsFalse) {
  EXPECT_FALSE(std::error_code(Errc::kOk));
  EXPECT_TRUE(std::error_code() == Errc::kOk);
  EXPECT_FALSE(std::error_code(Errc::kTimeout) == Errc::kOk);
}

TEST(ErrorCode, KeepsTheTextOfAnError) {
  const char* const why = "Connection refused: nothing listens there";
  const std::error_code code = make_error_code(make_error(Errc::kSystem, why));
  EXPECT_EQ(code.message(), why);
  EXPECT_STREQ(code.category().name(), "iwarp");
  EXPECT_TRUE(code == Errc::kSystem);
  EXPECT_FALSE(code == Errc::kTimeout);
  EXPECT_EQ(code, make_error_code(make_error(Errc::kSystem, why))) << "the same text, the same code";
  EXPECT_EQ(make_error_code(make_error(Errc::kSystem)), make_error_code(Errc::kSystem)) << "the standard text";
}

TEST(ErrorCode, IsNotEqualToAnErrcOfTheSameNumberInAnotherCategory) {
  const std::error_code other(static_cast<int>(Errc::kTimeout), std::generic_category());
  EXPECT_FALSE(other == Errc::kTimeout);
}

TEST(ErrorCode, HasAConditionForEachErrc) {
  for (int i = 0; i <= static_cast<int>(Errc::kLast); ++i) {
    const auto errc = static_cast<Errc>(i);
    EXPECT_TRUE(make_error_code(errc) == condition(errc)) << name(errc);
    EXPECT_TRUE(make_error_code(make_error(errc, "another text")) == condition(errc)) << name(errc);
    EXPECT_FALSE(make_error_condition(condition(errc)).message().empty());
  }
  EXPECT_FALSE(std::error_code(Errc::kCrcMismatch) == Condition::kDisconnected);
}

TEST(ErrorCode, EqualsWhatTheStandardCallsTheSame) {
  const std::pair<Errc, std::errc> same[] = {
      {Errc::kTimeout, std::errc::timed_out},
      {Errc::kStartupTimeout, std::errc::timed_out},
      {Errc::kAborted, std::errc::operation_canceled},
      {Errc::kPeerRejected, std::errc::connection_refused},
      {Errc::kConnectionRefused, std::errc::connection_refused},
      {Errc::kConnectionLost, std::errc::connection_reset},
      {Errc::kNotConnected, std::errc::not_connected},
      {Errc::kInvalidArgument, std::errc::invalid_argument},
  };
  for (const auto& [errc, standard] : same) {
    EXPECT_TRUE(make_error_code(errc) == standard) << name(errc);
    EXPECT_FALSE(make_error_code(errc) == std::errc::address_in_use) << name(errc);
  }
}

TEST(ErrorCode, TakesAnyNumber) {
  EXPECT_FALSE(std::error_code(-1, error_category()).message().empty());
  EXPECT_FALSE(std::error_code(9999, error_category()).message().empty());
}

TEST(ErrorCode, IsMadeInManyThreads) {
  static const char* const kTexts[] = {"a", "b", "c", "d", "e", "f", "g", "h"};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([] {
      for (const char* text : kTexts) EXPECT_EQ(make_error_code(make_error(Errc::kSystem, text)).message(), text);
    });
  }
  for (auto& t : threads) t.join();
}

TEST(ErrorCode, AnErrorTellsWhetherItIsOne) {
  EXPECT_FALSE(static_cast<bool>(Error{}));
  EXPECT_TRUE(static_cast<bool>(make_error(Errc::kTimeout)));
  EXPECT_STREQ(make_error(Errc::kTimeout, "slow").message(), "slow");
}

}  // namespace
}  // namespace iwarp
