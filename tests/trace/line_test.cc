#include "iwarp/trace/line.h"

#include <gmock/gmock.h>

#include "tests/support/hex.h"

namespace iwarp::trace {
namespace {

using std::chrono::microseconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

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

TEST(TraceLines, HaveTimeConnectionDirectionAndLayer) {
  Lines lines("7");
  lines.add(microseconds(0), Direction::kTx, "mpa", "A()");
  lines.add(microseconds(1234567), Direction::kRx, "rdmap", "B()");
  EXPECT_THAT(lines.take(), ElementsAre("0.000 7 tx mpa A()", "1234.567 7 rx rdmap B()"));
  EXPECT_THAT(lines.take(), IsEmpty());
}

}  // namespace
}  // namespace iwarp::trace
