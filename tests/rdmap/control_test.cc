#include "iwarp/rdmap/control.h"

#include <gtest/gtest.h>

#include "tests/support/covers.h"

namespace iwarp::rdmap {
namespace {

constexpr TerminateCode kUnexpectedOpcode{0, 2, 6};

Result<Opcode> tagged(std::uint8_t octet) {
  return check_control(ddp::TaggedHeader{.rsvd_ulp = octet});
}
Result<Opcode> untagged(std::uint8_t octet, std::uint32_t qn) {
  return check_control(ddp::UntaggedHeader{.rsvd_ulp = octet, .qn = qn});
}

// Figure 4 of RFC 5040: the one way in which each opcode may travel.
struct Row {
  std::uint8_t opcode;
  bool tagged;
  std::uint32_t qn;
};
constexpr Row kFigure4[] = {{0, true, 0},  {1, false, 1}, {2, true, 0},  {3, false, 0},
                            {4, false, 0}, {5, false, 0}, {6, false, 0}, {7, false, 2}};

TEST(Control, OpcodesOfFigure4AndNothingElse) {
  COVERS("RFC5040-3.1-2");
  COVERS("RFC5040-3.1-3");
  COVERS("RFC5040-3.1-4");
  COVERS("RFC5040-4.1-6");
  COVERS("RFC5040-4.1-7");
  COVERS("RFC5040-4.1-8");
  COVERS("RFC5040-4.1-16");
  COVERS("RFC5040-4.1-17");
  COVERS("RFC5040-4.1-18");
  COVERS("RFC5040-4.1-19");
  COVERS("RFC5040-4.1-20");
  COVERS("RFC5040-4.1-21");
  COVERS("RFC5040-4.1-22");
  COVERS("RFC5040-4.1-23");
  COVERS("RFC5040-5.3-9");
  COVERS("RFC5040-5.4-3");
  COVERS("RFC5040-7.2-2");
  COVERS("RFC5040-7.2-7");
  COVERS("RFC5040-4.8-20");
  COVERS("RFC5041-4.2-5");
  for (const Row& r : kFigure4) {
    const auto octet = static_cast<std::uint8_t>(0x40 | r.opcode);
    const auto as_tagged = tagged(octet);
    EXPECT_EQ(as_tagged.ok(), r.tagged) << int{r.opcode};
    if (as_tagged) {
      EXPECT_EQ(static_cast<std::uint8_t>(*as_tagged), r.opcode);
    } else {
      EXPECT_EQ(as_tagged.error().tell_peer, kUnexpectedOpcode);
    }
    for (std::uint32_t qn = 0; qn < 3; ++qn) {
      const auto as_untagged = untagged(octet, qn);
      EXPECT_EQ(as_untagged.ok(), !r.tagged && qn == r.qn) << int{r.opcode} << " on queue " << qn;
      if (!as_untagged) {
        EXPECT_EQ(as_untagged.error().tell_peer, kUnexpectedOpcode);
      }
    }
  }
}

TEST(Control, ReservedOpcodes) {
  COVERS("RFC5040-4.1-24");
  COVERS("RFC5040-4.2-5");
  COVERS("RFC7306-1.1-4");
  for (std::uint8_t op = 8; op < 16; ++op) {
    EXPECT_EQ(tagged(static_cast<std::uint8_t>(0x40 | op)).error().tell_peer, kUnexpectedOpcode);
    EXPECT_EQ(untagged(static_cast<std::uint8_t>(0x40 | op), 0).error().tell_peer, kUnexpectedOpcode);
  }
}

TEST(Control, Versions) {
  COVERS("RFC5040-4.1-10");
  COVERS("RFC5040-7.2-3");
  COVERS("RFC5040-7.2-8");
  COVERS("RFC5040-4.8-19");
  EXPECT_TRUE(untagged(0x03, 0).ok());
  EXPECT_TRUE(untagged(0x43, 0).ok());
  EXPECT_EQ(untagged(0x83, 0).error().tell_peer, (TerminateCode{0, 2, 5}));
  EXPECT_EQ(tagged(0xC0).error().tell_peer, (TerminateCode{0, 2, 5}));
  // Version before opcode: of an unknown version the opcode says nothing.
  EXPECT_EQ(tagged(0x8F).error().tell_peer, (TerminateCode{0, 2, 5}));
}

TEST(Control, UnknownQueueIsAnErrorOfDdp) {
  COVERS("RFC5041-7.1-1");
  COVERS("RFC5041-7.2-8");
  COVERS("RFC5041-4.3-8");
  for (const std::uint32_t qn : {3U, 4U, 0xFFFFFFFFU}) {
    EXPECT_EQ(untagged(0x43, qn).error().tell_peer, (TerminateCode{1, 2, 1}));
    EXPECT_EQ(untagged(0x8F, qn).error().tell_peer, (TerminateCode{1, 2, 1})) << "DDP looks first";
  }
}

// Figure 2 of RFC 7306.
constexpr Row kFigure2[] = {{8, false, 0}, {9, false, 0}, {10, false, 1}, {11, false, 3}};

TEST(Control, OpcodesOfRfc7306WhereItIsKnown) {
  COVERS("RFC7306-4.1-1");
  COVERS("RFC7306-4.1-2");
  COVERS("RFC7306-4.1-5");
  COVERS("RFC7306-4.1-6");
  COVERS("RFC7306-8.2-1");
  COVERS("RFC7306-8.2-3");
  COVERS("RFC7306-8.2-4");
  COVERS("RFC7306-10-1");
  COVERS("RFC7306-4.1-7");
  COVERS("RFC7306-4.1-8");
  COVERS("RFC7306-5.2-1");
  COVERS("RFC7306-5.2-4");
  COVERS("RFC7306-5.2-5");
  COVERS("RFC7306-5.2.1-14");
  COVERS("RFC7306-5-7");
  COVERS("RFC7306-5.2.2-5");
  COVERS("RFC7306-4-4");
  COVERS("RFC7306-10.2-1");
  constexpr auto kKnown = Extensions::kRfc7306;
  for (const Row& r : kFigure2) {
    const auto octet = static_cast<std::uint8_t>(0x40 | r.opcode);
    EXPECT_EQ(check_control(ddp::TaggedHeader{.rsvd_ulp = octet}, kKnown).error().tell_peer, kUnexpectedOpcode);
    for (std::uint32_t qn = 0; qn < 4; ++qn) {
      const auto op = check_control(ddp::UntaggedHeader{.rsvd_ulp = octet, .qn = qn}, kKnown);
      EXPECT_EQ(op.ok(), qn == r.qn) << int{r.opcode} << " on queue " << qn;
      if (op) {
        EXPECT_EQ(static_cast<std::uint8_t>(*op), r.opcode);
      } else {
        EXPECT_EQ(op.error().tell_peer, kUnexpectedOpcode);
      }
    }
    for (const unsigned version : {0x00U, 0x80U, 0xC0U}) {
      const auto other = static_cast<std::uint8_t>(version | r.opcode);
      EXPECT_EQ(check_control(ddp::UntaggedHeader{.rsvd_ulp = other, .qn = r.qn}, kKnown).error().tell_peer,
                (TerminateCode{0, 2, 5}));
    }
  }
  for (const unsigned op : {0x4CU, 0x4DU, 0x4EU, 0x4FU})
    EXPECT_EQ(check_control(ddp::UntaggedHeader{.rsvd_ulp = static_cast<std::uint8_t>(op)}, kKnown).error().tell_peer,
              kUnexpectedOpcode);
  EXPECT_EQ(check_control(ddp::UntaggedHeader{.rsvd_ulp = 0x4B, .qn = 4}, kKnown).error().tell_peer,
            (TerminateCode{1, 2, 1}));
  EXPECT_TRUE(check_control(ddp::UntaggedHeader{.rsvd_ulp = 0x03}, kKnown).ok()) << "RFC 5040 takes version 0 too";
}

TEST(Control, ReservedBitsAreNotLookedAt) {
  COVERS("RFC5040-4.1-12");
  for (const unsigned reserved : {0x10U, 0x20U, 0x30U}) {
    EXPECT_TRUE(untagged(static_cast<std::uint8_t>(0x43 | reserved), 0).ok());
    EXPECT_TRUE(tagged(static_cast<std::uint8_t>(0x40 | reserved)).ok());
  }
}

TEST(Control, OctetSentHasVersionOneAndNoReservedBits) {
  COVERS("RFC5040-4.1-2");
  COVERS("RFC5040-4.1-3");
  COVERS("RFC5040-4.1-9");
  COVERS("RFC5040-4.1-11");
  for (std::uint8_t op = 0; op < 8; ++op) EXPECT_EQ(control_octet(static_cast<Opcode>(op)), 0x40 | op);
}

TEST(Control, Kinds) {
  COVERS("RFC5040-2.4-2");
  for (std::uint8_t op = 0; op < 12; ++op) {
    const auto o = static_cast<Opcode>(op);
    EXPECT_EQ(invalidates(o), op == 4 || op == 6);
    EXPECT_EQ(solicited(o), op == 5 || op == 6 || op == 9);
    EXPECT_EQ(is_immediate(o), op == 8 || op == 9);
    EXPECT_STRNE(to_string(o), "");
  }
}

}  // namespace
}  // namespace iwarp::rdmap
