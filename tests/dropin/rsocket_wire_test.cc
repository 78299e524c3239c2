// The protocol of rsockets, as values, and who has which octets of a ring.
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstring>
#include <utility>
#include <vector>

#include "dropin/rsocket/receive_buffer.h"
#include "dropin/rsocket/send_ring.h"
#include "dropin/rsocket/wire.h"

namespace iwarp::dropin::rsockets {
namespace {

TEST(RsocketMessage, HasItsKindInTheUpperBits) {
  EXPECT_EQ((Message{Op::kData, 0x1234}.word()), 0x00001234U);
  EXPECT_EQ((Message{Op::kGrant, 384}.word()), 0x80000180U);
  EXPECT_EQ((Message{Op::kMapped, 2}.word()), 0xC0000002U);
  EXPECT_EQ((Message{Op::kControl, static_cast<std::uint32_t>(Control::kShutdown)}.word()), 0xE0000002U);
  EXPECT_EQ((Message{Op::kData, 0xFFFFFFFF}.word()), 0x1FFFFFFFU);
  for (const std::uint32_t word : {0x00001234U, 0x80000180U, 0xC0000002U, 0xE0000002U}) {
    const auto parsed = Message::parse(word);
    ASSERT_TRUE(parsed);
    EXPECT_EQ(parsed->word(), word);
  }
}

TEST(RsocketMessage, ReservedKindsAreNone) {
  for (const std::uint32_t kind : {1U, 2U, 3U, 5U}) EXPECT_FALSE(Message::parse(kind << 29 | 7));
}

// As a host of little-endian order sends it.
constexpr std::array<std::uint8_t, 40> kPrivateData{
    1, 2, 0x01, 0x80, 0, 0, 0, 1,                             // version, flags, 384 credits, one mapping
    0, 0, 0x7F, 1,    2, 3, 4, 0x10, 0, 0, 5, 6, 0, 0, 0, 2,  // table of buffers
    0, 0, 0x7F, 1,    2, 3, 5, 0,    0, 0, 7, 8, 0, 1, 0, 0,  // first buffer
};

ConnectionData example() {
  return {.credits = 384,
          .mappings = 1,
          .grants = {.address = 0x7F0102030410, .key = 0x506, .length = 2},
          .first = {.address = 0x7F0102030500, .key = 0x708, .length = 65536}};
}

TEST(RsocketConnectionData, AreAsDebiansLibraryHasThem) {
  if (std::endian::native != std::endian::little) GTEST_SKIP();
  const auto bytes = example().to_bytes();
  EXPECT_EQ(0, std::memcmp(bytes.data(), kPrivateData.data(), bytes.size()));
  const auto parsed = ConnectionData::parse(std::as_bytes(std::span{kPrivateData}));
  ASSERT_TRUE(parsed);
  EXPECT_EQ(*parsed, example());
}

TEST(RsocketConnectionData, OtherVersionsOrdersAndLengthsAreRefused) {
  const auto good = example().to_bytes();
  for (std::size_t n = 0; n < good.size(); ++n) EXPECT_FALSE(ConnectionData::parse(std::span{good}.first(n)));
  auto bad = good;
  bad[0] = std::byte{2};
  EXPECT_FALSE(ConnectionData::parse(bad));
  bad = good;
  bad[1] ^= std::byte{1};  // the order of octets
  EXPECT_FALSE(ConnectionData::parse(bad));
  bad = good;
  bad[23] = std::byte{1};  // room for a single buffer
  EXPECT_FALSE(ConnectionData::parse(bad));
  std::vector<std::byte> longer(good.begin(), good.end());
  longer.resize(56);
  EXPECT_TRUE(ConnectionData::parse(longer));
}

TEST(RsocketConnectionData, WithoutTheFlagNothingIsMapped) {
  auto bytes = example().to_bytes();
  bytes[1] &= ~std::byte{2};
  const auto parsed = ConnectionData::parse(bytes);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->mappings, 0U);
}

TEST(RsocketConnectionData, CountsOfMappingsAreRoundedDownToWhatEightBitsSay) {
  for (const auto& [asked, said] :
       {std::pair{0U, 0U}, {1U, 1U}, {128U, 128U}, {129U, 128U}, {256U, 256U}, {511U, 256U}, {40000U, 32512U}}) {
    EXPECT_EQ(sayable(asked), said) << asked;
    auto data = example();
    data.mappings = said;
    const auto parsed = ConnectionData::parse(data.to_bytes());
    ASSERT_TRUE(parsed);
    EXPECT_EQ(parsed->mappings, said);
  }
}

TEST(RsocketBuffer, IsWrittenInTheOrderOfTheHost) {
  const Mapping mapping{.offset = 7, .buffer = {.address = 0x1122334455667788, .key = 9, .length = 10}};
  std::array<std::byte, Mapping::kSize> bytes{};
  mapping.write_to(bytes);
  std::uint64_t address = 0;
  std::uint32_t length = 0;
  std::memcpy(&address, bytes.data() + 8, sizeof address);
  std::memcpy(&length, bytes.data() + 20, sizeof length);
  EXPECT_EQ(address, 0x1122334455667788U);
  EXPECT_EQ(length, 10U);
  EXPECT_EQ(Mapping::parse(bytes), mapping);
}

TEST(RsocketReceiveBuffer, GrantsHalvesInTurn) {
  ReceiveBuffer buffer(100);
  ASSERT_TRUE(buffer.may_grant());
  EXPECT_EQ(buffer.grant(), 100U);
  EXPECT_FALSE(buffer.may_grant());
  ASSERT_TRUE(buffer.arrive(100));
  EXPECT_FALSE(buffer.may_grant());
  buffer.read(99);
  EXPECT_FALSE(buffer.may_grant());
  buffer.read(1);
  ASSERT_TRUE(buffer.may_grant());
  EXPECT_EQ(buffer.grant(), 0U);
  EXPECT_FALSE(buffer.may_grant());
}

TEST(RsocketReceiveBuffer, TakesNoMoreThanWasGranted) {
  ReceiveBuffer buffer(100);
  EXPECT_FALSE(buffer.arrive(101));
  EXPECT_TRUE(buffer.arrive(60));
  EXPECT_FALSE(buffer.arrive(41));
  EXPECT_EQ(buffer.readable(), 60U);
  EXPECT_TRUE(buffer.arrive(40));
  EXPECT_FALSE(buffer.arrive(1));
  EXPECT_EQ(buffer.readable(), 100U);
}

TEST(RsocketReceiveBuffer, CountsMessagesThatWereReadWhole) {
  ReceiveBuffer buffer(100);
  ASSERT_TRUE(buffer.arrive(10));
  ASSERT_TRUE(buffer.arrive(20));
  buffer.read(9);
  EXPECT_EQ(buffer.messages_read(), 0);
  buffer.read(2);
  EXPECT_EQ(buffer.messages_read(), 1);
  buffer.read(19);
  EXPECT_EQ(buffer.messages_read(), 2);
  ASSERT_TRUE(buffer.arrive(0));
  buffer.count_message();
  EXPECT_EQ(buffer.messages_read(), 4);
}

TEST(RsocketReceiveBuffer, PiecesEndWithTheRing) {
  ReceiveBuffer buffer(100);
  (void)buffer.grant();
  ASSERT_TRUE(buffer.arrive(100));
  ASSERT_TRUE(buffer.arrive(80));
  buffer.read(150);
  (void)buffer.grant();
  ASSERT_TRUE(buffer.arrive(20));
  ASSERT_TRUE(buffer.arrive(30));
  EXPECT_EQ(buffer.readable(), 80U);
  EXPECT_EQ(buffer.piece(0).offset, 150U);
  EXPECT_EQ(buffer.piece(0).length, 50U);
  EXPECT_EQ(buffer.piece(50).offset, 0U);
  EXPECT_EQ(buffer.piece(50).length, 30U);
  EXPECT_EQ(buffer.piece(60).offset, 10U);
}

TEST(RsocketSendRing, GivesOctetsInARow) {
  SendRing ring(100);
  EXPECT_EQ(ring.in_a_row(), 100U);
  ring.take(70);
  EXPECT_EQ(ring.in_a_row(), 30U);
  ring.give_back(50);
  EXPECT_EQ(ring.free(), 80U);
  EXPECT_EQ(ring.in_a_row(), 30U);
  ring.take(30);
  EXPECT_EQ(ring.next(), 0U);
  EXPECT_EQ(ring.in_a_row(), 50U);
  ring.take(50);
  EXPECT_EQ(ring.in_a_row(), 0U);
  ring.give_back(100);
  EXPECT_EQ(ring.free(), 100U);
}

}  // namespace
}  // namespace iwarp::dropin::rsockets
