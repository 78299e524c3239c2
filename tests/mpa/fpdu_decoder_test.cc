#include "iwarp/mpa/fpdu_decoder.h"

#include <gtest/gtest.h>

#include <random>

#include "iwarp/mpa/fpdu_encoder.h"
#include "tests/support/covers.h"
#include "tests/support/hex.h"

namespace iwarp::mpa {
namespace {

using test::operator+;
using test::Bytes;
using test::hex;
using test::to_hex;

Bytes fpdu_of(const Bytes& ulpdu, bool crc = true) {
  Bytes out = {static_cast<std::byte>(ulpdu.size() >> 8), static_cast<std::byte>(ulpdu.size() & 0xFF)};
  out = out + ulpdu;
  const FpduTrailer t = make_trailer(out, {}, crc);
  out.insert(out.end(), t.view().begin(), t.view().end());
  return out;
}

// A receiver as the stream layer has it: keeps what is incomplete, hands every whole ULPDU on.
struct Receiver {
  explicit Receiver(bool crc) : decoder(crc) {}

  void feed(ConstBytes bytes) {
    held.insert(held.end(), bytes.begin(), bytes.end());
    while (true) {
      const DecodeResult r = decoder.decode(held);
      if (const auto* frame = std::get_if<FpduFrame>(&r)) {
        ulpdus.push_back(to_hex(frame->ulpdu));
        held.erase(held.begin(), held.begin() + static_cast<std::ptrdiff_t>(frame->fpdu_bytes));
      } else {
        if (const auto* e = std::get_if<Error>(&r)) error = *e;
        if (const auto* more = std::get_if<NeedMore>(&r)) {
          EXPECT_GT(more->at_least, held.size());
        }
        return;
      }
    }
  }

