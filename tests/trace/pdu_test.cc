#include "iwarp/trace/pdu.h"

#include <gtest/gtest.h>

#include "tests/support/hex.h"

namespace iwarp::trace {
namespace {

TEST(TracePdu, WritesEveryKindOfField) {
  const test::Bytes octets = test::hex("00 ff 1a");
  const Pdu pdu =
      Pdu("Name").number("n", 18446744073709551615U).hex("h", 0x1f).octets("o", octets).word("w", "SUCCESS");
  EXPECT_EQ(pdu.str(), "Name(n=18446744073709551615, h=0x1f, o=00ff1a, w=SUCCESS)");
  EXPECT_EQ(Pdu("Empty").str(), "Empty()");
}

TEST(TracePdu, CutsLongOctets) {
  EXPECT_EQ(Pdu("P").octets("o", test::hex("010203"), 2).str(), "P(o=0102...)");
  EXPECT_EQ(Pdu("P").octets("o", test::hex("0102"), 2).str(), "P(o=0102)");
}

// What a peer sends must not make two lines out of one, nor end a quoted text.
TEST(TracePdu, EscapesText) {
  EXPECT_EQ(Pdu("P").text("t", "a\"b\\c\nd\x7f").str(), R"(P(t="a\x22b\x5cc\x0ad\x7f"))");
}

TEST(TracePdu, FindsFields) {
  Pdu pdu("P");
  pdu.number("n", 7).milliseconds("t", 1234567).list("l", "[a b]").first_number("frame", 3);
  EXPECT_EQ(pdu.str(), "P(frame=3, n=7, t=1234.567, l=[a b])");
  EXPECT_EQ(pdu.number_of("n"), 7U);
  EXPECT_EQ(pdu.number_of("t"), 1234567U);
  EXPECT_EQ(pdu.number_of("absent"), 0U);
  ASSERT_NE(pdu.find("l"), nullptr);
  EXPECT_EQ(pdu.find("l")->value, "[a b]");
  EXPECT_EQ(pdu.find("absent"), nullptr);
  EXPECT_EQ(Pdu("P").milliseconds("t", -5).str(), "P(t=0.000)");
}

}  // namespace
}  // namespace iwarp::trace
