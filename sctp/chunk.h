// What DDP over SCTP (RFC 5043) puts into SCTP: the constants of an association, and the front of every Data Chunk.
// "Message" is the user data of one Data Chunk, or of several where SCTP had to fragment it. No sockets: SCTP itself is
// the driver's business. Octets of a message:
//   0-1 DDP-SSN     2.. with PPID 16 a DDP Segment (RFC 5041), with PPID 17 session control (session_control.h)
#pragma once

#include <cstdint>
#include <optional>

#include "iwarp/base/bytes.h"
#include "iwarp/base/result.h"

namespace iwarp::sctp {

// Payload Protocol Identifier. In the chunk most significant octet first; the sockets API wants it so from the caller.
enum class Ppid : std::uint32_t { kDdpSegment = 16, kSessionControl = 17 };  // req: RFC5043-12-1, RFC5043-5.2-1

// DDP Source Stream Sequence Number: begins at 0 with each session, counts the messages of one direction of one stream
// in the order of their submission to SCTP, and wraps from 65535 to 0, so it is ordered only modulo 2^16.
struct DdpSsn {
  std::uint16_t value = 0;  // as on the wire

  // To the next one, with the wrap.
  constexpr void advance() { value = static_cast<std::uint16_t>(value + 1); }
  // How many messages after `base` this one is, modulo 2^16; 0: the same.
  [[nodiscard]] constexpr std::uint16_t distance_from(DdpSsn base) const {
    return static_cast<std::uint16_t>(value - base.value);
  }
  friend constexpr bool operator==(DdpSsn, DdpSsn) = default;
};

// The number of an SCTP stream; a DDP stream is the pair of both directions with the same number.
enum class StreamId : std::uint16_t {};
// The 16 bits as they are on the wire.
constexpr std::uint16_t raw(StreamId s) {
  return static_cast<std::uint16_t>(s);
}

inline constexpr std::uint16_t kAdaptationParameter =
    0xC006;                                                // of the parameter in INIT and INIT ACK. req: RFC5043-5.1-4
inline constexpr std::uint32_t kDdpIndication = 1;         // its value for DDP
inline constexpr std::size_t kSsnBytes = 2;                // octets of the DDP-SSN
inline constexpr std::size_t kMinMessageLimit = 516;       // every path carries a message of so many octets
inline constexpr std::uint16_t kEncapsulationPort = 9899;  // SCTP over UDP (RFC 6951)

// Whether an association may carry DDP. `peers`: the adaptation indication of its INIT or INIT ACK, nullopt when there
// was none. Error kAdaptation: no DDP on this association; end it.
[[nodiscard]] Result<void> check_indication(std::optional<std::uint32_t> peers);

// The octets of one DDP Segment, at most, for an SCTP that puts messages of up to `fragmentation_point` octets into one
// packet without fragmenting them, or IP: room for the DDP-SSN is left, and for a SACK, so that the two leave together.
// Never less than 516, as the RFC has it: SCTP fragments what the path does not take then.
[[nodiscard]] std::size_t max_segment_bytes(std::size_t fragmentation_point);

// The DDP-SSN at the front of a message. Error kSessionSequence: fewer than two octets.
[[nodiscard]] Result<DdpSsn> parse_ssn(ConstBytes message);
// What stands behind it. Precondition: the message has a DDP-SSN.
[[nodiscard]] constexpr ConstBytes behind_ssn(ConstBytes message) {
  return message.subspan(kSsnBytes);
}
// Precondition: out.size() >= kSsnBytes.
void write_ssn(DdpSsn ssn, MutBytes out);

}  // namespace iwarp::sctp
