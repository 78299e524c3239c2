#include "iwarp/mpa/markers.h"

#include <gtest/gtest.h>

#include <random>

#include "iwarp/base/wire.h"
#include "iwarp/mpa/crc32c.h"
#include "iwarp/mpa/fpdu_decoder.h"
#include "iwarp/mpa/fpdu_encoder.h"
#include "tests/support/covers.h"
#include "tests/support/hex.h"

namespace iwarp::mpa {
namespace {

using test::operator+;
using test::Bytes;
using test::hex;
using test::to_hex;

ConstBytes all(const Bytes& bytes) {
  return bytes;
}

Bytes length_of(const Bytes& ulpdu) {
  Bytes out(kLengthBytes);
  store_be(out, static_cast<std::uint16_t>(ulpdu.size()));
  return out;
}

Bytes written(const Bytes& ulpdu, std::uint64_t position, bool crc) {
  const std::size_t octets = fpdu_bytes(ulpdu.size());
  Bytes out(octets + marker_bytes(position, octets), std::byte{0xEE});
  MarkedFpduWriter writer(out, position);
  writer.append(length_of(ulpdu));
  writer.append(ulpdu);
  writer.finish(crc);
  return out;
}

// The text of RFC 5044 s4.3 and s4.4 octet by octet, with a count of its own.
Bytes by_the_letter(const Bytes& ulpdu, std::uint64_t position, bool crc) {
  Bytes content = length_of(ulpdu) + ulpdu;
  content.resize((content.size() + 3) / 4 * 4);
  Bytes out;
  std::size_t header_at = 0;
  const auto marker_if_due = [&](bool header_follows) {
    if ((position + out.size()) % 512 != 0) return;
    const std::size_t back = header_follows ? 0 : out.size() - header_at;
    out = out + Bytes{std::byte{0}, std::byte{0}, static_cast<std::byte>(back >> 8), static_cast<std::byte>(back)};
  };
  marker_if_due(true);
  header_at = out.size();
  for (std::size_t i = 0; i < content.size(); ++i) {
    if (i > 0) marker_if_due(false);
    out.push_back(content[i]);
  }
  marker_if_due(false);
  std::array<std::byte, kCrcBytes> field{};
  Crc32c sum;
  sum.update(out);
  if (crc) sum.write_to(field);
  out.insert(out.end(), field.begin(), field.end());
  return out;
}

// A decoder whose next FPDU begins at `position`, a multiple of four of at least twelve, or 0.
FpduDecoder decoder_at(std::uint64_t position, bool crc = true) {
  FpduDecoder d(crc, true);
  while (d.stream_position() < position) {
    const auto left = static_cast<std::size_t>(position - d.stream_position());
    // In steps; the last but one leaves room for another FPDU.
    std::size_t n = 0;
    for (n = std::min<std::size_t>(left, 40000) - 8; n > 0; n -= 2) {
      const std::size_t size = fpdu_bytes(n) + marker_bytes(d.stream_position(), fpdu_bytes(n));
      if (size == left || size + 16 <= left) break;
    }
    Bytes filler = written(Bytes(n), d.stream_position(), crc);
    EXPECT_TRUE(std::holds_alternative<FpduFrame>(d.decode(filler)));
  }
  EXPECT_EQ(d.stream_position(), position);
  return d;
}

DecodeResult decode(Bytes bytes, std::uint64_t position, Bytes* ulpdu = nullptr, bool crc = true) {
  FpduDecoder d = decoder_at(position, crc);
  DecodeResult r = d.decode(bytes);
  if (const auto* frame = std::get_if<FpduFrame>(&r); frame != nullptr && ulpdu != nullptr)
    ulpdu->assign(frame->ulpdu.begin(), frame->ulpdu.end());
  return r;
}

// The octets of a good FPDU with other ones in some place, and a CRC that is right for them.
Bytes altered(Bytes fpdu, std::size_t at, const Bytes& with) {
  std::copy(with.begin(), with.end(), fpdu.begin() + static_cast<std::ptrdiff_t>(at));
  Crc32c sum;
  sum.update(all(fpdu).first(fpdu.size() - kCrcBytes));
  sum.write_to(std::span<std::byte, kCrcBytes>(fpdu.data() + fpdu.size() - kCrcBytes, kCrcBytes));
  return fpdu;
}

TEST(Markers, StandWhereTheTextSays) {
  COVERS("RFC5044-4.3-15");
  COVERS("RFC5044-4.3-10");
  COVERS("RFC5044-4.3-8");
  static_assert(octets_to_marker(0) == 0 && octets_to_marker(4) == 508 && octets_to_marker(508) == 4);
  static_assert(octets_to_marker(512) == 0 && octets_to_marker(0xFFFF'FFFC) == 4);
  static_assert(leading_marker_bytes(0) == 4 && leading_marker_bytes(4) == 0 && leading_marker_bytes(1024) == 4);
  static_assert(marker_bytes(4, 508) == 0, "what is behind the CRC is the next one's");
  static_assert(marker_bytes(4, 512) == 4 && marker_bytes(0, 8) == 4 && marker_bytes(0, 508) == 4);
  static_assert(marker_bytes(0, 512) == 8 && marker_bytes(504, 8) == 0 && marker_bytes(508, 8) == 4);
  for (std::uint64_t position = 0; position < 1024; position += 4) {
    for (std::size_t n = 8; n < 2100; n += 4) {
      std::size_t count = 0;
      std::uint64_t at = position;
      for (std::size_t left = n; left > 0; at += 4) at % 512 == 0 ? ++count : left -= 4;
      ASSERT_EQ(marker_bytes(position, n), 4 * count) << position << " " << n;
    }
  }
}

TEST(Markers, FigureFour) {
  COVERS("RFC5044-4.3-20");
  COVERS("RFC5044-4.3-5");
  COVERS("RFC5044-4.2-5");
  const Bytes ulpdu = hex("a0a1a2a3a4a5a6a7a8a9 aaabacadaeaf");
  const Bytes fpdu = written(ulpdu, 512 - 12, false);
  EXPECT_EQ(to_hex(fpdu), to_hex(hex("0010 a0a1a2a3a4a5a6a7a8a9 0000000c aaabacadaeaf 0000 00000000")));
  Bytes back;
  (void)decode(fpdu, 500, &back, false);
  EXPECT_EQ(to_hex(back), to_hex(ulpdu));
}

TEST(Markers, FigureFive) {
  COVERS("RFC5044-4.4-24");
  COVERS("RFC5044-4.3-14");
  COVERS("RFC5044-4.3-12");
  COVERS("RFC5044-4.3-9");
  COVERS("RFC5044-4.4-18");
  COVERS("RFC5044-4.2-1");
  COVERS("RFC5044-4.2-2");
  COVERS("RFC5044-4.2-3");
  COVERS("RFC5044-7.1.2-23");
  const Bytes ulpdu = hex("4143 00000000 00000000 00000001 00000000") + Bytes(24);
  const Bytes figure = hex("00000000 002a") + ulpdu + hex("52239983");
  EXPECT_EQ(to_hex(written(ulpdu, 0, true)), to_hex(figure));
  Bytes back;
  const DecodeResult r = decode(figure, 0, &back);
  ASSERT_TRUE(std::holds_alternative<FpduFrame>(r));
  EXPECT_EQ(std::get<FpduFrame>(r).fpdu_bytes, 0x34U);
  EXPECT_EQ(to_hex(back), to_hex(ulpdu));
}

TEST(Markers, FigureSix) {
  COVERS("RFC5044-4.4-25");
  COVERS("RFC5044-4.3-1");
  const Bytes ulpdu = hex("4143 00000000 00000000 00000002 00000000") + Bytes(24);
  const Bytes figure = hex("002a 4143 00000000 00000000 00000002 00000000 00000014") + Bytes(24) + hex("84925898");
  EXPECT_EQ(to_hex(written(ulpdu, 0x1EC, true)), to_hex(figure));
  Bytes back;
  const DecodeResult r = decode(figure, 0x1EC, &back);
  ASSERT_TRUE(std::holds_alternative<FpduFrame>(r));
  EXPECT_EQ(std::get<FpduFrame>(r).fpdu_bytes, 0x34U);
  EXPECT_EQ(to_hex(back), to_hex(ulpdu));
}

// ULPDU lengths of 503 to 506 right behind the first Marker: the second stands between pad and CRC.
TEST(Markers, BeforeTheCrcFieldBelongToItsFpdu) {
  COVERS("RFC5044-4.4-17");
  COVERS("RFC5044-4.4-19");
  for (std::size_t n = 503; n <= 506; ++n) {
    const Bytes fpdu = written(test::pattern(n), 0, true);
    ASSERT_EQ(fpdu.size(), 520U);
    EXPECT_EQ(to_hex(all(fpdu).subspan(512, 4)), "000001fc");
    EXPECT_EQ(load_crc(all(fpdu).last<kCrcBytes>()), crc32c(all(fpdu).first(516)));
    Bytes back;
    (void)decode(fpdu, 0, &back);
    EXPECT_EQ(to_hex(back), to_hex(test::pattern(n)));
  }
  EXPECT_EQ(written(test::pattern(502), 0, true).size(), 512U) << "one less, and it belongs to the next";
}

TEST(Markers, AllOfAnFpduPointToItsLength) {
  COVERS("RFC5044-4.2-6");
  COVERS("RFC5044-4.3-3");
  COVERS("RFC5044-4.3-13");
  COVERS("RFC5044-4.3-16");
  const Bytes fpdu = written(test::pattern(2000), 0, true);
  EXPECT_EQ(to_hex(all(fpdu).first(4)), "00000000");
  EXPECT_EQ(to_hex(all(fpdu).subspan(512, 4)), "000001fc");
  EXPECT_EQ(to_hex(all(fpdu).subspan(1024, 4)), "000003fc");
  EXPECT_EQ(to_hex(all(fpdu).subspan(1536, 4)), "000005fc");
}

TEST(Markers, AgreeWithTheTextInStreamsOfAllSizes) {
  COVERS("RFC5044-4.3-17");
  COVERS("RFC5044-4.3-18");
  COVERS("RFC5044-4.3-7");
  COVERS("RFC5044-4.3-4");
  for (unsigned seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const bool crc = seed % 2 == 0;
    const std::size_t longest = seed % 4 < 2 ? 60 : 3000;
    FpduDecoder d(crc, true);
    for (int i = 0; i < 100; ++i) {
      const Bytes ulpdu = test::pattern(random() % longest, static_cast<unsigned>(random()));
      Bytes fpdu = written(ulpdu, d.stream_position(), crc);
      ASSERT_EQ(to_hex(fpdu), to_hex(by_the_letter(ulpdu, d.stream_position(), crc)));
      const DecodeResult r = d.decode(fpdu);
      ASSERT_TRUE(std::holds_alternative<FpduFrame>(r)) << i;
      ASSERT_EQ(to_hex(std::get<FpduFrame>(r).ulpdu), to_hex(ulpdu));
      ASSERT_EQ(std::get<FpduFrame>(r).fpdu_bytes, fpdu.size());
    }
  }
}

TEST(Markers, AreWrittenTheSameForEveryWayToCutTheUlpdu) {
  const Bytes ulpdu = test::pattern(1100);
  const std::string want = to_hex(written(ulpdu, 480, true));
  for (std::size_t cut = 0; cut <= ulpdu.size(); ++cut) {
    Bytes out(want.size() / 2);
    MarkedFpduWriter writer(out, 480);
    writer.append(length_of(ulpdu));
    writer.append(all(ulpdu).first(cut));
    writer.append(all(ulpdu).subspan(cut));
    writer.finish(true);
    ASSERT_EQ(to_hex(out), want) << cut;
  }
}

// The longest FPDU a sender may make, wherever it begins, and the longest a receiver takes.
TEST(Markers, PointAcrossTheLongestFpdus) {
  COVERS("RFC5044-4.3-19");
  for (std::uint64_t position = 0; position < 512; position += 4) {
    const Bytes ulpdu = test::pattern(kMaxSendUlpduBytes);
    const std::size_t octets = fpdu_bytes(ulpdu.size());
    ASSERT_LE(octets + marker_bytes(position, octets), 65536U);
  }
  const Bytes fpdu = written(test::pattern(kMaxSendUlpduBytes), 256, true);
  ASSERT_EQ(fpdu.size(), 65288U);
  EXPECT_EQ(to_hex(all(fpdu).subspan(65280, 4)), "0000ff00") << "before the CRC field: there is no greater one";
  EXPECT_TRUE(markers_agree(fpdu, 256));
  for (const std::size_t n : {64768U, 64769U, 65535U}) {
    for (const std::uint64_t position : {0U, 16U, 256U, 508U}) {
      Bytes back;
      ASSERT_TRUE(
          std::holds_alternative<FpduFrame>(decode(written(test::pattern(n), position, true), position, &back)));
      EXPECT_EQ(back, test::pattern(n)) << n << " at " << position;
    }
  }
}

// Positions count from the first octet of Full Operation: TCP's sequence number, which wraps, has no part in it.
TEST(Markers, KnowNoWrapOfTheSequenceNumber) {
  COVERS("RFC5044-4.3-6");
  for (const std::uint64_t wrap : {std::uint64_t{1} << 16, std::uint64_t{1} << 32}) {
    for (std::uint64_t position = wrap - 600; position < wrap + 8; position += 4) {
      const Bytes ulpdu = test::pattern(1200);
      Bytes fpdu = written(ulpdu, position, true);
      ASSERT_EQ(to_hex(fpdu), to_hex(by_the_letter(ulpdu, position % 512, true)));
      ASSERT_TRUE(markers_agree(fpdu, position));
      ASSERT_EQ(to_hex(cut_markers(fpdu, position).subspan(2, 1200)), to_hex(ulpdu));
    }
  }
}

TEST(Markers, AreNoOctetsOfTheUlpduWhereverTheStreamIsCut) {
  COVERS("RFC5044-4.3-23");
  COVERS("RFC5044-5.1-6");
  for (const bool crc : {true, false}) {
    Bytes stream;
    std::vector<Bytes> want;
    for (const std::size_t n : {42U, 0U, 14U, 434U, 1U, 506U, 2U, 1100U, 18U}) {
      want.push_back(test::pattern(n, static_cast<unsigned>(n)));
      stream = stream + written(want.back(), stream.size(), crc);
    }
    for (std::size_t cut = 0; cut <= stream.size(); ++cut) {
      FpduDecoder d(crc, true);
      std::vector<Bytes> got;
      Bytes held;
      for (const ConstBytes piece : {all(stream).first(cut), all(stream).subspan(cut)}) {
        held.insert(held.end(), piece.begin(), piece.end());
        while (true) {
          const DecodeResult r = d.decode(held);
          if (const auto* more = std::get_if<NeedMore>(&r)) {
            ASSERT_GT(more->at_least, held.size());
          }
          const auto* frame = std::get_if<FpduFrame>(&r);
          if (frame == nullptr) break;
          got.emplace_back(frame->ulpdu.begin(), frame->ulpdu.end());
          held.erase(held.begin(), held.begin() + static_cast<std::ptrdiff_t>(frame->fpdu_bytes));
        }
      }
      ASSERT_EQ(got, want) << cut;
      ASSERT_EQ(d.stream_position(), stream.size());
    }
  }
}

TEST(Markers, AtEveryPrefixMoreIsAskedFor) {
  const Bytes whole = written(test::pattern(600), 0, true);
  for (std::size_t n = 0; n < whole.size(); ++n) {
    FpduDecoder d(true, true);
    Bytes prefix(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(n));
    const DecodeResult r = d.decode(prefix);
    ASSERT_TRUE(std::holds_alternative<NeedMore>(r)) << n;
    EXPECT_EQ(std::get<NeedMore>(r).at_least, n < 6 ? 6U : whole.size()) << n;
    EXPECT_EQ(to_hex(prefix), to_hex(all(whole).first(n))) << "untouched";
  }
}

TEST(Markers, ThatPointElsewhereAreAnError) {
  COVERS("RFC5044-8-3");
  COVERS("RFC5044-8-6");
  COVERS("RFC5044-8-8");
  COVERS("RFC5044-8-9");
  COVERS("RFC5044-5.2-2");
  const Bytes good = written(test::pattern(1500), 0, true);
  for (const bool crc : {true, false}) {
    for (const std::size_t at : {0U, 512U, 1024U}) {
      for (const char* wrong : {"0000 0004", "0000 fffc", "0000 0200", "0000 0400", "0000 81fc"}) {
        SCOPED_TRACE(std::to_string(at) + " " + wrong);
        const DecodeResult r = decode(altered(good, at, hex(wrong)), 0, nullptr, crc);
        const auto* error = std::get_if<Error>(&r);
        ASSERT_NE(error, nullptr);
        EXPECT_EQ(error->code, Errc::kMarkerMismatch);
        EXPECT_EQ(error->tell_peer, (TerminateCode{2, 0, 3}));
      }
    }
  }
  // One behind it that says "between two FPDUs", inside one.
  EXPECT_TRUE(std::holds_alternative<Error>(decode(altered(good, 512, Bytes(4)), 0)));
}

TEST(Markers, AreJudgedBehindTheCrcAndForGood) {
  COVERS("RFC5044-8-13");
  FpduDecoder d(true, true);
  Bytes damaged = written(test::pattern(20), 0, true);
  damaged[3] ^= std::byte{4};  // the CRC covers it
  DecodeResult r = d.decode(damaged);
  ASSERT_TRUE(std::holds_alternative<Error>(r));
  EXPECT_EQ(std::get<Error>(r).code, Errc::kCrcMismatch);

  FpduDecoder e(true, true);
  Bytes wrong = altered(written(test::pattern(20), 0, true), 0, hex("00000004"));
  (void)e.decode(wrong);
  Bytes good = written(test::pattern(20), 0, true);
  r = e.decode(good);
  ASSERT_TRUE(std::holds_alternative<Error>(r));
  EXPECT_EQ(std::get<Error>(r).code, Errc::kMarkerMismatch);
  EXPECT_EQ(e.stream_position(), 0U);
}

TEST(Markers, ReservedFieldAndLowBitsMeanNothing) {
  COVERS("RFC5044-4.2-7");
  COVERS("RFC5044-4.3-11");
  COVERS("RFC5044-4.2-4");
  const Bytes good = written(test::pattern(600), 0, true);
  for (const auto& [at, odd] : {std::pair{std::size_t{0}, "ffff 0003"}, std::pair{std::size_t{512}, "1234 01ff"}}) {
    Bytes back;
    ASSERT_TRUE(std::holds_alternative<FpduFrame>(decode(altered(good, at, hex(odd)), 0, &back)));
    EXPECT_EQ(back, test::pattern(600));
    // As received they are in the CRC.
    Bytes without = good;
    const Bytes octets = hex(odd);
    std::copy(octets.begin(), octets.end(), without.begin() + static_cast<std::ptrdiff_t>(at));
    const DecodeResult r = decode(without, 0);
    ASSERT_TRUE(std::holds_alternative<Error>(r));
    EXPECT_EQ(std::get<Error>(r).code, Errc::kCrcMismatch);
  }
}

TEST(Markers, AloneBeginNoFpdu) {
  COVERS("RFC5044-4.3-8");
  FpduDecoder d(true, true);
  EXPECT_FALSE(d.has_begun(0));
  EXPECT_FALSE(d.has_begun(4));
  EXPECT_TRUE(d.has_begun(5));
  Bytes first = written(test::pattern(10), 0, true);
  (void)d.decode(first);
  EXPECT_FALSE(d.has_begun(0));
  EXPECT_TRUE(d.has_begun(1));
  EXPECT_TRUE(FpduDecoder(true).has_begun(1));
  EXPECT_FALSE(FpduDecoder(true).has_begun(0));
}

// For who has only a part of the octets, as a capture may.
TEST(Markers, AreCutOutOfBeginningsToo) {
  const Bytes ulpdu = test::pattern(1100);
  for (const std::uint64_t position : {0U, 480U}) {
    const Bytes fpdu = written(ulpdu, position, true);
    const std::string want = to_hex(length_of(ulpdu) + ulpdu + Bytes(2));
    std::size_t last = 0;
    for (std::size_t n = leading_marker_bytes(position) + 2; n < fpdu.size() - kCrcBytes; ++n) {
      Bytes beginning(fpdu.begin(), fpdu.begin() + static_cast<std::ptrdiff_t>(n));
      const std::string got = to_hex(cut_markers(beginning, position));
      ASSERT_EQ(got, want.substr(0, got.size())) << n;
      ASSERT_GE(got.size(), last);
      last = got.size();
    }
    ASSERT_EQ(last, want.size() - 2);
  }
}

TEST(Mulpdu, LeavesRoomForMarkers) {
  COVERS("RFC5044-4.5-2");
  struct {
    std::size_t emss, mulpdu;
  } const kByTheFormula[] = {{1448, 1430}, {1460, 1442}, {8948, 8870}, {512, 502},
                             {513, 498},   {536, 522},   {1024, 1010}};
  for (const auto& c : kByTheFormula) EXPECT_EQ(mulpdu_for(FpduPolicy::kEmss, c.emss, true), c.mulpdu) << c.emss;
  EXPECT_EQ(mulpdu_for(FpduPolicy::kEmss, 100, true), kMinMulpduBytes);
  EXPECT_EQ(mulpdu_for(FpduPolicy::kEmss, 0, true), kMinMulpduBytes);
  EXPECT_EQ(mulpdu_for(FpduPolicy::k16k, 1448, true), 16384U - 6 - 4 * 32);
  EXPECT_EQ(mulpdu_for(FpduPolicy::kMax, 1448, true), mulpdu_for(FpduPolicy::kMax, 1448, false));
  EXPECT_LE(mulpdu_for(FpduPolicy::kEmss, 65483, true), kMaxSendUlpduBytes);
  // Wherever such an FPDU begins it fits the segment.
  for (const std::size_t emss : {536U, 1024U, 1448U, 1460U, 8948U}) {
    const std::size_t octets = fpdu_bytes(mulpdu_for(FpduPolicy::kEmss, emss, true));
    for (std::uint64_t position = 0; position < 512; position += 4)
      ASSERT_LE(octets + marker_bytes(position, octets), emss) << position;
  }
}

}  // namespace
}  // namespace iwarp::mpa
