// Packets made by PacketMaker and read by parse_packet().
#include "iwarp/trace/packet.h"

#include <gtest/gtest.h>

#include <random>

#include "iwarp/trace/packet_maker.h"
#include "tests/support/segments.h"
#include "tests/trace/endpoints.h"

namespace iwarp::trace {
namespace {

using test::Bytes;
using test::hex;
using test::operator|;

constexpr std::size_t kEthernetBytes = 14;

Bytes ip_of(const Packet& p) {
  return {p.begin() + kEthernetBytes, p.end()};
}
TcpSegment tcp(LinkType link, const Bytes& bytes) {
  return std::get<TcpSegment>(parse_packet(link, bytes, bytes.size()));
}
Packet data_packet(bool ipv6, const Bytes& payload) {
  PacketMaker m(ipv6 ? kClient6 : kClient4, ipv6 ? kServer6 : kServer4);
  return m.data(Direction::kTx, payload)[0];
}

TEST(Packet, Endpoints) {
  EXPECT_EQ(kClient4.to_string(), "10.0.0.1:4000");
  EXPECT_EQ(kServer6.to_string(), "[fe80:0:0:0:0:0:0:2]:7174");
}

// Byte by byte, with checksums computed by hand: 10.0.0.1:4000 -> 10.0.0.2:7174, "ab".
TEST(PacketMaker, WritesIpv4) {
  EXPECT_EQ(test::to_hex(data_packet(false, hex("6162"))),
            "020000000002020000000001"
            "0800"
            "4500002a00004000400626cc0a0000010a000002"
            "0fa01c06000003e8000007d05018ffff"
            "0308"
            "0000"
            "6162");
}

class PacketOfVersion : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Ip, PacketOfVersion, ::testing::Bool(), [](const auto& p) { return p.param ? "v6" : "v4"; });

TEST_P(PacketOfVersion, WrittenAndRead) {
  const Bytes payload = test::pattern(33);
  const Packet packet = data_packet(GetParam(), payload);
  const TcpSegment s = tcp(LinkType::kEthernet, packet);  // names the packet's octets
  EXPECT_EQ(s.source, GetParam() ? kClient6 : kClient4);
  EXPECT_EQ(s.destination, GetParam() ? kServer6 : kServer4);
  EXPECT_EQ(Bytes(s.payload.begin(), s.payload.end()), payload);
  EXPECT_EQ(s.payload_bytes, payload.size());
  EXPECT_TRUE(s.ack);
  EXPECT_FALSE(s.syn || s.fin || s.reset);
}

TEST_P(PacketOfVersion, OnEveryKindOfLink) {
  const Bytes ip = ip_of(data_packet(GetParam(), hex("01")));
  const Bytes type = GetParam() ? hex("86dd") : hex("0800");
  const Bytes macs(12), sll(14);
  EXPECT_EQ(tcp(LinkType::kEthernet, macs | hex("8100 0005") | type | ip).payload_bytes, 1U);
  EXPECT_EQ(tcp(LinkType::kEthernet, macs | hex("88a8 0005 8100 0006") | type | ip).payload_bytes, 1U);
  EXPECT_EQ(tcp(LinkType::kLinuxSll, sll | type | ip).payload_bytes, 1U);
  EXPECT_EQ(tcp(LinkType::kLinuxSll2, type | Bytes(18) | ip).payload_bytes, 1U);
  EXPECT_EQ(tcp(LinkType::kLoopback, hex("02000000") | ip).payload_bytes, 1U);
  EXPECT_EQ(tcp(LinkType::kRawIp, ip).payload_bytes, 1U);
}

TEST_P(PacketOfVersion, EthernetPaddingIsNoPayload) {
  EXPECT_EQ(tcp(LinkType::kEthernet, data_packet(GetParam(), hex("01")) | Bytes(20)).payload_bytes, 1U);
}

TEST_P(PacketOfVersion, CutAnywhere) {
  const Packet whole = data_packet(GetParam(), test::pattern(10));
  for (std::size_t n = 0; n < whole.size(); ++n) {
    const auto parsed = parse_packet(LinkType::kEthernet, ConstBytes(whole).first(n), whole.size());
    const std::size_t headers = whole.size() - 10;
    if (n < headers) {
      ASSERT_EQ(std::get<NotTcp>(parsed), NotTcp::kCut) << n;
    } else {
      EXPECT_EQ(std::get<TcpSegment>(parsed).payload.size(), n - headers);
      EXPECT_EQ(std::get<TcpSegment>(parsed).payload_bytes, 10U);
    }
  }
}

TEST_P(PacketOfVersion, SequenceNumbersOfAConversation) {
  PacketMaker m(GetParam() ? kClient6 : kClient4, GetParam() ? kServer6 : kServer4);
  const auto shake = m.handshake(Direction::kRx);
  ASSERT_EQ(shake.size(), 3U);
  const TcpSegment syn = tcp(LinkType::kEthernet, shake[0]), syn_ack = tcp(LinkType::kEthernet, shake[1]);
  EXPECT_TRUE(syn.syn && !syn.ack && syn_ack.syn && syn_ack.ack);
  EXPECT_EQ(syn.source.port, 7174);
  EXPECT_EQ(syn_ack.acknowledged, syn.sequence + 1);
  const auto parts = m.data(Direction::kTx, Bytes(PacketMaker::kMaxPayloadBytes + 1));
  ASSERT_EQ(parts.size(), 2U);
  EXPECT_EQ(tcp(LinkType::kEthernet, parts[0]).sequence, syn_ack.sequence + 1);
  EXPECT_EQ(tcp(LinkType::kEthernet, parts[1]).sequence, syn_ack.sequence + 1 + PacketMaker::kMaxPayloadBytes);
  const TcpSegment fin = tcp(LinkType::kEthernet, m.fin(Direction::kTx));
  EXPECT_TRUE(fin.fin);
  EXPECT_EQ(tcp(LinkType::kEthernet, m.reset(Direction::kRx)).acknowledged, fin.sequence + 1);
}

// SCTP by itself, and in UDP of the port that is registered for it.
TEST(TracePacket, FindsSctp) {
  const Bytes sctp = hex("0fa0 1c06 00001234 00000000");
  const auto ip = [&](const char* protocol, const Bytes& payload) {
    Bytes out = hex("4500 0000 00000000 40 00 0000 0a000001 0a000002");
    out[9] = hex(protocol)[0];
    out.insert(out.end(), payload.begin(), payload.end());
    out[3] = static_cast<std::byte>(out.size());
    return out;
  };
  const auto parse = [](const Bytes& packet) { return parse_packet(LinkType::kRawIp, packet, packet.size()); };
  const auto plain = parse(ip("84", sctp));
  const auto& p = std::get<SctpPacket>(plain);
  EXPECT_EQ(p.source.to_string() + " " + p.destination.to_string(), "10.0.0.1:4000 10.0.0.2:7174");
  EXPECT_EQ(p.source_udp, 0);
  EXPECT_EQ(p.wire_bytes, 12U);
  const auto udp = [&](const char* header) {
    Bytes out = hex(header);
    out.insert(out.end(), sctp.begin(), sctp.end());
    return parse(ip("11", out));
  };
  const auto inside = udp("9c40 26ab 0014 0000");
  EXPECT_EQ(std::get<SctpPacket>(inside).source_udp, 40000);
  EXPECT_EQ(std::get<SctpPacket>(inside).destination_udp, 9899);
  EXPECT_EQ(std::get<SctpPacket>(inside).bytes.size(), 12U);
  EXPECT_TRUE(std::holds_alternative<SctpPacket>(udp("26ab 9c40 0014 0000"))) << "at either end";
  EXPECT_EQ(std::get<NotTcp>(udp("9c40 26ac 0014 0000")), NotTcp::kOther);
  EXPECT_EQ(std::get<NotTcp>(udp("9c40 26ab 0007 0000")), NotTcp::kOther) << "less than its header";
  EXPECT_EQ(std::get<NotTcp>(udp("9c40 26ab 0015 0000")), NotTcp::kOther) << "more than there is";
  EXPECT_EQ(std::get<NotTcp>(udp("9c40 26ab 000b 0000")), NotTcp::kCut);
  EXPECT_EQ(std::get<NotTcp>(parse(ip("84", hex("0fa01c")))), NotTcp::kCut);
}

NotTcp other(const Bytes& ip) {
  return std::get<NotTcp>(parse_packet(LinkType::kRawIp, ip, ip.size()));
}

TEST(Packet, Ipv4LengthsHaveAFloorAndACeiling) {
  Bytes ip = ip_of(data_packet(false, hex("01")));
  struct {
    std::size_t at;
    int value;
    NotTcp what;
  } const bad[] = {{0, 0x44, NotTcp::kOther}, {0, 0x35, NotTcp::kOther},    {3, 19, NotTcp::kOther},
                   {2, 1, NotTcp::kOther},    {6, 0x20, NotTcp::kFragment}, {7, 1, NotTcp::kFragment},
                   {9, 17, NotTcp::kOther},   {32, 0x40, NotTcp::kOther},   {32, 0x60, NotTcp::kOther}};
  for (const auto& b : bad) {
    Bytes broken = ip;
    broken[b.at] = static_cast<std::byte>(b.value);
    EXPECT_EQ(other(broken), b.what) << b.at << " = " << b.value;
  }
  ip[2] = ip[3] = std::byte{0};  // left to the interface to fill in
  EXPECT_EQ(tcp(LinkType::kRawIp, ip).payload_bytes, 1U);
}

TEST(Packet, Ipv6ExtensionHeaders) {
  Bytes ip = ip_of(data_packet(true, hex("01")));
  const auto with = [&](int first, const Bytes& extensions) {
    Bytes out(ip.begin(), ip.begin() + 40);
    out[6] = static_cast<std::byte>(first);
    out[5] = static_cast<std::byte>(std::to_integer<int>(out[5]) + static_cast<int>(extensions.size()));
    return out | extensions | Bytes(ip.begin() + 40, ip.end());
  };
  EXPECT_EQ(
      tcp(LinkType::kRawIp, with(0, hex("3c00000000000000") | hex("0601000000000000 0000000000000000"))).payload_bytes,
      1U);
  EXPECT_EQ(other(with(44, hex("0600000100000000"))), NotTcp::kFragment);
  EXPECT_EQ(other(with(0, hex("06ff000000000000"))), NotTcp::kOther);  // longer than the packet
  EXPECT_EQ(other(with(17, {})), NotTcp::kOther);
  ip[4] = std::byte{1};
  EXPECT_EQ(other(ip), NotTcp::kOther);
}

TEST(Packet, Noise) {
  std::mt19937 random(5);
  for (int round = 0; round < 20000; ++round) {
    Packet p = data_packet(round % 2 == 0, test::pattern(1 + random() % 30));
    for (auto n = random() % 5; n > 0; --n) p[random() % p.size()] = static_cast<std::byte>(random());
    p.resize(random() % (p.size() + 1));
    for (const LinkType link :
         {LinkType::kEthernet, LinkType::kLinuxSll, LinkType::kLinuxSll2, LinkType::kLoopback, LinkType::kRawIp}) {
      const auto parsed = parse_packet(link, p, p.size() + random() % 3);
      if (const auto* s = std::get_if<TcpSegment>(&parsed)) {
        EXPECT_LE(s->payload.size(), s->payload_bytes);
      }
    }
  }
}

}  // namespace
}  // namespace iwarp::trace
