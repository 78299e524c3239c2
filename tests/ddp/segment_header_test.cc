#include "iwarp/ddp/segment_header.h"

#include <gtest/gtest.h>

#include "tests/support/covers.h"
#include "tests/support/hex.h"

namespace iwarp::ddp {
namespace {

using test::Bytes;
using test::operator+;
using test::hex;
using test::to_hex;

Bytes written(const TaggedHeader& h) {
  Bytes out(TaggedHeader::kSize);
  h.write_to(std::span<std::byte, TaggedHeader::kSize>(out));
  return out;
}
Bytes written(const UntaggedHeader& h) {
  Bytes out(UntaggedHeader::kSize);
  h.write_to(std::span<std::byte, UntaggedHeader::kSize>(out));
  return out;
}

// siw-rping.pcap: an RDMA Write of the server, whose FPDU carries this after its length.
//                                    T L DV=1, RDMAP Write | STag      | TO
const char* const kTagged = "c1 40 | 7f5af600 | 0000aaaae8d58320";
//                                      L DV=1, RDMAP Send | tail     | QN       | MSN      | MO
const char* const kUntagged = "41 43 | 00000000 | 00000000 | 00000001 | 00000000";

TEST(SegmentHeader, ReadsAndWritesTagged) {
  COVERS("RFC5041-4.2-1");
  COVERS("RFC5041-4.2-2");
  COVERS("RFC5041-4.1-1");
  COVERS("RFC5041-4.2-3");
  COVERS("RFC5041-4.2-4");
  COVERS("RFC5041-4.2-8");
  COVERS("RFC5041-4-1");
  const Bytes bytes = hex(kTagged);
  const auto parsed = parse_segment_header(bytes);
  ASSERT_TRUE(parsed.ok());
  const TaggedHeader expected{true, 0x40, Stag{0x7f5af600}, 0x0000aaaae8d58320};
  EXPECT_EQ(std::get<TaggedHeader>(*parsed), expected);
  EXPECT_EQ(header_size(*parsed), 14U);
  EXPECT_EQ(to_hex(written(expected)), to_hex(bytes));
}

TEST(SegmentHeader, ReadsAndWritesUntagged) {
  COVERS("RFC5041-4.3-1");
  COVERS("RFC5041-4.3-2");
  COVERS("RFC5041-4.3-3");
  COVERS("RFC5041-4.1-12");
  const Bytes bytes = hex(kUntagged);
  const auto parsed = parse_segment_header(bytes);
  ASSERT_TRUE(parsed.ok());
  const UntaggedHeader expected{true, 0x43, 0, 0, Msn{1}, 0};
  EXPECT_EQ(std::get<UntaggedHeader>(*parsed), expected);
  EXPECT_EQ(header_size(*parsed), 18U);
  EXPECT_EQ(to_hex(written(expected)), to_hex(bytes));
}

TEST(SegmentHeader, EveryFieldHasItsPlace) {
  COVERS("RFC5040-3.1-10");
  EXPECT_EQ(to_hex(written(UntaggedHeader{false, 0x46, 0x11223344, 2, Msn{0xAABBCCDD}, 0x01020304})),
            "01461122334400000002aabbccdd01020304");
  EXPECT_EQ(to_hex(written(TaggedHeader{false, 0x42, Stag{0x01020304}, 0x1112131415161718})),
            "8142010203041112131415161718");
  const auto back = parse_segment_header(hex("01461122334400000002aabbccdd01020304"));
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(std::get<UntaggedHeader>(*back), (UntaggedHeader{false, 0x46, 0x11223344, 2, Msn{0xAABBCCDD}, 0x01020304}));
}

TEST(SegmentHeader, ControlOctetIsAsInTheRfc) {
  COVERS("RFC5041-4.1-1");
  COVERS("RFC5041-4.1-10");
  EXPECT_EQ(written(UntaggedHeader{.last = true})[0], std::byte{0x41});
  EXPECT_EQ(written(UntaggedHeader{.last = false})[0], std::byte{0x01});
  EXPECT_EQ(written(TaggedHeader{.last = true})[0], std::byte{0xC1});
  EXPECT_EQ(written(TaggedHeader{.last = false})[0], std::byte{0x81});
}

TEST(SegmentHeader, EveryPrefixIsTooShort) {
  COVERS("RFC5041-4.4-1");
  for (const char* text : {kTagged, kUntagged}) {
    const Bytes whole = hex(text);
    for (std::size_t n = 0; n < whole.size(); ++n) {
      const auto parsed = parse_segment_header(ConstBytes(whole).first(n));
      ASSERT_FALSE(parsed.ok()) << n;
      EXPECT_EQ(parsed.error().code, Errc::kFpduLength);
      EXPECT_EQ(parsed.error().tell_peer, (TerminateCode{2, 0, 3}));
    }
    EXPECT_TRUE(parse_segment_header(whole + hex("ff")).ok());
    EXPECT_EQ(expected_header_size(ConstBytes(whole).first(1)), whole.size());
  }
}

TEST(SegmentHeader, EveryOtherVersionIsAnError) {
  COVERS("RFC5041-4.1-13");
  COVERS("RFC5041-7.2-7");
  COVERS("RFC5041-7.2-13");
  for (const unsigned version : {0U, 2U, 3U}) {
    Bytes tagged = hex(kTagged);
    tagged[0] = static_cast<std::byte>(0xC0 | version);
    EXPECT_EQ(parse_segment_header(tagged).error().tell_peer, (TerminateCode{1, 1, 4}));
    Bytes untagged = hex(kUntagged);
    untagged[0] = static_cast<std::byte>(0x40 | version);
    EXPECT_EQ(parse_segment_header(untagged).error().tell_peer, (TerminateCode{1, 2, 6}));
  }
}

TEST(SegmentHeader, ReservedBitsAreNotLookedAt) {
  COVERS("RFC5041-4.1-11");
  for (unsigned reserved = 0; reserved < 16; ++reserved) {
    for (const char* text : {kTagged, kUntagged}) {
      Bytes bytes = hex(text);
      const auto plain = parse_segment_header(bytes);
      bytes[0] |= static_cast<std::byte>(reserved << 2);
      const auto parsed = parse_segment_header(bytes);
      ASSERT_TRUE(parsed.ok()) << reserved;
      EXPECT_EQ(*parsed, *plain);
    }
  }
}

}  // namespace
}  // namespace iwarp::ddp
