#include "iwarp/base/wire.h"

#include <gtest/gtest.h>

#include "tests/support/hex.h"

namespace iwarp {
namespace {

using test::hex;
using test::to_hex;

TEST(Wire, LoadsAndStoresMostSignificantOctetFirst) {
  const auto in = hex("01 02 03 04 05 06 07 08");
  EXPECT_EQ(load_be<std::uint8_t>(in), 0x01);
  EXPECT_EQ(load_be<std::uint16_t>(in), 0x0102);
  EXPECT_EQ(load_be<std::uint32_t>(in), 0x01020304u);
  EXPECT_EQ(load_be<std::uint64_t>(in), 0x0102030405060708u);
  test::Bytes out(8);
  store_be<std::uint64_t>(out, 0x0102030405060708u);
  EXPECT_EQ(to_hex(out), "0102030405060708");
  store_be<std::uint32_t>(out, 0xFFFEFDFCu);
  EXPECT_EQ(to_hex(out), "fffefdfc05060708");
  store_be<std::uint16_t>(out, 0xA0B0);
  EXPECT_EQ(to_hex(out), "a0b0fdfc05060708");
  store_be<std::uint8_t>(out, 0x77);
  EXPECT_EQ(to_hex(out), "77b0fdfc05060708");
}

TEST(Wire, IsUsableInConstantExpressions) {
  constexpr auto kRoundTrip = [] {
    std::array<std::byte, 4> b{};
    store_be<std::uint32_t>(b, 0xDEADBEEFu);
    return load_be<std::uint32_t>(b);
  }();
  static_assert(kRoundTrip == 0xDEADBEEFu);
}

TEST(FixedView, NeedsAllItsBytes) {
  const auto in = hex("0001 00000002 ff");
  EXPECT_FALSE(FixedView<8>::of(in));
  EXPECT_FALSE(FixedView<1>::of({}));
  const auto view = FixedView<6>::of(in);
  ASSERT_TRUE(view);
  EXPECT_EQ((view->be<std::uint16_t, 0>()), 1);
  EXPECT_EQ((view->be<std::uint32_t, 2>()), 2u);
}

TEST(FixedWriter, WritesFieldsAtTheirOffsets) {
  std::array<std::byte, 7> out{};
  FixedWriter<7> w{out};
  w.be<1>(std::uint16_t{0x1234});
  w.be<3>(std::uint32_t{0x56789ABC});
  w.be<0>(std::uint8_t{0xFF});
  EXPECT_EQ(to_hex(out), "ff123456789abc");
}

TEST(ReadCursor, ReadsInOrder) {
  const auto in = hex("01 0203 04050607 aabbcc dd");
  ReadCursor c(in);
  EXPECT_EQ(c.be<std::uint8_t>(), 1);
  EXPECT_EQ(c.be<std::uint16_t>(), 0x0203);
  EXPECT_EQ(c.be<std::uint32_t>(), 0x04050607u);
  EXPECT_EQ(c.remaining(), 4u);
  EXPECT_EQ(to_hex(c.take(2)), "aabb");
  c.skip(1);
  EXPECT_EQ(to_hex(c.rest()), "dd");
  EXPECT_TRUE(c.ok());
  EXPECT_TRUE(c.take(0).empty());
  EXPECT_TRUE(c.ok());
}

TEST(ReadCursor, FailsForGoodWhenBytesRunOut) {
  const auto in = hex("010203");
  ReadCursor c(in);
  EXPECT_EQ(c.be<std::uint32_t>(), 0u);
  EXPECT_FALSE(c.ok());
  EXPECT_EQ(c.be<std::uint8_t>(), 0) << "there is a byte, but the cursor has failed";
  EXPECT_EQ(c.remaining(), 0u);
  EXPECT_TRUE(c.rest().empty());
  EXPECT_TRUE(c.take(1).empty());

  ReadCursor d(in);
  EXPECT_TRUE(d.take(SIZE_MAX).empty());
  EXPECT_FALSE(d.ok());
  ReadCursor e(in);
  e.skip(4);
  EXPECT_FALSE(e.ok());
}

TEST(WriteCursor, AppendsUntilFull) {
  test::Bytes out(7);
  WriteCursor w(out);
  w.be(std::uint16_t{0x0102});
  w.bytes(hex("aabbcc"));
  w.bytes({});
  EXPECT_TRUE(w.ok());
  EXPECT_EQ(w.written(), 5u);
  w.be(std::uint32_t{1});
  EXPECT_FALSE(w.ok());
  w.be(std::uint8_t{1});
  EXPECT_FALSE(w.ok()) << "fits, but the cursor has failed";
  EXPECT_EQ(w.written(), 5u);
  EXPECT_EQ(to_hex(out), "0102aabbcc0000");
}

TEST(WriteCursor, TakesExactlyItsRoom) {
  test::Bytes out(4);
  WriteCursor w(out);
  w.be(std::uint32_t{0x01020304});
  EXPECT_TRUE(w.ok());
  EXPECT_EQ(w.written(), 4u);
  EXPECT_EQ(to_hex(out), "01020304");
}

}  // namespace
}  // namespace iwarp
