// The front of an SCTP packet (RFC 9260 s3) as far as it has to be known before SCTP itself sees it: to whom it
// belongs, and whether its checksum is right. Pure functions over octets.
//   0-1 source port   2-3 destination port   4-7 Verification Tag   8-11 CRC-32C, least significant octet first
//   12 type of the first chunk   13 its flags   14-15 its length
#pragma once

#include <cstdint>
#include <optional>

#include "iwarp/base/bytes.h"

namespace iwarp::sctp_cm {

// Types of a first chunk that matter here.
enum class ChunkType : std::uint8_t { kInit = 1, kInitAck = 2, kAbort = 6, kShutdownAck = 8, kCookieEcho = 10 };

inline constexpr std::size_t kMinPacketBytes = 16;     // common header and the head of one chunk
inline constexpr std::size_t kMaxPacketBytes = 65507;  // what a UDP datagram holds

struct PacketHead {
  std::uint16_t source = 0;       // SCTP ports, not those of UDP
  std::uint16_t destination = 0;  //
  std::uint32_t tag = 0;          // Verification Tag
  ChunkType first{};              // may be of any other value

  // nullopt: too short or too long, port 0, or a first chunk that is shorter than its head or leaves the packet.
  [[nodiscard]] static std::optional<PacketHead> parse(ConstBytes packet);
};

// Whether a packet consists of what DDP's associations need and nothing else, each chunk with a length that its
// contents bear out: DATA, INIT, INIT ACK, SACK, HEARTBEAT and its ACK, ABORT, SHUTDOWN and its ACK and COMPLETE,
// ERROR, COOKIE ECHO and ACK of RFC 9260, with the parameters of INITs and the causes of errors walked to their end.
// Extensions (ASCONF, AUTH, RE-CONFIG, FORWARD TSN, I-DATA, NR-SACK, PKTDROP, ECN) are off here, so an honest peer
// sends none. SCTP gets no packet for which this is false. Precondition: PacketHead::parse() takes it.
[[nodiscard]] bool is_plain(ConstBytes packet);

// Precondition of these: at least kMinPacketBytes.
[[nodiscard]] bool has_good_checksum(ConstBytes packet);
void write_checksum(MutBytes packet);

}  // namespace iwarp::sctp_cm
