#include "iwarp/mpa/fpdu_encoder.h"

#include <gtest/gtest.h>

#include "tests/support/covers.h"
#include "tests/support/hex.h"

namespace iwarp::mpa {
namespace {

using test::operator+;
using test::Bytes;
using test::hex;
using test::to_hex;

Bytes encode(const Bytes& ulpdu, bool crc) {
  Bytes out(kLengthBytes);
  write_length(std::span<std::byte>(out).first<kLengthBytes>(), ulpdu.size());
  out = out + ulpdu;
  const FpduTrailer trailer = make_trailer(out, {}, crc);
  out.insert(out.end(), trailer.view().begin(), trailer.view().end());
  return out;
}

TEST(FpduSizes, AreMultiplesOfFour) {
  COVERS("RFC5044-4.1-4");
  COVERS("RFC5044-4.1-10");
  COVERS("RFC5044-4.1-3");
  static_assert(pad_bytes(0) == 2 && pad_bytes(1) == 1 && pad_bytes(2) == 0 && pad_bytes(3) == 3 && pad_bytes(4) == 2);
  static_assert(fpdu_bytes(14) == 20, "RTR by Write");
  static_assert(fpdu_bytes(46) == 52, "RTR by Read");
  static_assert(fpdu_bytes(42) == 48, "Figure 5 without its Marker");
  for (std::size_t n = 0; n <= kMaxUlpduBytes; ++n) {
    ASSERT_EQ(fpdu_bytes(n) % 4, 0u);
    ASSERT_LT(pad_bytes(n), 4u);
    ASSERT_EQ(fpdu_bytes(n), 2 + n + pad_bytes(n) + 4);
  }
}

// FPDUs as real peers send them, whole ULPDU, then its CRC.
TEST(FpduTrailer, MatchesFpdusOfRealPeers) {
  COVERS("RFC5044-3-1");
  COVERS("RFC5044-4.1-1");
  COVERS("RFC5044-4.4-1");
  COVERS("RFC5044-4.4-9");
  COVERS("RFC5044-4.4-14");
  COVERS("RFC5044-4.1-2");
  COVERS("RFC5044-4.1-7");
  COVERS("RFC5044-4.4-16");
  COVERS("RFC5044-4.4-20");
  struct {
    const char* name;
    const char* fpdu;
    const char* crc;
  } static const kVectors[] = {
      {"siw RTR Write", "000e c140 00000001 00000000 00000000", "ebd34c5f"},
      {"siw RTR Read",
       "002e 4141 00000000 00000001 00000001 00000000 00000000 00000000 00000000 00000000 00000001 00000000 00000000",
       "ba10e3c9"},
      {"cxgb4 RTR Write", "000e c140 00000001 00000000 00000001", "e85027ad"},
      {"cxgb4 RTR Read",
       "002e 4141 00000000 00000001 00000001 00000000 00000001 00000000 00000001 00000000 00000001 00000000 00000001",
       "7b84584a"},
      {"irdma RTR Write", "000e c140 00000000 00000000 00000000", "a30572ab"},
      {"irdma RTR Read",
       "002e 4141 00000000 00000001 00000001 00000000 0000abcd 00000000 00000000 00000000 00001234 00000000 00000000",
       "90aa1e5d"},
      {"Read Response to siw", "000e c142 00000000 00000000 00000000", "6975d6ca"},
      {"Read Response to cxgb4", "000e c142 00000001 00000000 00000001", "222083cc"},
      {"Read Response to irdma", "000e c142 0000abcd 00000000 00000000", "1e0faa55"},
      {"zero-length Send", "0012 4143 00000000 00000000 00000001 00000000", "587be8c4"},
      // captured between two siw, first FPDU of rping with CRC
      {"siw rping Send", "0022 4143 00000000 00000000 00000001 00000000 00005581 cd232470 4999e700 00000040",
       "96e7e189"},
      {"RFC 5044 Figure 5 without its Marker",
       "002a 4143 00000000 00000000 00000001 00000000 00000000 00000000 00000000 00000000 00000000 00000000",
       "b7243ec3"},
  };
  for (const auto& v : kVectors) {
    SCOPED_TRACE(v.name);
    const Bytes fpdu = hex(v.fpdu);
    const Bytes ulpdu(fpdu.begin() + 2, fpdu.end());
    EXPECT_EQ(to_hex(encode(ulpdu, true)), to_hex(fpdu + hex(v.crc)));
    EXPECT_EQ(to_hex(encode(ulpdu, false)), to_hex(fpdu) + "00000000");
  }
}

TEST(FpduTrailer, PadsWithZerosThatTheCrcCovers) {
  COVERS("RFC5044-4.1-5");
  for (std::size_t n = 0; n < 9; ++n) {
    const Bytes fpdu = encode(test::pattern(n, 0x80), true);
    ASSERT_EQ(fpdu.size(), fpdu_bytes(n));
    for (std::size_t i = 0; i < pad_bytes(n); ++i) EXPECT_EQ(fpdu[2 + n + i], std::byte{0});
    const ConstBytes all(fpdu);
    EXPECT_EQ(load_crc(all.last<kCrcBytes>()), crc32c(all.first(fpdu.size() - kCrcBytes)));
  }
}

TEST(FpduTrailer, IsSentAsZerosWithCrcOff) {
  COVERS("RFC5044-4.1-8");
  COVERS("RFC5044-4.4-13");
  const FpduTrailer t = make_trailer(nullptr, 3);
  EXPECT_EQ(to_hex(t.view()), "00000000000000");
  EXPECT_EQ(make_trailer(hex("0002 aabb"), {}, false).size, 4u);
}

TEST(FpduTrailer, IsTheSameForEveryWayToCutThePayload) {
  const Bytes ulpdu = test::pattern(37);
  const std::string want = to_hex(encode(ulpdu, true));
  Bytes head = hex("0025");
  head.insert(head.end(), ulpdu.begin(), ulpdu.begin() + 14);
  const ConstBytes payload = ConstBytes(ulpdu).subspan(14);
  for (std::size_t cut = 0; cut <= payload.size(); ++cut) {
    const std::array<ConstBytes, 3> pieces = {payload.first(cut), ConstBytes{}, payload.subspan(cut)};
    const FpduTrailer t = make_trailer(head, pieces, true);
    ASSERT_EQ(want.substr(want.size() - 2 * t.size), to_hex(t.view())) << cut;
  }
  Crc32c running;
  running.update(head);
  running.update(payload);
  const std::uint32_t before = running.value();
  const FpduTrailer t = make_trailer(&running, ulpdu.size());
  EXPECT_EQ(want.substr(want.size() - 2 * t.size), to_hex(t.view()));
  EXPECT_EQ(running.value(), before) << "the caller's CRC is not touched";
}

TEST(WriteLength, IsBigEndian) {
  std::array<std::byte, 2> out{};
  write_length(out, 0x002a);
  EXPECT_EQ(to_hex(out), "002a");
  write_length(out, kMaxSendUlpduBytes);
  EXPECT_EQ(to_hex(out), "fd00");
}

TEST(Mulpdu, FollowsTheFormulaOfTheRfcForEmss) {
  COVERS("RFC5044-4.5-3");
  COVERS("RFC5044-4.5-1");
  EXPECT_EQ(mulpdu_for(FpduPolicy::kEmss, 1448), 1442u);
  EXPECT_EQ(mulpdu_for(FpduPolicy::kEmss, 1460), 1454u);
  EXPECT_EQ(mulpdu_for(FpduPolicy::kEmss, 8948), 8942u);
  for (std::size_t emss = 134; emss < 64768; ++emss) {
    ASSERT_EQ(mulpdu_for(FpduPolicy::kEmss, emss), std::max<std::size_t>(128, emss - (6 + emss % 4))) << emss;
  }
}

TEST(Mulpdu, StaysBetween128And64768) {
  COVERS("RFC5044-3-4");
  COVERS("RFC5044-4.5-6");
  COVERS("RFC5044-3-5");
  COVERS("RFC5044-4.5-7");
  COVERS("RFC5044-4.5-8");
  for (const FpduPolicy policy : {FpduPolicy::kEmss, FpduPolicy::k16k, FpduPolicy::kMax}) {
    for (std::size_t emss = 0; emss < 70000; ++emss) {
      const std::size_t m = mulpdu_for(policy, emss);
      ASSERT_GE(m, 128u) << emss;
      ASSERT_LE(m, kMaxSendUlpduBytes) << emss;
    }
  }
  for (std::size_t emss = 0; emss < 136; ++emss) {
    ASSERT_EQ(mulpdu_for(FpduPolicy::kEmss, emss), 128u) << "too small for any FPDU: " << emss;
  }
  EXPECT_EQ(mulpdu_for(FpduPolicy::kEmss, 65483), 64766u) << "loopback: the formula would give 65474";
  EXPECT_EQ(mulpdu_for(FpduPolicy::kMax, 1448), 64766u);
}

TEST(Mulpdu, LeavesNoPadAndWholeWordsOfPayload) {
  for (std::size_t emss = 140; emss < 70000; ++emss) {
    const std::size_t m = mulpdu_for(FpduPolicy::kEmss, emss);
    ASSERT_EQ(pad_bytes(m), 0u) << emss;
    ASSERT_EQ((m - 14) % 4, 0u) << "behind a tagged header";
    ASSERT_EQ((m - 18) % 4, 0u) << "behind an untagged header";
    ASSERT_LE(fpdu_bytes(m), emss);
  }
}

TEST(Mulpdu, KeepsA16kFpduWithin16384Octets) {
  EXPECT_EQ(mulpdu_for(FpduPolicy::k16k, 1448), 16378u);
  EXPECT_EQ(fpdu_bytes(mulpdu_for(FpduPolicy::k16k, 1448)), 16384u);
}

}  // namespace
}  // namespace iwarp::mpa
