#include "iwarp/stream/carry.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

namespace iwarp::stream {
namespace {

ConstBytes octets(const std::string& text) {
  return std::as_bytes(std::span(text));
}

std::string text_of(MutBytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void fill(Carry& carry, const std::string& text) {
  std::memcpy(carry.missing().data(), text.data(), text.size());
  carry.arrived(text.size());
}

TEST(Carry, StartsEmptyAndWantsNothing) {
  const Carry carry;
  EXPECT_TRUE(carry.empty());
  EXPECT_TRUE(carry.complete());
  EXPECT_EQ(carry.missing_bytes(), 0U);
}

TEST(Carry, CollectsWhatIsWanted) {
  Carry carry;
  carry.keep(octets("abc"), 8);
  EXPECT_FALSE(carry.empty());
  EXPECT_EQ(carry.missing().size(), 5U);
  fill(carry, "de");
  EXPECT_FALSE(carry.complete());
  fill(carry, "fgh");
  EXPECT_TRUE(carry.complete());
  EXPECT_EQ(text_of(carry.arrived()), "abcdefgh");
}

TEST(Carry, GoesOnWithItselfWhenMoreIsWanted) {
  Carry carry;
  carry.keep(octets("abc"), 3);
  carry.keep(carry.arrived(), 100000);  // its memory moves
  EXPECT_EQ(carry.missing_bytes(), 99997U);
  EXPECT_EQ(text_of(carry.arrived()), "abc");
  carry.keep(carry.arrived(), 100000);  // and now it does not
  EXPECT_EQ(text_of(carry.arrived()), "abc");
}

TEST(Carry, NothingOfTheLastOneIsLeft) {
  Carry carry;
  carry.keep(octets("the last one"), 12);
  carry.clear();
  EXPECT_TRUE(carry.empty());
  EXPECT_TRUE(carry.complete());
  carry.keep(octets("new"), 4);
  EXPECT_EQ(text_of(carry.arrived()), "new");
  EXPECT_EQ(carry.missing_bytes(), 1U);
  carry.clear();
  carry.release();
  EXPECT_EQ(carry.missing_bytes(), 0U);
  carry.keep(octets("again"), 5);
  EXPECT_EQ(text_of(carry.arrived()), "again");
}

}  // namespace
}  // namespace iwarp::stream