  FpduDecoder decoder;
  Bytes held;
  std::vector<std::string> ulpdus;
  std::optional<Error> error;
};

TEST(FpduDecoder, DecodesARealFpduFieldByField) {
  COVERS("RFC5044-4.1-2");
  COVERS("RFC5044-3-9");
  COVERS("RFC5044-4.3-22");
  COVERS("RFC5044-4.3-23");
  Bytes bytes =
      hex("0022"                                      // ULPDU_Length 34
          "4143 00000000 00000000 00000001 00000000"  // Send, QN 0, MSN 1, MO 0
          "00005581 cd232470 4999e700 00000040"       // rping's advertisement
          "96e7e189");                                // CRC, captured
  FpduDecoder d(true);
  const DecodeResult r = d.decode(bytes);
  const auto* frame = std::get_if<FpduFrame>(&r);
  ASSERT_NE(frame, nullptr);
  EXPECT_EQ(frame->fpdu_bytes, 40u);
  EXPECT_EQ(to_hex(frame->ulpdu), to_hex(ConstBytes(bytes).subspan(2, 34)));
  EXPECT_EQ(frame->ulpdu.data(), bytes.data() + 2) << "a view into the caller's buffer";
  EXPECT_EQ(d.stream_position(), 40u);
}

TEST(FpduDecoder, AcceptsEveryPeerVectorAndWritesItBack) {
  COVERS("RFC5044-6-1");
  COVERS("RFC5044-4.4-21");
  COVERS("RFC5044-4.4-22");
  for (const char* text :
       {"000ec140 00000001 00000000 00000000 ebd34c5f", "000ec140 00000001 00000000 00000001 e85027ad",
        "000ec140 00000000 00000000 00000000 a30572ab", "000ec142 00000000 00000000 00000000 6975d6ca",
        "000ec142 0000abcd 00000000 00000000 1e0faa55", "00124143 00000000 00000000 00000001 00000000 587be8c4"}) {
    Bytes bytes = hex(text);
    FpduDecoder d(true);
    const DecodeResult r = d.decode(bytes);
    const auto* frame = std::get_if<FpduFrame>(&r);
    ASSERT_NE(frame, nullptr) << text;
    EXPECT_EQ(to_hex(fpdu_of(Bytes(frame->ulpdu.begin(), frame->ulpdu.end()))), to_hex(bytes));
  }
}

TEST(FpduDecoder, AsksForMoreAtEveryPrefix) {
  COVERS("RFC5044-6-8");
  COVERS("RFC5044-1.2-1");
  COVERS("RFC5044-A.4-2");
  const Bytes whole = fpdu_of(test::pattern(37));
  for (std::size_t n = 0; n < whole.size(); ++n) {
    Bytes prefix(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(n));
    FpduDecoder d(true);
    const DecodeResult r = d.decode(prefix);
    const auto* more = std::get_if<NeedMore>(&r);
    ASSERT_NE(more, nullptr) << n;
    EXPECT_EQ(more->at_least, n < 2 ? 2u : whole.size()) << n;
    EXPECT_EQ(d.stream_position(), 0u);
  }
}

TEST(FpduDecoder, RefusesEveryFlippedBit) {
  COVERS("RFC5044-6-3");
  COVERS("RFC5044-4.4-10");
  COVERS("RFC5044-4.4-23");
  COVERS("RFC5044-8-2");
  const Bytes whole = fpdu_of(test::pattern(9));
  for (std::size_t bit = 16; bit < whole.size() * 8; ++bit) {  // a wrong length is another matter, see below
    Bytes bad = whole;
    bad[bit / 8] ^= static_cast<std::byte>(0x80 >> bit % 8);
    FpduDecoder d(true);
    const DecodeResult r = d.decode(bad);
    const auto* error = std::get_if<Error>(&r);
    ASSERT_NE(error, nullptr) << bit;
    EXPECT_EQ(error->code, Errc::kCrcMismatch);
    EXPECT_EQ(error->tell_peer, (TerminateCode{2, 0, 2}));
  }
}

TEST(FpduDecoder, FindsAWrongLengthByTheCrc) {
  COVERS("RFC5044-6-2");
  COVERS("RFC5044-6-5");
  const Bytes whole = fpdu_of(test::pattern(60)) + fpdu_of(test::pattern(60));
  for (const std::size_t length : {0u, 1u, 59u, 61u, 100u}) {
    Bytes bad = whole;
    bad[0] = std::byte{0};
    bad[1] = static_cast<std::byte>(length);
    FpduDecoder d(true);
    const DecodeResult r = d.decode(bad);
    ASSERT_TRUE(std::holds_alternative<Error>(r)) << length;
    EXPECT_EQ(std::get<Error>(r).code, Errc::kCrcMismatch);
  }
}

TEST(FpduDecoder, StaysInErrorEvenForGoodFpdus) {
  COVERS("RFC5044-8-13");
  Bytes bad = fpdu_of(test::pattern(9));
  bad.back() ^= std::byte{1};
  Bytes good = fpdu_of(test::pattern(9));
  FpduDecoder d(true);
  (void)std::get<FpduFrame>(d.decode(good));
  const DecodeResult first = d.decode(bad);
  ASSERT_TRUE(std::holds_alternative<Error>(first));
  for (int i = 0; i < 3; ++i) {
    const DecodeResult again = d.decode(good);
    ASSERT_TRUE(std::holds_alternative<Error>(again));
    EXPECT_EQ(std::get<Error>(again), std::get<Error>(first));
  }
  EXPECT_TRUE(std::holds_alternative<Error>(d.decode({}))) << "not even NeedMore";
  EXPECT_EQ(d.stream_position(), good.size());
}

TEST(FpduDecoder, IgnoresTheCrcFieldWithCrcOff) {
  COVERS("RFC5044-4.1-9");
  COVERS("RFC5044-4.4-12");
  COVERS("RFC5044-7.1.1-14");
  COVERS("RFC5044-7.1.1-18");
  for (const char* crc : {"00000000", "ffffffff", "96e7e189"}) {
    Bytes bytes = hex("0002aabb") + hex(crc);
    FpduDecoder d(false);
    const DecodeResult r = d.decode(bytes);
    ASSERT_TRUE(std::holds_alternative<FpduFrame>(r));
    EXPECT_EQ(to_hex(std::get<FpduFrame>(r).ulpdu), "aabb");
  }
  EXPECT_FALSE(FpduDecoder(false).crc_enabled());
  EXPECT_TRUE(FpduDecoder(true).crc_enabled());
}

TEST(FpduDecoder, SkipsTheCheckForFuzzersOnly) {
  Bytes bytes = hex("0002aabb 00000000");
  FpduDecoder d(true, false, true);
  EXPECT_TRUE(d.crc_enabled());
  EXPECT_TRUE(std::holds_alternative<FpduFrame>(d.decode(bytes)));
}

TEST(FpduDecoder, IgnoresNonZeroPadButChecksItInTheCrc) {
  COVERS("RFC5044-4.1-6");
  Bytes covered = hex("0001 aa ff");  // one octet of pad, not zero
  Crc32c crc;
  crc.update(covered);
  std::array<std::byte, kCrcBytes> field{};
  crc.write_to(field);
  Bytes bytes = covered + Bytes(field.begin(), field.end());
  FpduDecoder d(true);
  const DecodeResult r = d.decode(bytes);
  ASSERT_TRUE(std::holds_alternative<FpduFrame>(r));
  EXPECT_EQ(to_hex(std::get<FpduFrame>(r).ulpdu), "aa") << "no pad in the ULPDU";
}

TEST(FpduDecoder, AcceptsEveryLengthTheFieldCanSay) {
  COVERS("RFC5044-3-6");
  for (const std::size_t n : {0u, 1u, 2u, 3u, 127u, 1442u, 16378u, 64768u, 64769u, 65514u, 65535u}) {
    const Bytes ulpdu = test::pattern(n);
    Bytes bytes = fpdu_of(ulpdu);
    FpduDecoder d(true);
    const DecodeResult r = d.decode(bytes);
    const auto* frame = std::get_if<FpduFrame>(&r);
    ASSERT_NE(frame, nullptr) << n;
    EXPECT_EQ(frame->ulpdu.size(), n);
    EXPECT_EQ(frame->fpdu_bytes, fpdu_bytes(n));
    EXPECT_TRUE(std::equal(ulpdu.begin(), ulpdu.end(), frame->ulpdu.begin()));
  }
}

TEST(FpduDecoder, PeeksTheLayoutFromTwoBytes) {
  COVERS("RFC5044-5.2-1");
  COVERS("RFC5044-6-4");
  EXPECT_FALSE(FpduDecoder::peek({}));
  EXPECT_FALSE(FpduDecoder::peek(hex("00")));
  EXPECT_EQ(FpduDecoder::peek(hex("0022")), (FpduDecoder::Layout{34, 40, 4}));
  EXPECT_EQ(FpduDecoder::peek(hex("0003 ffff")), (FpduDecoder::Layout{3, 12, 7}));
  EXPECT_EQ(FpduDecoder::peek(hex("ffff")), (FpduDecoder::Layout{65535, 65544, 7}));
}

TEST(FpduDecoder, SkipAdvancesLikeDecode) {
  Bytes bytes = fpdu_of(test::pattern(100), false);
  FpduDecoder placed(false);
  FpduDecoder staged(false);
  placed.skip(*FpduDecoder::peek(bytes));
  (void)staged.decode(bytes);
  EXPECT_EQ(placed.stream_position(), staged.stream_position());
}

std::vector<std::string> ulpdus_of_stream(Bytes& stream, bool crc) {
  std::vector<std::string> want;
  for (const std::size_t n : {42u, 0u, 14u, 1u, 2u, 3u, 300u, 18u}) {
    const Bytes ulpdu = test::pattern(n, static_cast<unsigned>(n));
    stream = stream + fpdu_of(ulpdu, crc);
    want.push_back(to_hex(ulpdu));
  }
  return want;
}

TEST(FpduDecoder, GivesTheSameUlpdusWhereverTheStreamIsCut) {
  COVERS("RFC5044-5.1-6");
  COVERS("RFC5044-4.3-21");
  COVERS("RFC5044-A.4-1");
  COVERS("RFC5044-A.4-2");
  for (const bool crc : {true, false}) {
    Bytes stream;
    const auto want = ulpdus_of_stream(stream, crc);
    const ConstBytes all(stream);
    for (std::size_t cut = 0; cut <= stream.size(); ++cut) {
      Receiver r(crc);
      r.feed(all.first(cut));
      r.feed(all.subspan(cut));
      ASSERT_EQ(r.ulpdus, want) << cut;
      ASSERT_EQ(r.decoder.stream_position(), stream.size());
    }
    Receiver bytewise(crc);
    for (std::size_t i = 0; i < stream.size(); ++i) bytewise.feed(all.subspan(i, 1));
    EXPECT_EQ(bytewise.ulpdus, want);
    for (unsigned seed = 1; seed <= 200; ++seed) {
      std::mt19937 random(seed);
      Receiver r(crc);
      for (ConstBytes rest = all; !rest.empty();) {
        const std::size_t n = std::min<std::size_t>(rest.size(), 1 + random() % 60);
        r.feed(rest.first(n));
        rest = rest.subspan(n);
      }
      ASSERT_EQ(r.ulpdus, want) << "seed " << seed;
    }
  }
}

TEST(FpduDecoder, DeliversWhatCameBeforeABadFpduAndNothingAfter) {
  COVERS("RFC5044-8-13");
  COVERS("RFC5044-9.1-1");
  const Bytes good = fpdu_of(test::pattern(20));
  Bytes bad = good;
  bad[5] ^= std::byte{0x10};
  Receiver r(true);
  r.feed(good + good + bad + good);
  EXPECT_EQ(r.ulpdus.size(), 2u);
  ASSERT_TRUE(r.error);
  EXPECT_EQ(r.error->code, Errc::kCrcMismatch);
  r.feed(good);
  EXPECT_EQ(r.ulpdus.size(), 2u);
}

}  // namespace
}  // namespace iwarp::mpa
