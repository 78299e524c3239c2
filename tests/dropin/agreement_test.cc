// The trailer of the private data that two drop-in ends agree by.
#include "dropin/verbs/agreement.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace iwarp::dropin {
namespace {

std::vector<std::byte> octets(std::size_t n) {
  std::vector<std::byte> all(n);
  std::uint8_t next = 1;
  for (std::byte& octet : all) octet = std::byte{next++};
  return all;
}

std::vector<std::byte> copy(ConstBytes from) {
  return {from.begin(), from.end()};
}

TEST(Agreement, NothingIsWantedUnlessAskedFor) {
  EXPECT_TRUE(wanted(Settings{}).empty());
  Settings asked;
  asked.rfc7306 = true;
  EXPECT_EQ(wanted(asked), Agreement{.rfc7306 = true});
}

TEST(Agreement, ComesBackAsItWasSent) {
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{56}, most_private_data(true)}) {
    for (unsigned flags = 0; flags < 8; ++flags) {
      const Agreement sent{.rfc7306 = (flags & 1) != 0, .roce = (flags & 2) != 0, .send_immediate = (flags & 4) != 0};
      const auto own = octets(size);
      const auto all = with_trailer(own, sent);
      ASSERT_EQ(all.size(), size + kTrailerBytes);
      const auto got = parse_private_data(all);
      EXPECT_EQ(copy(got.own), own);
      ASSERT_TRUE(got.trailer);
      EXPECT_EQ(*got.trailer, sent);
    }
  }
}

TEST(Agreement, IsAsWrittenDown) {
  const auto all = with_trailer(octets(2), {.rfc7306 = true, .send_immediate = true});
  const std::vector<std::uint8_t> expected{1, 2, 1, 5, 0, 2, 'i', 'w', 'D', 'r', 'o', 'p', 'I', 'n'};
  ASSERT_EQ(all.size(), expected.size());
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(std::to_integer<int>(all[i]), expected[i]) << i;
}

TEST(Agreement, FillsWhatThereIs) {
  EXPECT_EQ(with_trailer(octets(most_private_data(true)), {}).size(), kMostPrivateData);
  EXPECT_EQ(most_private_data(false), kMostPrivateData);
}

TEST(Agreement, DataWithoutATrailerAreTheProgramsOfAnyLength) {
  for (std::size_t size = 0; size <= 512; ++size) {
    const auto own = octets(size);
    const auto got = parse_private_data(own);
    EXPECT_EQ(copy(got.own), own);
    EXPECT_FALSE(got.trailer);
  }
}

TEST(Agreement, ACutOneIsNone) {
  const auto whole = with_trailer(octets(3), {.rfc7306 = true});
  for (std::size_t gone = 1; gone <= whole.size(); ++gone) {
    const ConstBytes front = ConstBytes{whole}.first(whole.size() - gone);
    EXPECT_FALSE(parse_private_data(front).trailer) << gone;
    EXPECT_EQ(parse_private_data(front).own.size(), front.size());
  }
  for (std::size_t gone = 1; gone <= whole.size(); ++gone) {  // the count is too large then
    const ConstBytes back = ConstBytes{whole}.subspan(gone);
    EXPECT_FALSE(parse_private_data(back).trailer) << gone;
    EXPECT_EQ(parse_private_data(back).own.size(), back.size());
  }
}

TEST(Agreement, AnyOctetOfItMatters) {
  const auto whole = with_trailer(octets(5), {.rfc7306 = true});
  for (std::size_t i = whole.size() - kMagicBytes; i < whole.size(); ++i) {
    auto bad = whole;
    bad[i] ^= std::byte{0x20};
    EXPECT_FALSE(parse_private_data(bad).trailer) << i;
  }
}

TEST(Agreement, AWrongCountIsNone) {
  for (const unsigned count : {0U, 4U, 6U, 17U, 18U, 255U, 0x0500U, 0xFFFFU}) {
    auto bad = with_trailer(octets(5), {.rfc7306 = true});
    bad[5 + 2] = static_cast<std::byte>(count >> 8);
    bad[5 + 3] = static_cast<std::byte>(count);
    const auto got = parse_private_data(bad);
    EXPECT_FALSE(got.trailer) << count;
    EXPECT_EQ(got.own.size(), bad.size());
  }
}

TEST(Agreement, UnknownFlagsMeanNothing) {
  auto all = with_trailer({}, {.rfc7306 = true});
  all[1] |= std::byte{0xF8};
  EXPECT_EQ(parse_private_data(all).trailer, Agreement{.rfc7306 = true});
}

// A version to come may have more in its trailer: the program is shown its own data all the same, and nothing is
// agreed.
TEST(Agreement, ALaterVersionIsCutOffAndAgreesOnNothing) {
  for (const int version : {0, 2, 255}) {
    auto all = octets(4);
    all.resize(4 + 9);
    const auto trailer = with_trailer({}, {.rfc7306 = true});
    all.insert(all.end(), trailer.begin(), trailer.end());
    all[all.size() - kTrailerBytes] = static_cast<std::byte>(version);
    all[all.size() - kTrailerBytes + 3] = std::byte{4};
    const auto got = parse_private_data(all);
    EXPECT_EQ(copy(got.own), octets(4));
    EXPECT_EQ(got.trailer, Agreement{});
    all[all.size() - kTrailerBytes + 3] = std::byte{14};  // more than there are
    EXPECT_FALSE(parse_private_data(all).trailer);
  }
}

TEST(Agreement, BothHaveToKnowIt) {
  const Agreement all{.rfc7306 = true, .roce = true, .send_immediate = true};
  EXPECT_EQ(both(all, all), all);
  EXPECT_TRUE(both(all, {}).empty());
  EXPECT_EQ(both({.rfc7306 = true, .roce = true}, {.roce = true, .send_immediate = true}), Agreement{.roce = true});
}

}  // namespace
}  // namespace iwarp::dropin
