#include "iwarp/trace/packet.h"

#include <algorithm>
#include <cstdio>

#include "iwarp/base/wire.h"
#include "iwarp/sctp/chunk.h"

namespace iwarp::trace {
namespace {

using Parsed = std::variant<TcpSegment, SctpPacket, NotTcp>;

constexpr std::uint16_t kEtherIpv4 = 0x0800, kEtherIpv6 = 0x86DD;
constexpr std::uint8_t kProtocolTcp = 6, kProtocolUdp = 17, kProtocolSctp = 132;
constexpr std::size_t kTcpMinBytes = 20, kIpv4MinBytes = 20, kIpv6Bytes = 40;

// What is left of the packet: captured octets, and how many there were on the wire.
struct Rest {
  ConstBytes bytes;
  std::size_t wire;

  [[nodiscard]] bool has(std::size_t n) const { return bytes.size() >= n; }
  // Precondition: n <= wire.
  [[nodiscard]] Rest behind(std::size_t n) const { return {bytes.subspan(std::min(n, bytes.size())), wire - n}; }
  // Without what the datagram does not count: Ethernet pads short frames.
  [[nodiscard]] Rest first(std::size_t n) const { return {bytes.first(std::min(n, bytes.size())), std::min(n, wire)}; }
};

constexpr std::array<std::byte, 12> kMapped = {std::byte{0}, std::byte{0}, std::byte{0},    std::byte{0},
                                               std::byte{0}, std::byte{0}, std::byte{0},    std::byte{0},
                                               std::byte{0}, std::byte{0}, std::byte{0xFF}, std::byte{0xFF}};

std::array<std::byte, 16> address4(ConstBytes in) {
  std::array<std::byte, 16> out{};
  std::copy(kMapped.begin(), kMapped.end(), out.begin());
  std::copy_n(in.begin(), 4, out.begin() + 12);
  return out;
}

std::array<std::byte, 16> address6(ConstBytes in) {
  std::array<std::byte, 16> out{};
  std::copy_n(in.begin(), 16, out.begin());
  return out;
}

// Data offset (RFC 9293 s3.1): a floor as well as a ceiling.
Parsed parse_tcp(const Rest& r, TcpSegment s) {
  const auto h = FixedView<kTcpMinBytes>::of(r.bytes);
  if (!h) return NotTcp::kCut;
  const std::size_t header = std::size_t{h->be<std::uint8_t, 12>()} / 16 * 4;
  if (header < kTcpMinBytes || header > r.wire) return NotTcp::kOther;
  s.source.port = h->be<std::uint16_t, 0>();
  s.destination.port = h->be<std::uint16_t, 2>();
  s.sequence = h->be<std::uint32_t, 4>();
  s.acknowledged = h->be<std::uint32_t, 8>();
  const auto flags = h->be<std::uint8_t, 13>();
  s.fin = (flags & 0x01) != 0;
  s.syn = (flags & 0x02) != 0;
  s.reset = (flags & 0x04) != 0;
  s.ack = (flags & 0x10) != 0;
  const Rest payload = r.behind(header);
  s.payload = payload.bytes;
  s.payload_bytes = payload.wire;
  return s;
}

// The ports are at the front of the common header (RFC 9260 s3.1).
Parsed parse_sctp(const Rest& r, SctpPacket p) {
  const auto ports = FixedView<4>::of(r.bytes);
  if (!ports) return NotTcp::kCut;
  p.source.port = ports->be<std::uint16_t, 0>();
  p.destination.port = ports->be<std::uint16_t, 2>();
  p.bytes = r.bytes;
  p.wire_bytes = r.wire;
  return p;
}

// SCTP over UDP: by the port that is registered for it, at either end. UDP's length has a floor as well as a ceiling.
Parsed parse_udp(const Rest& r, SctpPacket p) {
  constexpr std::size_t kUdpBytes = 8;
  const auto h = FixedView<kUdpBytes>::of(r.bytes);
  if (!h) return NotTcp::kCut;
  p.source_udp = h->be<std::uint16_t, 0>();
  p.destination_udp = h->be<std::uint16_t, 2>();
  if (p.source_udp != sctp::kEncapsulationPort && p.destination_udp != sctp::kEncapsulationPort) return NotTcp::kOther;
  const std::size_t length = h->be<std::uint16_t, 4>();
  if (length < kUdpBytes || length > r.wire) return NotTcp::kOther;
  return parse_sctp(r.first(length).behind(kUdpBytes), p);
}

Parsed parse_transport(std::uint8_t protocol, const Rest& r, const Endpoint& source, const Endpoint& destination) {
  if (protocol == kProtocolTcp) {
    TcpSegment s;
    s.source = source;
    s.destination = destination;
    return parse_tcp(r, s);
  }
  SctpPacket p;
  p.source = source;
  p.destination = destination;
  if (protocol == kProtocolSctp) return parse_sctp(r, p);
  return protocol == kProtocolUdp ? parse_udp(r, p) : NotTcp::kOther;
}

Parsed parse_ipv4(const Rest& r) {
  const auto h = FixedView<kIpv4MinBytes>::of(r.bytes);
  if (!h) return NotTcp::kCut;
  const std::size_t header = std::size_t{h->be<std::uint8_t, 0>()} % 16 * 4;
  std::size_t total = h->be<std::uint16_t, 2>();
  if (total == 0) total = r.wire;  // a sender's capture of what the interface will cut into segments
  if (header < kIpv4MinBytes || header > total || total > r.wire) return NotTcp::kOther;
  if ((h->be<std::uint16_t, 6>() & 0x3FFF) != 0) return NotTcp::kFragment;
  return parse_transport(h->be<std::uint8_t, 9>(), r.first(total).behind(header), {address4(h->b.subspan(12)), 0},
                         {address4(h->b.subspan(16)), 0});
}

Parsed parse_ipv6(const Rest& in) {
  constexpr std::uint8_t kHopByHop = 0, kRouting = 43, kFragment = 44, kDestination = 60;
  const auto h = FixedView<kIpv6Bytes>::of(in.bytes);
  if (!h) return NotTcp::kCut;
  const std::size_t length = h->be<std::uint16_t, 4>();
  if (kIpv6Bytes + length > in.wire) return NotTcp::kOther;
  Rest r = (length == 0 ? in : in.first(kIpv6Bytes + length)).behind(kIpv6Bytes);
  std::uint8_t next = h->be<std::uint8_t, 6>();
  while (next == kHopByHop || next == kRouting || next == kDestination) {
    const auto extension = FixedView<2>::of(r.bytes);
    if (!extension) return NotTcp::kCut;
    const std::size_t bytes = (std::size_t{extension->be<std::uint8_t, 1>()} + 1) * 8;
    if (bytes > r.wire) return NotTcp::kOther;
    next = extension->be<std::uint8_t, 0>();
    r = r.behind(bytes);
  }
  if (next == kFragment) return NotTcp::kFragment;
  return parse_transport(next, r, {address6(h->b.subspan(8)), 0}, {address6(h->b.subspan(24)), 0});
}

Parsed parse_raw_ip(const Rest& r) {
  if (!r.has(1)) return NotTcp::kCut;
  const unsigned version = std::to_integer<unsigned>(r.bytes[0]) >> 4;
  return version == 4 ? parse_ipv4(r) : version == 6 ? parse_ipv6(r) : NotTcp::kOther;
}

Parsed parse_ether_type(Rest r, std::uint16_t type) {
  constexpr std::array<std::uint16_t, 3> kVlan = {0x8100, 0x88A8, 0x9100};
  while (std::find(kVlan.begin(), kVlan.end(), type) != kVlan.end()) {
    const auto tag = FixedView<4>::of(r.bytes);
    if (!tag) return NotTcp::kCut;
    type = tag->be<std::uint16_t, 2>();
    r = r.behind(4);
  }
  return type == kEtherIpv4 ? parse_ipv4(r) : type == kEtherIpv6 ? parse_ipv6(r) : NotTcp::kOther;
}

// A link header of `header` octets that has the EtherType at `type_at`.
Parsed parse_link(const Rest& r, std::size_t header, std::size_t type_at) {
  if (!r.has(header)) return NotTcp::kCut;
  return parse_ether_type(r.behind(header), load_be<std::uint16_t>(r.bytes.subspan(type_at)));
}

}  // namespace

std::string Endpoint::to_string() const {
  const auto octet = [this](std::size_t i) { return std::to_integer<unsigned>(address[i]); };
  char text[64];
  if (std::equal(kMapped.begin(), kMapped.end(), address.begin())) {
    std::snprintf(text, sizeof text, "%u.%u.%u.%u:%u", octet(12), octet(13), octet(14), octet(15), port);
    return text;
  }
  std::string out = "[";
  for (std::size_t i = 0; i < 16; i += 2) {
    std::snprintf(text, sizeof text, "%x%s", octet(i) << 8 | octet(i + 1), i < 14 ? ":" : "]:");
    out += text;
  }
  return out + std::to_string(port);
}

Parsed parse_packet(LinkType link, ConstBytes packet, std::size_t wire_bytes) {
  const Rest r{packet, std::max(wire_bytes, packet.size())};
  switch (link) {
    case LinkType::kEthernet:
      return parse_link(r, 14, 12);
    case LinkType::kLinuxSll:
      return parse_link(r, 16, 14);
    case LinkType::kLinuxSll2:
      return parse_link(r, 20, 0);
    case LinkType::kLoopback:  // an address family in the order of whoever captured; the IP version says the same
      return r.has(4) ? parse_raw_ip(r.behind(4)) : NotTcp::kCut;
    case LinkType::kRawIp:
      return parse_raw_ip(r);
  }
  return NotTcp::kOther;
}

}  // namespace iwarp::trace
