#include "iwarp/mpa/startup_frame.h"

#include <gtest/gtest.h>

#include "tests/support/covers.h"
#include "tests/support/hex.h"

namespace iwarp::mpa {
namespace {

using test::operator+;
using test::Bytes;
using test::hex;
using test::to_hex;

constexpr const char* kRequestKey = "4d504120 49442052 65712046 72616d65 ";
constexpr const char* kReplyKey = "4d504120 49442052 65702046 72616d65 ";

Bytes request(const std::string& rest) {
  return hex(kRequestKey + rest);
}
Bytes reply(const std::string& rest) {
  return hex(kReplyKey + rest);
}

StartupParse parse(bool is_reply, ConstBytes bytes) {
  return is_reply ? parse_reply(bytes) : parse_request(bytes);
}

StartupFrame parsed(bool is_reply, const Bytes& bytes) {
  const StartupParse r = parse(is_reply, bytes);
  const auto* p = std::get_if<StartupFrame::Parsed>(&r);
  if (p == nullptr) {
    ADD_FAILURE() << to_hex(bytes) << " does not parse";
    return {};
  }
  return p->frame;
}

Errc code_of(const StartupParse& r) {
  const auto* e = std::get_if<Error>(&r);
  return e == nullptr ? Errc::kOk : e->code;
}

std::string written(const StartupFrame& f) {
  Bytes out(f.size());
  f.write_to(out);
  return to_hex(out);
}

// Frames as captured between real peers or derived from their sources, and what they say.
struct Vector {
  const char* name;
  bool is_reply;
  const char* rest;  // behind the Key
  const char* text;
};
constexpr Vector kVectors[] = {
    {"siw-rping Request", false, "10 02 0004 0001 0001",
     "Request(rev=2, crc=0, markers=0, enhanced=1, p2p=0, rtr_send=0, rtr_write=0, rtr_read=0, ird=1, ord=1, pd=0)"},
    {"siw-rping Reply", true, "10 02 0004 0001 0001",
     "Reply(rev=2, reject=0, crc=0, markers=0, enhanced=1, p2p=0, rtr_send=0, rtr_write=0, rtr_read=0, ird=1, ord=1, "
     "pd=0)"},
    {"siw-crc-rping Request", false, "50 02 0004 0001 0001",
     "Request(rev=2, crc=1, markers=0, enhanced=1, p2p=0, rtr_send=0, rtr_write=0, rtr_read=0, ird=1, ord=1, pd=0)"},
    {"siw-crc-rping Reply", true, "50 02 0004 0001 0001",
     "Reply(rev=2, reject=0, crc=1, markers=0, enhanced=1, p2p=0, rtr_send=0, rtr_write=0, rtr_read=0, ird=1, ord=1, "
     "pd=0)"},
    {"siw-p2p-rping Request", false, "10 02 0004 8001 c001",
     "Request(rev=2, crc=0, markers=0, enhanced=1, p2p=1, rtr_send=0, rtr_write=1, rtr_read=1, ird=1, ord=1, pd=0)"},
    {"siw-p2p-rping Reply", true, "10 02 0004 8001 8001",
     "Reply(rev=2, reject=0, crc=0, markers=0, enhanced=1, p2p=1, rtr_send=0, rtr_write=1, rtr_read=0, ird=1, ord=1, "
     "pd=0)"},
    {"siw-p2pcrc-rping Request", false, "50 02 0004 8001 c001",
     "Request(rev=2, crc=1, markers=0, enhanced=1, p2p=1, rtr_send=0, rtr_write=1, rtr_read=1, ird=1, ord=1, pd=0)"},
    {"siw-p2pcrc-rping Reply", true, "50 02 0004 8001 8001",
     "Reply(rev=2, reject=0, crc=1, markers=0, enhanced=1, p2p=1, rtr_send=0, rtr_write=1, rtr_read=0, ird=1, ord=1, "
     "pd=0)"},
    {"siw-v1-rping Request", false, "00 01 0000", "Request(rev=1, crc=0, markers=0, enhanced=0, pd=0)"},
    {"siw-v1-rping Reply", true, "00 01 0000", "Reply(rev=1, reject=0, crc=0, markers=0, enhanced=0, pd=0)"},
    {"siw NFS client Request", false, "10 02 000c 0080 0000 f6ab0e18 01010303",
     "Request(rev=2, crc=0, markers=0, enhanced=1, p2p=0, rtr_send=0, rtr_write=0, rtr_read=0, ird=128, ord=0, pd=8)"},
    {"siw svcrdma Reply", true, "10 02 000c 0000 0080 f6ab0e18 01000303",
     "Reply(rev=2, reject=0, crc=0, markers=0, enhanced=1, p2p=0, rtr_send=0, rtr_write=0, rtr_read=0, ird=0, ord=128, "
     "pd=8)"},
    {"cxgb4 Request, captured head with zero private data", false,
     "50 02 0024 8020 4001 0000000000000000 0000000000000000 0000000000000000 0000000000000000",
     "Request(rev=2, crc=1, markers=0, enhanced=1, p2p=1, rtr_send=0, rtr_write=0, rtr_read=1, ird=32, ord=1, pd=32)"},
    {"SMB Direct over MPA v1", false, "40 01 0008 00000020 00000001",
     "Request(rev=1, crc=1, markers=0, enhanced=0, pd=8)"},
    {"reject with Markers wanted and every form", true, "f0 02 0004 ffff ffff",
     "Reply(rev=2, reject=1, crc=1, markers=1, enhanced=1, p2p=1, rtr_send=1, rtr_write=1, rtr_read=1, ird=16383, "
     "ord=16383, pd=0)"},
};

TEST(StartupFrame, ReadsAndWritesFramesOfRealPeers) {
  COVERS("RFC5044-7.1.1-1");
  COVERS("RFC5044-7.1.1-2");
  COVERS("RFC5044-7.1.1-5");
  COVERS("RFC5044-7.1.1-29");
  COVERS("RFC6581-6-1");
  COVERS("RFC6581-6-2");
  COVERS("RFC6581-6-11");
  COVERS("RFC6581-9-1");
  COVERS("RFC6581-9-3");
  COVERS("RFC6581-9-4");
  COVERS("RFC6581-9-5");
  COVERS("RFC6581-6-3");
  COVERS("RFC6581-9.2-1");
  for (const Vector& v : kVectors) {
    SCOPED_TRACE(v.name);
    const Bytes bytes = v.is_reply ? reply(v.rest) : request(v.rest);
    const StartupParse r = parse(v.is_reply, bytes);
    const auto* p = std::get_if<StartupFrame::Parsed>(&r);
    ASSERT_NE(p, nullptr);
    EXPECT_EQ(p->bytes, bytes.size());
    EXPECT_EQ(p->frame.to_string(), v.text);
    EXPECT_EQ(p->frame.size(), bytes.size());
    EXPECT_EQ(written(p->frame), to_hex(bytes));
  }
}

TEST(StartupFrame, HandsOutThePrivateDataOfTheUlpOnly) {
  COVERS("RFC6581-6-10");
  COVERS("RFC6581-6-6");
  COVERS("RFC6581-9-2");
  EXPECT_EQ(to_hex(parsed(false, request("10 02 0008 0001 0001 aabbccdd")).private_data), "aabbccdd");
  EXPECT_EQ(to_hex(parsed(false, request("00 02 0004 aabbccdd")).private_data), "aabbccdd") << "S=0: all of it";
}

TEST(StartupFrame, AsksForMoreAtEveryPrefix) {
  COVERS("RFC5044-7.1.1-30");
  for (const Vector& v : kVectors) {
    const Bytes whole = v.is_reply ? reply(v.rest) : request(v.rest);
    for (std::size_t n = 0; n < whole.size(); ++n) {
      const StartupParse r = parse(v.is_reply, ConstBytes(whole).first(n));
      const auto* more = std::get_if<NeedMore>(&r);
      ASSERT_NE(more, nullptr) << v.name << " " << n;
      EXPECT_EQ(more->at_least, n < kStartupHeaderBytes ? kStartupHeaderBytes : whole.size());
    }
  }
}

TEST(StartupFrame, LeavesWhatFollowsAlone) {
  const Bytes whole = reply("10 02 0004 0001 0001") + hex("0022 4143");
  const StartupParse r = parse_reply(whole);
  ASSERT_TRUE(std::holds_alternative<StartupFrame::Parsed>(r));
  EXPECT_EQ(std::get<StartupFrame::Parsed>(r).bytes, 24u);
}

TEST(StartupFrame, TellsAStrangerByTheFirstWrongOctet) {
  COVERS("RFC5044-7.1.1-3");
  COVERS("RFC5044-7.1.1-4");
  COVERS("RFC5044-7.1.1-6");
  COVERS("RFC5044-7.1.1-7");
  COVERS("RFC5044-7.1.2-19");
  for (const bool is_reply : {false, true}) {
    const Bytes whole = is_reply ? reply("10 02 0004 0001 0001") : request("10 02 0004 0001 0001");
    for (std::size_t i = 0; i < kKeyBytes; ++i) {
      Bytes bad = whole;
      bad[i] ^= std::byte{0x20};
      EXPECT_EQ(code_of(parse(is_reply, bad)), Errc::kMalformedStartupFrame) << i;
      EXPECT_EQ(code_of(parse(is_reply, ConstBytes(bad).first(i + 1))), Errc::kMalformedStartupFrame)
          << "at once, " << i;
      EXPECT_EQ(code_of(parse(is_reply, ConstBytes(bad).first(i))), Errc::kOk) << "not yet, " << i;
    }
  }
}

TEST(StartupFrame, TellsCrossedRoles) {
  COVERS("RFC5044-7.1.2-25");
  COVERS("RFC5044-7.1-10");
  const StartupParse r = parse_reply(request("10 02 0004 0001 0001"));
  ASSERT_EQ(code_of(r), Errc::kMalformedStartupFrame);
  EXPECT_STREQ(std::get<Error>(r).why, "both ends play the same MPA role");
  EXPECT_EQ(code_of(parse_request(reply("10 02 0004 0001 0001"))), Errc::kMalformedStartupFrame);
}

TEST(StartupFrame, ErrorsOweThePeerNothing) {
  COVERS("RFC5044-8-4");
  for (const StartupParse& r :
       {parse_request(hex("ff")), parse_request(request("10 02 0201")), parse_request(request("10 02 0003"))}) {
    ASSERT_TRUE(std::holds_alternative<Error>(r));
    EXPECT_FALSE(std::get<Error>(r).tell_peer);
  }
}

TEST(StartupFrame, JudgesPdLengthOnTheHeaderAlone) {
  COVERS("RFC5044-7.1.1-32");
  COVERS("RFC5044-7.1.2-27");
  COVERS("RFC5044-7.1.2-28");
  COVERS("RFC5044-7.1.2-29");
  COVERS("RFC5044-7.1.2-30");
  COVERS("RFC6581-6-3");
  struct {
    const char* name;
    const char* head;
    std::size_t max;
    Errc code;
    std::size_t total;  // if the header is fine
  } static const kCases[] = {
      {"512 octets", "10 02 0200", 512, Errc::kOk, 532},
      {"513 octets", "10 02 0201", 512, Errc::kPrivateDataTooLong, 0},
      {"65535 octets", "00 01 ffff", 512, Errc::kPrivateDataTooLong, 0},
      {"limit of 8, 8 octets", "10 02 0008", 8, Errc::kOk, 28},
      {"limit of 8, 9 octets", "10 02 0009", 8, Errc::kPrivateDataTooLong, 0},
      {"a limit above 512 is 512", "10 02 0201", 4096, Errc::kPrivateDataTooLong, 0},
      {"enhanced, 0 octets", "10 02 0000", 512, Errc::kMalformedStartupFrame, 0},
      {"enhanced, 3 octets", "10 02 0003", 512, Errc::kMalformedStartupFrame, 0},
      {"enhanced, 4 octets", "10 02 0004", 512, Errc::kOk, 24},
      {"enhanced, revision 3, 3 octets", "10 03 0003", 512, Errc::kMalformedStartupFrame, 0},
      {"S in a revision 1 frame is reserved, 3 octets", "10 01 0003", 512, Errc::kOk, 23},
      {"not enhanced, revision 2, 1 octet", "00 02 0001", 512, Errc::kOk, 21},
  };
  for (const auto& c : kCases) {
    for (const bool is_reply : {false, true}) {
      SCOPED_TRACE(c.name);
      const Bytes head = is_reply ? reply(c.head) : request(c.head);
      const StartupParse r = is_reply ? parse_reply(head, c.max) : parse_request(head, c.max);
      EXPECT_EQ(code_of(r), c.code);
      if (c.code == Errc::kOk) {
        ASSERT_TRUE(std::holds_alternative<NeedMore>(r));
        EXPECT_EQ(std::get<NeedMore>(r).at_least, c.total);
      }
    }
  }
}

TEST(StartupFrame, TakesTheLongestPrivateData) {
  COVERS("RFC5044-7.1.1-32");
  COVERS("RFC6581-9-2");
  const Bytes whole = request("10 02 0200 0001 0001") + test::pattern(508);
  const StartupFrame f = parsed(false, whole);
  EXPECT_EQ(f.private_data.size(), 508u);
  EXPECT_EQ(written(f), to_hex(whole));
}

TEST(StartupFrame, IgnoresReservedBitsAndNeverWritesThem) {
  COVERS("RFC5044-7.1.1-22");
  COVERS("RFC5044-7.1.1-23");
  COVERS("RFC6581-6-4");
  COVERS("RFC6581-6-5");
  for (unsigned bits = 0; bits < 16; ++bits) {
    Bytes bytes = request("50 02 0004 8001 4001");
    bytes[16] |= static_cast<std::byte>(bits);
    const StartupFrame f = parsed(false, bytes);
    EXPECT_EQ(f.reserved_bits, bits);
    EXPECT_TRUE(f.crc && f.enhanced && !f.markers && !f.reject);
    EXPECT_EQ(written(f), to_hex(request("50 02 0004 8001 4001")));
  }
}

TEST(StartupFrame, IsEnhancedByFlagAndRevisionTogether) {
  COVERS("RFC6581-10-7");
  COVERS("RFC6581-6-7");
  EXPECT_FALSE(parsed(false, request("00 02 0004 8001 4001")).enhanced) << "revision 2 alone does not do it";
  EXPECT_TRUE(parsed(false, request("10 03 0004 8001 4001")).enhanced);
  for (const char* revision : {"00", "01"}) {  // there the bit is a reserved one of RFC 5044
    const StartupFrame f = parsed(false, request(std::string("10") + revision + "0004 8001 4001"));
    EXPECT_FALSE(f.enhanced);
    EXPECT_EQ(f.reserved_bits, 0x10);
    EXPECT_EQ(f.private_data.size(), 4u);
    EXPECT_NE(f.to_string().find("res=16"), std::string::npos);
  }
}

TEST(StartupFrame, KeepsTheSpecialIrdAndOrdValue) {
  COVERS("RFC6581-9.1-22");
  const StartupFrame f = parsed(true, reply("10 02 0004 3fff 3ffe"));
  EXPECT_EQ(f.enhanced_data.ird, kNoIrdOrdNegotiation);
  EXPECT_EQ(f.enhanced_data.ord, kMaxIrdOrd);
  EXPECT_FALSE(f.enhanced_data.peer_to_peer || f.enhanced_data.rtr_read);
}

TEST(StartupFrame, ParseWriteParseIsStableForEveryFlagOctet) {
  for (unsigned flags = 0; flags < 256; ++flags) {
    for (unsigned revision = 0; revision < 4; ++revision) {
      Bytes bytes = reply("00 00 0006 1234 5678 9abc");
      bytes[16] = static_cast<std::byte>(flags);
      bytes[17] = static_cast<std::byte>(revision);
      const StartupFrame f = parsed(true, bytes);
      Bytes out(f.size());
      f.write_to(out);
      const StartupFrame g = parsed(true, out);
      EXPECT_EQ(written(g), to_hex(out));
      EXPECT_EQ(g.enhanced_data, f.enhanced_data);
    }
  }
}

}  // namespace
}  // namespace iwarp::mpa
