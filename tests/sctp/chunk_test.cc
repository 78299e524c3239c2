#include "iwarp/sctp/chunk.h"

#include <gtest/gtest.h>

#include "tests/support/covers.h"
#include "tests/support/hex.h"

namespace iwarp::sctp {
namespace {

TEST(SctpChunk, ConstantsAreThoseOfTheRegistries) {
  COVERS("RFC5043-12-1");
  COVERS("RFC5043-5.2-1");
  COVERS("RFC5043-5.1-5");
  EXPECT_EQ(static_cast<std::uint32_t>(Ppid::kDdpSegment), 16U);
  EXPECT_EQ(static_cast<std::uint32_t>(Ppid::kSessionControl), 17U);
  EXPECT_EQ(kDdpIndication, 1U);
  EXPECT_EQ(kAdaptationParameter, 0xC006);
  EXPECT_EQ(kEncapsulationPort, 9899);
}

TEST(SctpChunk, OnlyAPeerThatIndicatesDdpIsGoodForDdp) {
  COVERS("RFC5043-11.1-2");
  COVERS("RFC5043-11.1-3");
  COVERS("RFC5043-11.1-4");
  COVERS("RFC5043-11.1-5");
  COVERS("RFC5043-7.1-2");
  EXPECT_TRUE(check_indication(1).ok());
  for (const std::optional<std::uint32_t> peers : {std::optional<std::uint32_t>{}, {0U}, {2U}, {0x01000000U}}) {
    const auto checked = check_indication(peers);
    ASSERT_FALSE(checked.ok());
    EXPECT_EQ(checked.error().code, Errc::kAdaptation);
    EXPECT_FALSE(checked.error().tell_peer);
  }
}

TEST(SctpChunk, SegmentsLeaveRoomForTheirSsnAndASack) {
  COVERS("RFC5043-9-2");
  COVERS("RFC5043-9-3");
  COVERS("RFC5043-9-6");
  EXPECT_EQ(max_segment_bytes(1452), 1430U);  // an MTU of 1500 less 20 (IPv4), 12 (SCTP) and 16 (DATA)
  EXPECT_EQ(max_segment_bytes(539), 517U);
  for (const std::size_t point : {538U, 537U, 516U, 100U, 22U, 21U, 1U, 0U})
    EXPECT_EQ(max_segment_bytes(point), 516U) << point;
}

TEST(SctpChunk, SsnComesFirstMostSignificantOctetFirst) {
  COVERS("RFC5043-5.2.1-1");
  COVERS("RFC5043-5.2.2-1");
  const test::Bytes message = test::hex("0102 c1");
  const auto ssn = parse_ssn(message);
  ASSERT_TRUE(ssn.ok());
  EXPECT_EQ(ssn->value, 0x0102);
  EXPECT_EQ(test::to_hex(behind_ssn(message)), "c1");
  test::Bytes out(2);
  write_ssn(DdpSsn{0xFFFE}, out);
  EXPECT_EQ(test::to_hex(out), "fffe");
  EXPECT_TRUE(parse_ssn(test::hex("0102")).ok()) << "an empty segment: DDP's business";
  for (const char* shorter : {"", "01"}) {
    const auto none = parse_ssn(test::hex(shorter));
    ASSERT_FALSE(none.ok());
    EXPECT_EQ(none.error().code, Errc::kSessionSequence);
  }
}

TEST(SctpChunk, SsnsWrap) {
  COVERS("RFC5043-10-5");
  DdpSsn s{0xFFFF};
  s.advance();
  EXPECT_EQ(s.value, 0);
  EXPECT_EQ(DdpSsn{2}.distance_from(DdpSsn{0xFFFE}), 4);
  EXPECT_EQ(DdpSsn{0xFFFE}.distance_from(DdpSsn{2}), 0xFFFC);
}

}  // namespace
}  // namespace iwarp::sctp
