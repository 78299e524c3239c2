#include "iwarp/rdmap/terminate_message.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/covers.h"
#include "tests/support/segments.h"

namespace iwarp::rdmap {
namespace {

using test::Bytes;
using test::hex;
using test::operator|;

Bytes written(const TerminateMessage& m) {
  Bytes out(m.size());
  m.write_to(out);
  return out;
}

const Bytes kTaggedHead = hex("c140 00000100 0000000000000010");
const Bytes kSendHead = hex("4143 00000000 00000000 00000001 00000000");
const Bytes kReadHead = hex("4141 00000000 00000001 00000001 00000000");
const Bytes kReadBody = hex("00000200 0000000000000000 00000010 00000300 0000000000000020");

// Events as both kinds of peer tell them (Linux siw on little-endian hosts, everybody else).
struct Row {
  const char* event;
  const char* siw;
  const char* rfc;
  TerminateCode code;
};
const Row kTold[] = {
    {"DDP untagged, no buffer", "21 02 03 00", "12 02 C0 00", {1, 2, 2}},
    {"DDP tagged, invalid STag", "11 00 03 00", "11 00 C0 00", {1, 1, 0}},
    {"RDMAP remote protection, bounds", "10 01 07 00", "01 01 E0 00", {0, 1, 1}},
    {"LLP CRC error", "02 02 00 00", "20 02 00 00", {2, 0, 2}},
    {"LLP bad FPDU length", "02 03 00 00", "20 03 00 00", {2, 0, 3}},
    {"LLP bad MPA frame", "02 04 00 00", "20 04 00 00", {2, 0, 4}},
};

TEST(TerminateMessage, BothBitOrdersAreRead) {
  COVERS("RFC5040-4.8-2");
  COVERS("RFC5040-4.8-3");
  COVERS("RFC5040-4.8-5");
  for (const Row& r : kTold) {
    const Bytes rest = r.code.layer == 2   ? Bytes{}
                       : r.code.layer == 0 ? hex("002e") | kReadHead | kReadBody
                       : r.code.type == 1  ? hex("0010") | kTaggedHead
                                           : hex("0012") | kSendHead;
    const auto siw = TerminateMessage::parse(hex(r.siw) | rest);
    const auto rfc = TerminateMessage::parse(hex(r.rfc) | rest);
    ASSERT_TRUE(siw && rfc) << r.event;
    EXPECT_EQ(siw->code, r.code) << r.event;
    EXPECT_EQ(rfc->code, r.code) << r.event;
    EXPECT_EQ(siw->order, TerminateOrder::kSiw) << r.event;
    EXPECT_EQ(rfc->order, TerminateOrder::kRfc) << r.event;
    for (const auto& m : {*siw, *rfc}) {
      EXPECT_EQ(m.segment_length.has_value(), r.code.layer != 2) << r.event;
      EXPECT_EQ(m.ddp_header_bytes, r.code.layer == 2 ? 0 : r.code.layer == 1 && r.code.type == 1 ? 14 : 18) << r.event;
      EXPECT_EQ(m.has_rdmap_header, r.code.layer == 0) << r.event;
    }
  }
}

// Without flags some codes look alike in both orders: then the RFC's reading stands.
TEST(TerminateMessage, AmbiguousOnesAreReadAsTheRfcSays) {
  EXPECT_EQ(TerminateMessage::parse(hex("02050000"))->code, (TerminateCode{0, 2, 5}));
  EXPECT_EQ(TerminateMessage::parse(hex("02060000"))->code, (TerminateCode{0, 2, 6}));
  EXPECT_EQ(TerminateMessage::parse(hex("20060000"))->code, (TerminateCode{2, 0, 6}));
  EXPECT_EQ(TerminateMessage::parse(hex("02070000"))->code, (TerminateCode{0, 2, 7}));
  EXPECT_EQ(TerminateMessage::parse(hex("20070000"))->code, (TerminateCode{2, 0, 7}));
  EXPECT_EQ(TerminateMessage::parse(hex("00000000"))->code, (TerminateCode{0, 0, 0}));
}

TEST(TerminateMessage, AnyTypeOfTheLowestLayerIsMpas) {
  for (const auto code : std::initializer_list<std::uint8_t>{2, 3, 6, 7}) {
    Bytes bytes = hex("23000000");
    bytes[1] = std::byte{code};
    const auto m = TerminateMessage::parse(bytes);
    ASSERT_TRUE(m);
    EXPECT_EQ(m->code, (TerminateCode{2, 0, code}));
  }
}

// siw says the payload length where the RFC wants the segment length: it is kept as told.
TEST(TerminateMessage, LengthOfSiwIsKeptAsTold) {
  const auto m = TerminateMessage::parse(hex("21020300 0010") | kSendHead);
  ASSERT_TRUE(m);
  EXPECT_EQ(m->segment_length, 16);
  EXPECT_EQ(Bytes(m->ddp_header.begin(), m->ddp_header.begin() + 18), kSendHead);
}

TEST(TerminateMessage, CutOnesSayWhatTheyCan) {
  COVERS("RFC5040-5.4-8");
  const Bytes whole = hex("0101e000 002e") | kReadHead | kReadBody;
  ASSERT_EQ(whole.size(), TerminateMessage::kMaxSize);
  for (std::size_t n = 0; n <= whole.size(); ++n) {
    const auto m = TerminateMessage::parse(ConstBytes(whole).first(n));
    ASSERT_EQ(m.has_value(), n >= 4) << n;
    if (!m) continue;
    EXPECT_EQ(m->code, (TerminateCode{0, 1, 1}));
    EXPECT_EQ(m->segment_length.has_value(), n >= 6) << n;
    EXPECT_EQ(m->ddp_header_bytes, n >= 24 ? 18 : 0) << n;
    EXPECT_EQ(m->has_rdmap_header, n == 52) << n;
  }
}

TEST(TerminateMessage, TrailingZerosAndReservedBitsAreTolerated) {
  COVERS("RFC5040-4.8-28");
  const auto m = TerminateMessage::parse(hex("1202c0ff 0012") | kSendHead | Bytes(28));
  ASSERT_TRUE(m);
  EXPECT_EQ(m->code, (TerminateCode{1, 2, 2}));
  EXPECT_FALSE(m->has_rdmap_header);
  // The flags of siw are reserved bits here.
  const auto all_bits = TerminateMessage::parse(hex("1202df00 0012") | kSendHead | Bytes(28));
  ASSERT_TRUE(all_bits);
  EXPECT_EQ(all_bits->order, TerminateOrder::kRfc);
  EXPECT_EQ(all_bits->code, (TerminateCode{1, 2, 2}));
  EXPECT_EQ(all_bits->segment_length, 18);
  // But without flags of the RFC the three lowest would make it look like one of siw: no known peer sets them.
  EXPECT_EQ(TerminateMessage::parse(hex("200218ff"))->code, (TerminateCode{2, 0, 2}));
}

TEST(TerminateMessage, ReadAndWrittenBackIsTheSame) {
  COVERS("RFC5040-4.8-27");
  for (const Bytes& bytes : {hex("0101e000 002e") | kReadHead | kReadBody, hex("1202c000 0012") | kSendHead,
                             hex("1101c000 0010") | kTaggedHead, hex("20020000"), hex("00000000")}) {
    EXPECT_EQ(test::to_hex(written(*TerminateMessage::parse(bytes))), test::to_hex(bytes));
  }
  // One of siw leaves in RFC order.
  EXPECT_EQ(written(*TerminateMessage::parse(hex("21020300 0010") | kSendHead)), hex("1202c000 0010") | kSendHead);
}

// Figure 10: what each error carries.
struct Part {
  Errc error;
  const Bytes& head;
  bool ddp, rdmap;
};

TEST(MakeTerminate, CarriesWhatFigure10Says) {
  COVERS("RFC5040-4.8-8");
  COVERS("RFC5040-4.8-9");
  COVERS("RFC5040-4.8-10");
  COVERS("RFC5040-4.8-11");
  COVERS("RFC5040-4.8-25");
  COVERS("RFC5040-4.8-26");
  COVERS("RFC5040-4.8-29");
  COVERS("RFC5040-4.8-30");
  COVERS("RFC5040-4.8-31");
  COVERS("RFC5040-4.8-32");
  COVERS("RFC5040-4.8-33");
  COVERS("RFC5040-4.8-34");
  COVERS("RFC5040-4.8-38");
  COVERS("RFC5040-4.8-39");
  COVERS("RFC5040-4.8-40");
  COVERS("RFC5040-4.8-41");
  COVERS("RFC5040-4.8-42");
  COVERS("RFC5040-7.1-4");
  COVERS("RFC5040-7.1-5");
  COVERS("RFC5040-4.8-6");
  COVERS("RFC5040-4.8-7");
  const Bytes read = kReadHead | kReadBody;
  for (const Part& p :
       {Part{Errc::kLocalProtection, kSendHead, false, false}, Part{Errc::kReadBounds, read, true, true},
        Part{Errc::kCannotInvalidate, kSendHead, true, false}, Part{Errc::kRdmapOpcode, read, true, false},
        Part{Errc::kUntaggedNoBuffer, read, true, false}, Part{Errc::kTaggedBounds, kTaggedHead, true, false},
        Part{Errc::kDdpCatastrophic, kSendHead, false, false}, Part{Errc::kCrcMismatch, kSendHead, false, false},
        Part{Errc::kFpduLength, kSendHead, false, false}}) {
    const Error error = make_error(p.error);
    const TerminateMessage m = make_terminate(error, p.head, 1000, &p.head == &read);
    EXPECT_EQ(m.code, error.tell_peer);
    EXPECT_EQ(m.ddp_header_bytes != 0, p.ddp) << error.why;
    EXPECT_EQ(m.has_rdmap_header, p.rdmap) << error.why;
    if (p.ddp) {
      EXPECT_EQ(m.segment_length, 1000) << error.why;
      EXPECT_EQ(m.ddp_header_bytes, &p.head == &kTaggedHead ? 14 : 18);
      EXPECT_TRUE(std::equal(m.ddp_header.begin(), m.ddp_header.begin() + m.ddp_header_bytes, p.head.begin()));
    } else {
      EXPECT_FALSE(m.segment_length.has_value());
      EXPECT_EQ(m.size(), 4U);
    }
    if (p.rdmap) {
      EXPECT_TRUE(std::equal(m.rdmap_header.begin(), m.rdmap_header.end(), kReadBody.begin()));
    }
  }
}

TEST(MakeTerminate, WithoutASegmentItIsBare) {
  COVERS("RFC5040-7.1-3");
  EXPECT_EQ(make_terminate(make_error(Errc::kReadBounds), {}, 0, true).size(), 4U);
  EXPECT_EQ(make_terminate(make_error(Errc::kUntaggedNoBuffer), ConstBytes(kSendHead).first(5), 5, false).size(), 4U);
}

// Figure 9 of RFC 5040, with the codes of RFC 5041 s7.2 (no type 3), RFC 5044 s8 and RFC 6581 s8.
TEST(MakeTerminate, CodesAreThoseOfFigure9) {
  COVERS("RFC5040-4.8-4");
  COVERS("RFC5041-7.2-14");
  constexpr TerminateCode kFigure9[] = {
      {0, 0, 0}, {0, 1, 0}, {0, 1, 1}, {0, 1, 2}, {0, 1, 3},    {0, 1, 4}, {0, 1, 9}, {0, 1, 0xFF}, {0, 2, 5},
      {0, 2, 6}, {0, 2, 7}, {0, 2, 8}, {0, 2, 9}, {0, 2, 0xFF}, {1, 0, 0}, {1, 1, 0}, {1, 1, 1},    {1, 1, 2},
      {1, 1, 3}, {1, 1, 4}, {1, 2, 1}, {1, 2, 2}, {1, 2, 3},    {1, 2, 4}, {1, 2, 5}, {1, 2, 6},    {2, 0, 1},
      {2, 0, 2}, {2, 0, 3}, {2, 0, 4}, {2, 0, 5}, {2, 0, 6},    {2, 0, 7}};
  for (std::size_t i = 0; i <= static_cast<std::size_t>(Errc::kLast); ++i) {
    const Error error = make_error(static_cast<Errc>(i));
    const TerminateMessage m = make_terminate(error, {}, 0, false);
    EXPECT_NE(std::find(std::begin(kFigure9), std::end(kFigure9), m.code), std::end(kFigure9)) << name(error.code);
  }
}

TEST(MakeTerminate, SaysItInWords) {
  COVERS("RFC5040-4.8-18");
  COVERS("RFC5040-4.8-21");
  COVERS("RFC5040-4.8-22");
  COVERS("RFC5040-4.8-23");
  EXPECT_EQ(make_terminate(make_error(Errc::kUntaggedNoBuffer), kSendHead, 18, false).to_string(),
            "1/2/2 untagged: no buffer available");
  EXPECT_STREQ(describe({0, 2, 9}), "STag cannot be invalidated");
  EXPECT_STREQ(describe({0, 1, 9}), "STag cannot be invalidated");
  EXPECT_STREQ(describe({0, 1, 0xFF}), "unspecified remote protection error");
  EXPECT_STREQ(describe({0, 2, 7}), "catastrophic error on this stream");
  EXPECT_STREQ(describe({0, 2, 8}), "catastrophic error, global");
  EXPECT_STREQ(describe({7, 7, 7}), "unknown error");
}

}  // namespace
}  // namespace iwarp::rdmap
