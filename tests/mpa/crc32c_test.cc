#include "iwarp/mpa/crc32c.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/support/covers.h"
#include "tests/support/hex.h"

namespace iwarp::mpa {
namespace {

using test::operator+;
using test::Bytes;
using test::hex;
using test::to_hex;

std::string wire_form(ConstBytes bytes) {
  Crc32c crc;
  crc.update(bytes);
  std::array<std::byte, kCrcBytes> out{};
  crc.write_to(out);
  return to_hex(out);
}

struct Vector {
  const char* name;
  Bytes bytes;
  const char* crc;  // as on the wire
};

const std::vector<Vector>& vectors() {
  static const std::vector<Vector> kVectors = {
      // RFC 3720 B.4
      {"32 zeros", Bytes(32), "aa36918a"},
      {"32 ones", Bytes(32, std::byte{0xFF}), "43aba862"},
      {"incrementing", hex("000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"), "4e79dd46"},
      {"decrementing", hex("1f1e1d1c1b1a191817161514131211100f0e0d0c0b0a09080706050403020100"), "5cdb3f11"},
      {"iSCSI read command",
       hex("01c00000 00000000 00000000 00000000 14000000 00000400 00000014 00000018 28000000 00000000 02000000 "
           "00000000"),
       "563a96d9"},
      // RFC 5044 Figure 5 and 6: FPDUs of an RDMA Send with 24 octets of zeros
      {"RFC 5044 Figure 5, Marker first", hex("00000000 002a 4143 00000000 00000000 00000001 00000000") + Bytes(24),
       "52239983"},
      {"RFC 5044 Figure 5 without its Marker", hex("002a 4143 00000000 00000000 00000001 00000000") + Bytes(24),
       "b7243ec3"},
      {"RFC 5044 Figure 6, Marker within", hex("002a 4143 00000000 00000000 00000002 00000000 00000014") + Bytes(24),
       "84925898"},
      {"nothing", {}, "00000000"},
  };
  return kVectors;
}

TEST(Crc32c, GivesPublishedValues) {
  COVERS("RFC5044-4.4-15");
  COVERS("RFC5044-4.4-14");
  COVERS("RFC5044-4.4-24");
  COVERS("RFC5044-4.4-25");
  for (const Vector& v : vectors()) {
    SCOPED_TRACE(v.name);
    EXPECT_EQ(wire_form(v.bytes), v.crc);
    const auto field = hex(v.crc);
    const std::uint32_t value = load_crc(std::span<const std::byte>(field).first<kCrcBytes>());
    EXPECT_EQ(crc32c(v.bytes), value);
    EXPECT_EQ(crc32c_portable(v.bytes), value);
    EXPECT_EQ(crc32c_isal(v.bytes), value);
  }
}

TEST(Crc32c, LeavesLeastSignificantOctetFirst) {
  COVERS("RFC5044-4.4-15");
  const Bytes digits = hex("313233343536373839");  // "123456789"
  EXPECT_EQ(crc32c(digits), 0xE3069283u);
  EXPECT_EQ(wire_form(digits), "839206e3");
  const auto field = hex("52239983");
  EXPECT_EQ(load_crc(std::span<const std::byte>(field).first<kCrcBytes>()), 0x83992352u);
}

TEST(Crc32c, ImplementationsAgreeAtEveryLengthAndAlignment) {
  std::mt19937 random(7);
  Bytes data(400);
  for (auto& b : data) b = static_cast<std::byte>(random() & 0xFF);
  for (std::size_t start = 0; start < 9; ++start) {
    for (std::size_t n = 0; start + n <= data.size(); ++n) {
      const ConstBytes run = ConstBytes(data).subspan(start, n);
      ASSERT_EQ(crc32c_portable(run), crc32c_isal(run)) << start << "+" << n;
      ASSERT_EQ(crc32c(run), crc32c_isal(run)) << start << "+" << n;
    }
  }
  const Bytes big = test::pattern(1 << 20);
  EXPECT_EQ(crc32c_portable(big), crc32c_isal(big));
}

TEST(Crc32c, IsTheSameInPieces) {
  const Bytes data = test::pattern(100);
  const std::uint32_t whole = crc32c(data);
  for (std::size_t cut = 0; cut <= data.size(); ++cut) {
    Crc32c crc;
    crc.update(ConstBytes(data).first(cut));
    crc.update(ConstBytes(data).subspan(cut));
    ASSERT_EQ(crc.value(), whole) << cut;
  }
  Crc32c bytewise;
  for (const std::byte& b : data) bytewise.update(ConstBytes(&b, 1));
  EXPECT_EQ(bytewise.value(), whole);
}

TEST(Crc32c, MayBeForkedByCopy) {
  Crc32c a;
  a.update(hex("31323334"));
  Crc32c b = a;
  b.update(hex("ff"));
  a.update(hex("3536373839"));
  EXPECT_EQ(a.value(), 0xE3069283u);
  EXPECT_NE(b.value(), a.value());
}

TEST(Crc32c, ChoiceOfImplementationIsConstant) {
  const bool first = crc32c_is_accelerated();
  (void)crc32c(hex("00"));
  EXPECT_EQ(crc32c_is_accelerated(), first);
}

}  // namespace
}  // namespace iwarp::mpa
