// The sending side of FPDU framing (RFC 5044 s4.1, s4.4, s4.5): sizes, and the pad and CRC that close an FPDU. It
// copies no payload: the caller gathers  length | ULPDU | trailer  itself. With Markers: markers.h.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "iwarp/base/bytes.h"
#include "iwarp/mpa/crc32c.h"

namespace iwarp::mpa {

inline constexpr std::size_t kLengthBytes = 2;        // ULPDU_Length, not counted by itself
inline constexpr std::size_t kMaxUlpduBytes = 65535;  // what the field can say; the receive side takes it all
inline constexpr std::size_t kMaxSendUlpduBytes =
    64768;                                           // RFC 5044 s3: the most that DDP may post and the cap of MULPDU
inline constexpr std::size_t kMinMulpduBytes = 128;  // RFC 5044 s4.5: MULPDU never falls below

// Zero octets between ULPDU and CRC, so that the FPDU is a multiple of four.
constexpr std::size_t pad_bytes(std::size_t ulpdu_bytes) {
  return (4 - (kLengthBytes + ulpdu_bytes) % 4) % 4;  // req: RFC5044-4.1-4
}
// Octets of the whole FPDU in the TCP stream: length, ULPDU, pad and CRC.
constexpr std::size_t fpdu_bytes(std::size_t ulpdu_bytes) {
  return kLengthBytes + ulpdu_bytes + pad_bytes(ulpdu_bytes) + kCrcBytes;  // req: RFC5044-4.1-10
}

// Pad and CRC of one FPDU: at most three zero octets, then four of CRC.
struct FpduTrailer {
  std::array<std::byte, 3 + kCrcBytes> bytes{};  // the first `size` of them
  std::size_t size = 0;                          // octets

  // Valid as long as this object.
  [[nodiscard]] ConstBytes view() const { return ConstBytes(bytes).first(size); }
};

// Writes ULPDU_Length. Precondition: ulpdu_bytes <= kMaxSendUlpduBytes.
void write_length(std::span<std::byte, kLengthBytes> out, std::size_t ulpdu_bytes);

// The trailer of the FPDU that consists of `length_and_header` (from the first octet of ULPDU_Length on) and the pieces
// of `payload`. With CRC off the field is still sent, as zeros (RFC 5044 s4.4 leaves the value open; siw sends zeros).
[[nodiscard]] FpduTrailer make_trailer(ConstBytes length_and_header, std::span<const ConstBytes> payload,
                                       bool crc_enabled);
// The same for a transmit path that copies and checksums in one pass: `crc_or_null` has been updated over length,
// header and payload, and is not changed; null means CRC off. `ulpdu_bytes` does not count the length field.
[[nodiscard]] FpduTrailer make_trailer(const Crc32c* crc_or_null, std::size_t ulpdu_bytes);

// How long FPDUs may get. Peers differ in what they take well (see the comments), so it is the operator's choice per
// connection.
enum class FpduPolicy : std::uint8_t {
  kEmss,  // an FPDU fits one TCP segment: what RFC 5044 wants, right for RNICs, the default
  k16k,   // up to 16384 octets: the longest that a Chelsio T6 takes in hardware
  kMax,   // as long as the RFC allows: software peers and loopback. Slow or fatal for RNICs
};

// MULPDU, the longest ULPDU that DDP should post, for the effective TCP segment size `emss` (RFC 5044 s4.5). Never
// outside 128..64768. Except at the floor of 128, length plus MULPDU is a multiple of four, so an FPDU of that size has
// no pad and its payload is a multiple of four behind any DDP header. `markers`: they are put in, and take room in what
// an FPDU must fit.
[[nodiscard]] std::size_t mulpdu_for(FpduPolicy policy, std::size_t emss, bool markers = false);

}  // namespace iwarp::mpa
