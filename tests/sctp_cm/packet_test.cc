#include "iwarp/sctp_cm/packet.h"

#include <gtest/gtest.h>

#include "tests/sctp_cm/raw_peer.h"

namespace iwarp::sctp_cm {
namespace {

TEST(SctpPacket, ReadsTheFront) {
  const Octets packet = packet_of(0x1234, 0x5678, 0x9ABCDEF0, chunk_of(10, 0, Octets(5)));
  const auto head = PacketHead::parse(packet);
  ASSERT_TRUE(head);
  EXPECT_EQ(head->source, 0x1234);
  EXPECT_EQ(head->destination, 0x5678);
  EXPECT_EQ(head->tag, 0x9ABCDEF0);
  EXPECT_EQ(head->first, ChunkType::kCookieEcho);
}

TEST(SctpPacket, HasAFloorAndACeiling) {
  const Octets packet = packet_of(1, 2, 3, chunk_of(0, 0, Octets(8)));
  for (std::size_t n = 0; n < packet.size(); ++n) EXPECT_FALSE(PacketHead::parse(std::span(packet).first(n))) << n;
  EXPECT_TRUE(PacketHead::parse(packet));
  EXPECT_TRUE(PacketHead::parse(packet_of(1, 2, 3, chunk_of(0, 0, {}))));
  Octets longest = packet;
  longest.resize(kMaxPacketBytes);
  EXPECT_TRUE(PacketHead::parse(longest));
  longest.resize(kMaxPacketBytes + 1);
  EXPECT_FALSE(PacketHead::parse(longest));
  Octets bad = packet;
  bad[15] = std::byte{3};  // a chunk shorter than its head
  EXPECT_FALSE(PacketHead::parse(bad));
  bad[15] = std::byte{13};  // or longer than what is there
  EXPECT_FALSE(PacketHead::parse(bad));
  EXPECT_FALSE(PacketHead::parse(packet_of(0, 2, 3, chunk_of(0, 0, {}))));
  EXPECT_FALSE(PacketHead::parse(packet_of(1, 0, 3, chunk_of(0, 0, {}))));
}

Octets value(std::size_t bytes, std::initializer_list<std::pair<std::size_t, unsigned>> set = {}) {
  Octets out(bytes);
  for (const auto& [at, octet] : set) out.at(at) = static_cast<std::byte>(octet);
  return out;
}

Octets operator+(Octets a, const Octets& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

bool plain(const Octets& chunks) {
  const Octets packet = packet_of(1, 2, 3, chunks);
  return PacketHead::parse(packet).has_value() && is_plain(packet);
}

TEST(SctpPacket, PlainOnesPass) {
  EXPECT_TRUE(plain(chunk_of(0, 7, value(13))));                                  // DATA
  EXPECT_TRUE(plain(chunk_of(1, 0, value(16))));                                  // INIT
  EXPECT_TRUE(plain(chunk_of(1, 0, value(24, {{16, 0xC0}, {17, 6}, {19, 8}}))));  // with a parameter
  EXPECT_TRUE(plain(chunk_of(3, 0, value(12))));                                  // SACK
  EXPECT_TRUE(plain(chunk_of(3, 0, value(24, {{9, 2}, {11, 1}}))));               // two gaps, a duplicate
  EXPECT_TRUE(plain(chunk_of(4, 0, value(8, {{1, 1}, {3, 8}}))));                 // HEARTBEAT
  EXPECT_TRUE(plain(chunk_of(6, 0, {})));                                         // ABORT
  EXPECT_TRUE(plain(chunk_of(9, 0, value(8, {{1, 1}, {3, 8}}))));                 // ERROR
  EXPECT_TRUE(plain(chunk_of(7, 0, value(4))));                                   // SHUTDOWN
  for (unsigned type : {8u, 11u, 14u}) EXPECT_TRUE(plain(chunk_of(type, 0, {})));
  EXPECT_TRUE(plain(chunk_of(10, 0, value(5)) + chunk_of(0, 7, value(20))));  // COOKIE ECHO, DATA
  EXPECT_TRUE(plain(chunk_of(3, 0, value(12)) + chunk_of(0, 7, value(20)) + chunk_of(0, 7, value(13))));
}

TEST(SctpPacket, OthersDoNot) {
  for (unsigned type = 0; type < 256; ++type) {
    const bool known = type <= 11 || type == 14;
    if (known) continue;
    EXPECT_FALSE(plain(chunk_of(type, 0, value(8)))) << type;
    EXPECT_FALSE(plain(chunk_of(0, 7, value(20)) + chunk_of(type, 0, value(8)))) << type;
  }
  EXPECT_FALSE(plain(chunk_of(0, 7, value(12))));                              // DATA without data
  EXPECT_FALSE(plain(chunk_of(1, 0, value(15))));                              // INIT too short
  EXPECT_FALSE(plain(chunk_of(1, 0, value(20, {{16, 0xC0}}))));                // parameter of length 0
  EXPECT_FALSE(plain(chunk_of(1, 0, value(20, {{16, 0xC0}, {19, 3}}))));       // shorter than its head
  EXPECT_FALSE(plain(chunk_of(1, 0, value(20, {{16, 0xC0}, {19, 5}}))));       // longer than the chunk
  EXPECT_FALSE(plain(chunk_of(1, 0, value(18))));                              // half a head
  EXPECT_FALSE(plain(chunk_of(3, 0, value(11))));                              // SACK too short
  EXPECT_FALSE(plain(chunk_of(3, 0, value(16))));                              // more than it says
  EXPECT_FALSE(plain(chunk_of(3, 0, value(16, {{9, 2}}))));                    // less than it says
  EXPECT_FALSE(plain(chunk_of(4, 0, {})));                                     // HEARTBEAT of nothing
  EXPECT_FALSE(plain(chunk_of(4, 0, value(8, {{3, 9}}))));                     // longer than the chunk
  EXPECT_FALSE(plain(chunk_of(5, 0, value(8, {{3, 3}}))));                     // shorter than its head
  EXPECT_FALSE(plain(chunk_of(6, 0, value(4))));                               // cause of length 0
  EXPECT_FALSE(plain(chunk_of(7, 0, value(8))));                               // SHUTDOWN too long
  EXPECT_FALSE(plain(chunk_of(11, 0, value(1))));                              // COOKIE ACK likewise
  EXPECT_FALSE(plain(chunk_of(10, 0, {})));                                    // COOKIE ECHO of nothing
  EXPECT_FALSE(plain(chunk_of(1, 0, value(16)) + chunk_of(0, 7, value(20))));  // not alone
  EXPECT_FALSE(plain(chunk_of(0, 7, value(20)) + chunk_of(14, 0, {})));        //
  EXPECT_FALSE(plain(chunk_of(0, 7, value(20)) + value(3)));                   // half a chunk behind
  EXPECT_FALSE(plain(chunk_of(0, 7, value(20)) + value(4)));                   // a chunk of length 0
}

TEST(SctpPacket, NoPrefixOrChangeIsReadBeyondItsEnd) {
  const Octets whole = packet_of(1, 2, 3,
                                 chunk_of(3, 0, value(24, {{9, 2}, {11, 1}})) +
                                     chunk_of(9, 0, value(8, {{1, 1}, {3, 8}})) + chunk_of(0, 7, value(40)));
  for (std::size_t n = 0; n <= whole.size(); ++n) {
    Octets part(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(n));  // of its own, for the sanitizers
    part.shrink_to_fit();
    if (PacketHead::parse(part)) (void)is_plain(part);
    for (std::size_t bit = 0; n == whole.size() && bit < 8 * n; ++bit) {
      part[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
      if (PacketHead::parse(part)) (void)is_plain(part);
      part[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
    }
  }
}

// RFC 9260 A: the field counts as zero, and the CRC goes out least significant octet first.
TEST(SctpPacket, ChecksumNoticesEveryBit) {
  Octets packet = packet_of(1, 2, 3, chunk_of(0, 0, Octets(8)));
  EXPECT_TRUE(has_good_checksum(packet));
  for (std::size_t bit = 0; bit < packet.size() * 8; ++bit) {
    packet[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
    EXPECT_FALSE(has_good_checksum(packet)) << bit;
    packet[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
  }
}

}  // namespace
}  // namespace iwarp::sctp_cm
