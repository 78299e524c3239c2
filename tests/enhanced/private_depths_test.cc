#include "iwarp/enhanced/private_depths.h"

#include <gtest/gtest.h>

#include "tests/support/hex.h"

namespace iwarp::enhanced {
namespace {

using test::hex;
using test::to_hex;

TEST(PrivateDepths, AreReadInEitherOctetOrder) {
  EXPECT_EQ(parse_private_depths(hex("00000020 00000001")), (Depths{32, 1}));
  EXPECT_EQ(parse_private_depths(hex("20000000 01000000")), (Depths{32, 1})) << "Linux cifs and ksmbd";
  EXPECT_EQ(parse_private_depths(hex("00003ffe 00000100")), (Depths{kMaxIrdOrd, 256}));
  EXPECT_EQ(parse_private_depths(hex("fe3f0000 00010000")), (Depths{kMaxIrdOrd, 256}));
  EXPECT_EQ(parse_private_depths(hex("00000020 00000001 0102030405")), (Depths{32, 1})) << "more may follow";
}

TEST(PrivateDepths, NothingElseIsTakenForThem) {
  for (const char* octets : {"", "00000020 000000", "00000000 00000001", "00000001 00000000", "00003fff 00000001",
                             "00000001 00003fff", "00000020 01000000", "f6ab0e18 01010303", "01020304 05060708"})
    EXPECT_FALSE(parse_private_depths(hex(octets))) << octets;
}

TEST(PrivateDepths, AreWrittenAsSpecified) {
  EXPECT_EQ(to_hex(write_private_depths({32, 1})), "0000002000000001");
  for (const Depths d : {Depths{1, 1}, Depths{255, 256}, Depths{kMaxIrdOrd, kMaxIrdOrd}})
    EXPECT_EQ(parse_private_depths(write_private_depths(d)), d);
}

TEST(PrivateDepths, AnswerIsWhatBothCanDo) {
  const Depths initiator{32, 1}, responder{16, 8};
  const Depths answer = answer_private_depths(responder, initiator);
  EXPECT_EQ(answer, (Depths{8, 1})) << "in the Initiator's terms";
  const Depths at_initiator = fit(initiator, crossed(answer), 128), at_responder = fit(responder, initiator, 128);
  EXPECT_LE(at_initiator.ord, at_responder.ird);
  EXPECT_LE(at_responder.ord, at_initiator.ird);
}

}  // namespace
}  // namespace iwarp::enhanced
