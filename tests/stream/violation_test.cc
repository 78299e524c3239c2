// Each violation that a receiver can see, as FPDUs on a live connection: the exact Terminate, the flush, and silence
// afterwards.
#include <gtest/gtest.h>

#include "tests/support/covers.h"
#include "tests/support/raw_peer.h"

namespace iwarp::stream {
namespace {

using rdmap::Opcode;
using test::Bytes;
using test::hex;
using test::pattern;
using test::RawPeer;
using test::RawPeerOptions;
using test::send_segment;
using test::to_hex;
using test::write_segment;
using test::operator|;

// What a violation meets: a receive of 50 octets is posted, MSN 1 of queue 0 and 1 is due, memory of 100 octets from TO
// 0x10000 on is open.
struct Scene {
  Stag open, foreign, unwritable;
};

struct Violation {
  const char* name;
  Bytes (*ulpdu)(const Scene&);
  const char* control;  // the 4 octets of the Terminate Control in hex
  std::size_t quoted;   // octets of the ULPDU that it quotes: 0, 14, 18 or 46
  Errc reason;
};

void PrintTo(const Violation& v, std::ostream* out) {
  *out << v.name;
}

Bytes with_octet(Bytes b, std::size_t at, unsigned value) {
  b[at] = static_cast<std::byte>(value);
  return b;
}
Bytes read(Stag source, std::uint64_t to, std::uint32_t size, std::uint32_t msn = 1) {
  return test::read_request_segment({Stag{0x500}, 9, size, source, to}, msn);
}

const Violation kViolations[] = {
    {"UlpduShorterThanHeader", [](const Scene&) { return hex("c140000001"); }, "20030000", 0, Errc::kFpduLength},
    {"EmptyUlpdu", [](const Scene&) { return Bytes{}; }, "20030000", 0, Errc::kFpduLength},
    {"DdpVersionTagged", [](const Scene& s) { return with_octet(write_segment(s.open, 0x10000, pattern(4)), 0, 0xC0); },
     "1104c000", 14, Errc::kDdpVersionTagged},
    {"DdpVersionUntagged", [](const Scene&) { return with_octet(send_segment(pattern(4)), 0, 0x42); }, "1206c000", 18,
     Errc::kDdpVersionUntagged},
    {"RdmapVersion", [](const Scene&) { return with_octet(send_segment(pattern(4)), 1, 0x83); }, "0205c000", 18,
     Errc::kRdmapVersion},
    {"ReservedOpcode", [](const Scene&) { return with_octet(send_segment(pattern(4)), 1, 0x48); }, "0206c000", 18,
     Errc::kRdmapOpcode},
    {"TaggedSend", [](const Scene& s) { return test::tagged_segment(Opcode::kSend, s.open, 0x10000, pattern(4)); },
     "0206c000", 14, Errc::kRdmapOpcode},
    {"UntaggedWrite", [](const Scene&) { return send_segment(pattern(4), {}, Opcode::kWrite); }, "0206c000", 18,
     Errc::kRdmapOpcode},
    {"SendOnOtherQueue", [](const Scene&) { return send_segment(pattern(4), {}, Opcode::kSend, 1); }, "0206c000", 18,
     Errc::kRdmapOpcode},
    {"UnknownQueue", [](const Scene&) { return send_segment(pattern(4), {}, Opcode::kSend, 3); }, "1201c000", 18,
     Errc::kUntaggedInvalidQn},
    {"MsnTooHigh", [](const Scene&) { return send_segment(pattern(4), {.msn = 2}); }, "1203c000", 18,
     Errc::kUntaggedMsnRange},
    {"MsnZero", [](const Scene&) { return send_segment(pattern(4), {.msn = 0}); }, "1203c000", 18,
     Errc::kUntaggedMsnRange},
    {"OffsetGap", [](const Scene&) { return send_segment(pattern(4), {.mo = 4}); }, "1204c000", 18,
     Errc::kUntaggedInvalidMo},
    {"SendTooLong", [](const Scene&) { return send_segment(pattern(51)); }, "1205c000", 18, Errc::kUntaggedTooLong},
    {"LongSendTooLong", [](const Scene&) { return send_segment(pattern(20000)); }, "1205c000", 18,
     Errc::kUntaggedTooLong},
    {"WriteInvalidStag", [](const Scene& s) { return write_segment(Stag{raw(s.open) ^ 1}, 0x10000, pattern(4)); },
     "1100c000", 14, Errc::kTaggedInvalidStag},
    {"WriteStagZero", [](const Scene&) { return write_segment(Stag{0}, 0, pattern(4)); }, "1100c000", 14,
     Errc::kTaggedInvalidStag},
    {"WriteNoRight", [](const Scene& s) { return write_segment(s.unwritable, 0x10000, pattern(4)); }, "1100c000", 14,
     Errc::kTaggedInvalidStag},
    {"WriteOfOtherDomain", [](const Scene& s) { return write_segment(s.foreign, 0x10000, pattern(4)); }, "1102c000", 14,
     Errc::kTaggedNotAssociated},
    {"WriteBeforeBuffer", [](const Scene& s) { return write_segment(s.open, 0xFFFF, pattern(4)); }, "1101c000", 14,
     Errc::kTaggedBounds},
    {"WriteBehindBuffer", [](const Scene& s) { return write_segment(s.open, 0x10000 + 97, pattern(4)); }, "1101c000",
     14, Errc::kTaggedBounds},
    {"LongWriteOutOfBounds", [](const Scene& s) { return write_segment(s.open, 0x10000, pattern(20000)); }, "1101c000",
     14, Errc::kTaggedBounds},
    {"WriteWraps", [](const Scene& s) { return write_segment(s.open, 0xFFFF'FFFF'FFFF'FFFE, pattern(4)); }, "1103c000",
     14, Errc::kTaggedWrap},
    {"UnaskedReadResponse",
     [](const Scene& s) { return test::tagged_segment(Opcode::kReadResponse, s.open, 0x10000, pattern(4)); },
     "0206c000", 14, Errc::kUnexpectedReadResponse},
    {"ReadRequestTooLong", [](const Scene& s) { return read(s.open, 0x10000, 4) | hex("00"); }, "1205c000", 18,
     Errc::kUntaggedTooLong},
    {"ReadRequestTooShort", [](const Scene&) { return send_segment(pattern(20), {}, Opcode::kReadRequest, 1); },
     "02ffc000", 18, Errc::kMalformedReadRequest},
    {"ReadRequestMsn", [](const Scene& s) { return read(s.open, 0x10000, 4, 2); }, "1203c000", 18,
     Errc::kUntaggedMsnRange},
    {"ReadInvalidStag", [](const Scene&) { return read(Stag{0xBAD00}, 0x10000, 4); }, "0100e000", 46,
     Errc::kReadInvalidStag},
    {"ReadOfOtherDomain", [](const Scene& s) { return read(s.foreign, 0x10000, 4); }, "0103e000", 46,
     Errc::kReadNotAssociated},
    {"ReadNoRight", [](const Scene& s) { return read(s.unwritable, 0x10000, 4); }, "0102e000", 46, Errc::kReadAccess},
    {"ReadBehindBuffer", [](const Scene& s) { return read(s.open, 0x10000 + 97, 4); }, "0101e000", 46,
     Errc::kReadBounds},
    {"ReadWraps", [](const Scene& s) { return read(s.open, 0xFFFF'FFFF'FFFF'FFFF, 4); }, "0104e000", 46,
     Errc::kReadWrap},
    {"InvalidateForbidden",
     [](const Scene& s) { return send_segment({}, {.tail = raw(s.open)}, Opcode::kSendInvalidate); }, "0109c000", 18,
     Errc::kCannotInvalidate},
    {"InvalidateUnknown", [](const Scene&) { return send_segment({}, {.tail = 0x1234500}, Opcode::kSendInvalidate); },
     "0109c000", 18, Errc::kCannotInvalidate},
};

class ViolationTest : public ::testing::TestWithParam<std::tuple<Violation, bool, std::size_t>> {};

TEST_P(ViolationTest, TerminatesExactly) {
  COVERS("RFC5040-7-1");
  COVERS("RFC5040-7.1-1");
  COVERS("RFC5040-7.1-2");
  COVERS("RFC5040-7.1-4");
  COVERS("RFC5040-7.1-5");
  COVERS("RFC5040-5.4-9");
  COVERS("RFC5040-5.4-10");
  COVERS("RFC5040-6.2.1-1");
  COVERS("RFC5040-6.2.1-4");
  COVERS("RFC5040-7-3");
  COVERS("RFC5040-7.2-1");
  COVERS("RFC5041-6.2.2-3");
  COVERS("RFC5041-6.2.2-4");
  COVERS("RFC5041-7.1-16");
  COVERS("RFC5041-7.1-17");
  COVERS("RFC5041-7.1-18");
  COVERS("RFC5041-7.1-19");
  COVERS("RFC5041-7.2-1");
  COVERS("RFC5040-3.1-11");
  COVERS("RFC5040-3.2-7");
  COVERS("RFC5040-3.2-10");
  COVERS("RFC5040-5.4-11");
  COVERS("RFC5040-7-2");
  COVERS("RFC5040-7-4");
  COVERS("RFC5041-3-10");
  COVERS("RFC5041-3-11");
  COVERS("RFC5041-3-14");
  COVERS("RFC5041-6.2.2-6");
  const auto& [v, crc, chunk] = GetParam();
  RawPeerOptions options;
  options.crc = crc;
  RawPeer p(options);
  auto& open = p.end.region(100, test::kRemoteAll);
  auto& foreign = p.end.region(100, test::kRemoteAll, 0x10000, ddp::StreamKey{PdId{77}, ddp::StreamId::kAny});
  auto& unwritable = p.end.region(100, ddp::Access::kLocalWrite);
  auto& local = p.end.region(100);
  p.end.post(rdmap::RecvWr{1, local.sge(0, 50)});
  p.end.post(rdmap::RecvWr{2, local.sge(50, 50)});
  const Bytes bad = v.ulpdu({open.stag(), foreign.stag(), unwritable.stag()});

  // Good traffic behind the bad FPDU must not be seen. (What a Read Request asks for is looked at when its turn comes.)
  Bytes stream = test::fpdu(bad, crc);
  if (v.quoted != 46) {
    stream = stream | test::fpdu(send_segment(pattern(3)), crc) |
             test::fpdu(write_segment(open.stag(), 0x10000, pattern(9)), crc);
  }
  p.feed(stream, chunk);
  std::string expected = v.control;
  if (v.quoted != 0) {
    Bytes length(2);
    store_be<std::uint16_t>(length, static_cast<std::uint16_t>(bad.size()));
    expected += to_hex(length | Bytes(bad.begin(), bad.begin() + static_cast<std::ptrdiff_t>(v.quoted)));
  }
  EXPECT_EQ(p.terminate(), expected);
  EXPECT_EQ(open.bytes(), Bytes(100));
  EXPECT_EQ(foreign.bytes(), Bytes(100));
  EXPECT_EQ(local.bytes(), Bytes(100));

  // All requests end, later ones at once, nothing more is sent; TCP is closed in order.
  ASSERT_EQ(p.end.recvs.size(), 2U);
  EXPECT_EQ(p.end.recvs[0].status, v.reason == Errc::kCannotInvalidate ? Errc::kCannotInvalidate : Errc::kFlushed);
  EXPECT_EQ(p.end.recvs[1].status, Errc::kFlushed);
  p.end.post(test::send_wr(9, {}));
  p.end.post(rdmap::RecvWr{10, {}});
  p.end.collect();
  EXPECT_EQ(p.end.sends.back().status, Errc::kFlushed);
  EXPECT_EQ(p.end.recvs.back().status, Errc::kFlushed);
  EXPECT_EQ(p.end.recvs.back().wr_id, 10U);
  p.feed(test::fpdu(send_segment(pattern(3)), crc) | test::fpdu(bad, crc) |
             test::fpdu(test::terminate_segment(hex("20020000")), crc),
         chunk);
  EXPECT_TRUE(p.ulpdus().empty());
  EXPECT_EQ(p.link_action(), LinkAction::kShutdownWrite);
  EXPECT_EQ(p.end.disconnected(), nullptr) << "it waits for the peer's FIN";
  p.end.end(TcpEnd::kFin, p.now);
  EXPECT_EQ(p.link_action(), LinkAction::kClose);
  const auto* down = p.end.disconnected();
  ASSERT_NE(down, nullptr);
  EXPECT_EQ(down->reason.code, v.reason);
  EXPECT_TRUE(down->was_established);
  EXPECT_FALSE(down->received);
  ASSERT_TRUE(down->sent);
}

INSTANTIATE_TEST_SUITE_P(Each, ViolationTest,
                         ::testing::Combine(::testing::ValuesIn(kViolations), ::testing::Bool(),
                                            ::testing::Values(std::size_t{1 << 20}, std::size_t{7}, std::size_t{1000})),
                         [](const auto& tested) {
                           return std::string(std::get<0>(tested.param).name) +
                                  (std::get<1>(tested.param) ? "Crc" : "NoCrc") +
                                  std::to_string(std::get<2>(tested.param));
                         });

TEST(Violation, NoReceivePosted) {
  COVERS("RFC5041-7.1-2");
  COVERS("RFC5041-7.1-9");
  RawPeer p;
  p.feed_ulpdu(send_segment(pattern(4)));
  EXPECT_EQ(p.terminate(), "1202c0000016" + to_hex(send_segment({})));
}

TEST(Violation, MoreReadsThanIrd) {
  COVERS("RFC5040-6.1-10");
  COVERS("RFC5040-5.2.2-3");
  COVERS("RFC5040-6.1-3");
  COVERS("RFC6581-3-1");
  COVERS("RFC6581-9.1-1");
  RawPeerOptions o;
  o.ird = o.ord = 2;
  RawPeer p(o);
  auto& open = p.end.region(100, test::kRemoteAll);
  p.feed_ulpdu(read(open.stag(), 0x10000, 4, 1));
  p.feed_ulpdu(read(open.stag(), 0x10000, 4, 2));
  EXPECT_EQ(p.ulpdus().size(), 2U);
  for (std::uint32_t msn = 3; msn < 6; ++msn) p.feed_ulpdu(read(open.stag(), 0x10000, 4, msn));
  const auto t = p.terminate();
  EXPECT_EQ(t.substr(0, 8), "1202c000");
}

// siw has as many Reads outstanding as the next power of two.
TEST(Violation, IrdIsRoundedUpToAPowerOfTwo) {
  RawPeerOptions o;
  o.ird = o.ord = 5;
  RawPeer p(o);
  auto& open = p.end.region(100, test::kRemoteAll);
  for (std::uint32_t msn = 1; msn <= 8; ++msn) p.feed_ulpdu(read(open.stag(), 0x10000, 4, msn));
  EXPECT_EQ(p.ulpdus().size(), 8U);
  for (std::uint32_t msn = 9; msn <= 17; ++msn) p.feed_ulpdu(read(open.stag(), 0x10000, 4, msn));
  EXPECT_EQ(p.terminate().substr(0, 8), "1202c000");
}

// A peer that fills the Read queue of its connection takes nothing from another one.
TEST(Violation, ReadQueuesAreNotShared) {
  COVERS("RFC5040-8.1.2-8");
  COVERS("RFC5042-6.4.3.3-1");
  COVERS("RFC5042-A-3");
  RawPeerOptions o;
  o.ird = o.ord = 2;
  RawPeer greedy(o), modest(o);
  auto& wanted = greedy.end.region(100, test::kRemoteAll);
  auto& open = modest.end.region(100, test::kRemoteAll);
  for (std::uint32_t msn = 1; msn <= 2; ++msn) greedy.feed_ulpdu(read(wanted.stag(), 0x10000, 4, msn));
  for (std::uint32_t msn = 1; msn <= 2; ++msn) modest.feed_ulpdu(read(open.stag(), 0x10000, 4, msn));
  EXPECT_EQ(modest.ulpdus().size(), 2U);
  greedy.feed_ulpdu(read(wanted.stag(), 0x10000, 4, 3));
  EXPECT_EQ(greedy.terminate().substr(0, 8), "1202c000");
}

TEST(Violation, ReceiveMemoryNotRegistered) {
  COVERS("RFC5041-7.2-2");
  RawPeer p;
  auto& local = p.end.region(100);
  p.end.post(rdmap::RecvWr{1, local.all()});
  local.revoke();
  p.feed_ulpdu(send_segment(pattern(4)));
  EXPECT_EQ(p.terminate(), "10000000");
}

TEST(Violation, FirstErrorIsTheOneThatIsTold) {
  COVERS("RFC5040-7.1-6");
  RawPeer p;
  p.feed(test::fpdu(send_segment(pattern(4)), true) | test::fpdu(write_segment(Stag{0}, 0, pattern(4)), true));
  EXPECT_EQ(p.terminate().substr(0, 8), "1202c000");
}

// Nothing may follow our FIN.
TEST(Violation, BehindOurFinIsAnsweredWithAReset) {
  RawPeer p;
  p.end.disconnect(p.now);
  EXPECT_EQ(p.link_action(), LinkAction::kShutdownWrite);
  p.feed_ulpdu(send_segment(pattern(4)));  // no receive is posted
  EXPECT_FALSE(p.end.conn().tx_pending());
  EXPECT_EQ(p.link_action(), LinkAction::kReset);
}

TEST(Violation, CrcErrorIsToldAndNothingBehindItIsDelivered) {
  COVERS("RFC5044-8-2");
  COVERS("RFC5044-8-13");
  COVERS("RFC5044-8-14");
  COVERS("RFC5044-8-15");
  COVERS("RFC5044-8-16");
  COVERS("RFC5044-4.4-23");
  COVERS("RFC5041-6.2.2-2");
  COVERS("RFC5041-6.2.2-5");
  COVERS("RFC5041-7-1");
  COVERS("RFC5044-8-5");
  for (const std::size_t chunk : {std::size_t{1}, std::size_t{1 << 20}}) {
    RawPeer p;
    auto& local = p.end.region(100);
    for (std::uint64_t i = 0; i < 3; ++i) p.end.post(rdmap::RecvWr{i, local.sge(i * 30, 30)});
    Bytes bad = test::fpdu(send_segment(pattern(5), {.msn = 2}), true);
    bad[25] ^= std::byte{4};
    p.feed(test::fpdu(send_segment(pattern(5)), true) | bad | test::fpdu(send_segment(pattern(5), {.msn = 2}), true),
           chunk);
    EXPECT_EQ(p.terminate(), "20020000");
    EXPECT_EQ(p.link_action(), LinkAction::kShutdownWrite) << "only after the Terminate";
    ASSERT_EQ(p.end.recvs.size(), 3U);
    EXPECT_EQ(p.end.recvs[0].status, Errc::kOk);
    EXPECT_EQ(p.end.recvs[1].status, Errc::kFlushed);
    EXPECT_TRUE(
        std::all_of(local.bytes().begin() + 30, local.bytes().end(), [](std::byte b) { return b == std::byte{0}; }));
  }
}

TEST(Violation, CrcFieldIsNotCheckedWithCrcOff) {
  COVERS("RFC5044-4.1-9");
  COVERS("RFC5044-4.4-12");
  COVERS("RFC5044-7.1.1-14");
  COVERS("RFC5044-7.1.1-18");
  RawPeerOptions o;
  o.crc = false;
  RawPeer p(o);
  auto& local = p.end.region(10000);
  p.end.post(rdmap::RecvWr{1, local.sge(0, 5000)});
  p.end.post(rdmap::RecvWr{2, local.sge(5000, 5000)});
  for (std::uint32_t msn = 1; msn <= 2; ++msn) {
    Bytes bytes = test::fpdu(send_segment(pattern(msn == 1 ? 5 : 4999), {.msn = msn}), false);
    for (std::size_t i = 1; i <= 4; ++i) bytes[bytes.size() - i] = std::byte{0xAB};
    p.feed(bytes, 100);
  }
  ASSERT_EQ(p.end.recvs.size(), 2U);
  EXPECT_EQ(p.end.recvs[1].byte_len, 4999U);
  EXPECT_EQ(Bytes(local.bytes().begin() + 5000, local.bytes().begin() + 9999), pattern(4999));
}

TEST(Violation, ReservedBitsAndOddPadAreNone) {
  COVERS("RFC5041-4.1-11");
  COVERS("RFC5040-4.1-12");
  COVERS("RFC5044-4.1-6");
  RawPeer p;
  auto& local = p.end.region(100);
  p.end.post(rdmap::RecvWr{1, local.all()});
  Bytes ulpdu = send_segment(pattern(5));
  ulpdu[0] |= std::byte{0x3C};
  ulpdu[1] |= std::byte{0x30};
  // 2 + 23 octets: three of pad, here not zero but covered by the CRC.
  Bytes bytes = hex("0017") | ulpdu | hex("ffeedd");
  Bytes crc(4);
  mpa::Crc32c sum;
  sum.update(bytes);
  sum.write_to(std::span<std::byte, 4>(crc));
  p.feed(bytes | crc);
  ASSERT_EQ(p.end.recvs.size(), 1U);
  EXPECT_EQ(p.end.recvs[0].byte_len, 5U);
}

}  // namespace
}  // namespace iwarp::stream
