#include "iwarp/trace/fpdu_search.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/support/segments.h"

namespace iwarp::trace {
namespace {

using test::Bytes;
using test::fpdu;
using test::send_segment;
using test::operator|;

Bytes frame(bool crc, std::uint32_t msn = 1, std::size_t payload = 16) {
  return fpdu(send_segment(test::pattern(payload), {.msn = msn}), crc);
}

TEST(FpduSearch, FindsAnFpduByItsCrcBehindJunk) {
  const FpduSearch s = find_fpdu(test::pattern(37, 3) | frame(true), std::nullopt, false);
  EXPECT_TRUE(s.found);
  EXPECT_EQ(s.skip, 37U);
  EXPECT_EQ(s.crc, true);
}

TEST(FpduSearch, WithoutCrcNeedsThreeInARow) {
  const Bytes two = frame(false, 1) | frame(false, 2);
  EXPECT_FALSE(find_fpdu(two, std::nullopt, false).found);
  EXPECT_EQ(find_fpdu(two, std::nullopt, false).skip, 0U);
  const FpduSearch s = find_fpdu(test::pattern(5) | two | frame(false, 3), std::nullopt, false);
  EXPECT_TRUE(s.found);
  EXPECT_EQ(s.skip, 5U);
  EXPECT_EQ(s.crc, false);
}

TEST(FpduSearch, AtTheEndAnyNumberWillDoThatFillsTheBytes) {
  const FpduSearch s = find_fpdu(test::pattern(5) | frame(false), std::nullopt, true);
  EXPECT_TRUE(s.found);
  EXPECT_EQ(s.skip, 5U);
  const Bytes cut = frame(false) | Bytes(30, std::byte{0});
  EXPECT_FALSE(find_fpdu(cut, std::nullopt, true).found);
}

TEST(FpduSearch, WithCrcKnownOnNothingElseCounts) {
  const Bytes three = frame(false, 1) | frame(false, 2) | frame(false, 3);
  EXPECT_FALSE(find_fpdu(three, true, true).found);
  EXPECT_TRUE(find_fpdu(three, false, true).found);
}

TEST(FpduSearch, WaitsForTheRestOfAPlausibleFpdu) {
  const Bytes whole = frame(true, 1, 600);
  for (std::size_t n = 1; n < whole.size(); ++n) {
    const FpduSearch s = find_fpdu(ConstBytes(whole).first(n), true, false);
    EXPECT_FALSE(s.found);
    EXPECT_EQ(s.skip, 0U) << n;
  }
  EXPECT_TRUE(find_fpdu(whole, true, false).found);
}

TEST(FpduSearch, ReservedBitsLengthAndOpcodeMustFit) {
  const auto found = [](Bytes b) { return find_fpdu(b, false, true).found && find_fpdu(b, false, true).skip == 0; };
  const Bytes good = fpdu(send_segment({}), false);
  ASSERT_TRUE(found(good));
  struct {
    std::size_t at;
    int value;
  } const bad[] = {{2, 0x45}, {2, 0x42}, {3, 0x53}, {3, 0x48}, {3, 0x83}, {11, 0x01}, {1, 13}, {1, 17}};
  for (const auto& b : bad) {
    Bytes broken = good;
    broken[b.at] = static_cast<std::byte>(b.value);
    EXPECT_FALSE(found(broken)) << b.at << " = " << b.value;
  }
  EXPECT_TRUE(found(fpdu(test::read_request_segment({}), false)));
  EXPECT_FALSE(
      found(fpdu(test::send_segment(Bytes(27), {}, rdmap::Opcode::kReadRequest, rdmap::kReadRequestQn), false)));
}

TEST(FpduSearch, SurvivesNoise) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    Bytes noise(random() % 2000);
    for (std::byte& b : noise) b = static_cast<std::byte>(random());
    for (const bool end : {false, true}) {
      const FpduSearch s = find_fpdu(noise, true, end);
      EXPECT_FALSE(s.found) << round;
      EXPECT_LE(s.skip, noise.size());
    }
  }
}

}  // namespace
}  // namespace iwarp::trace
