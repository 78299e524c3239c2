// Finds the TCP segment or the SCTP packet in a captured packet: Ethernet with VLAN tags, Linux cooked (SLL, SLL2),
// loopback or raw IP; IPv4 and IPv6 with extension headers; SCTP by itself or in UDP datagrams (RFC 6951). Packets are
// untrusted and may be cut off anywhere. Checksums are not verified: captures on a sending host have none (offload).
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "iwarp/base/bytes.h"

namespace iwarp::trace {

enum class LinkType : std::uint8_t { kEthernet, kLinuxSll, kLinuxSll2, kLoopback, kRawIp };

// IPv4 addresses as ::ffff:a.b.c.d.
struct Endpoint {
  std::array<std::byte, 16> address{};
  std::uint16_t port = 0;

  // "10.0.0.1:7174", "[fe80:0:0:0:0:0:0:1]:7174"
  [[nodiscard]] std::string to_string() const;
  friend auto operator<=>(const Endpoint&, const Endpoint&) = default;
};

struct TcpSegment {
  Endpoint source, destination;
  std::uint32_t sequence = 0;
  std::uint32_t acknowledged = 0;  // meaningful with `ack`
  bool syn = false, ack = false, fin = false, reset = false;
  ConstBytes payload{};           // as much as was captured; into the packet
  std::size_t payload_bytes = 0;  // on the wire
};

struct SctpPacket {
  Endpoint source, destination;                       // with SCTP's ports, 0 where they were not captured
  std::uint16_t source_udp = 0, destination_udp = 0;  // ports of UDP around it; 0: none
  ConstBytes bytes{};                                 // from its common header on, as much as was captured
  std::size_t wire_bytes = 0;                         // on the wire
};

enum class NotTcp : std::uint8_t {
  kOther,     // another protocol
  kFragment,  // of an IP datagram; not put together
  kCut,       // its headers were not captured
};

// `wire_bytes`: length of the packet before the capture cut it, at least packet.size().
[[nodiscard]] std::variant<TcpSegment, SctpPacket, NotTcp> parse_packet(LinkType link, ConstBytes packet,
                                                                        std::size_t wire_bytes);

}  // namespace iwarp::trace
