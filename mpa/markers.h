// MPA Markers (RFC 5044 s4.2, s4.3): where they stand in one direction of Full Operation, and one FPDU with its Markers
// written and read. Pure; no state but that of a writer.
//
//   Marker, 4 octets:   0-1 RESERVED, zero    2-3 FPDUPTR
//
// A Marker begins at every 512th octet of the direction, the first octet of Full Operation being 0: so it depends on no
// TCP sequence number, and on no wrap of one. Positions here count that way, Markers included. FPDUs and Markers are
// multiples of four octets, therefore no Marker splits a ULPDU_Length or a CRC field. What lies between two FPDUs
// belongs to the one behind it, and what lies before a CRC field to the FPDU that the field closes.
//
// Decided here, the text being silent: RFC 5044 bounds a ULPDU to 64768 octets, so that FPDUPTR is at most 65280. In a
// longer one, which a receiver takes all the same, the 16 bits of the distance are compared.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "iwarp/base/bytes.h"

namespace iwarp::mpa {

inline constexpr std::size_t kMarkerBytes = 4;
inline constexpr std::size_t kMarkerInterval = 512;  // from start to start: 508 other octets between two

// Octets from `position` to the next Marker: 0 if one begins there.
constexpr std::size_t octets_to_marker(std::uint64_t position) {
  return static_cast<std::size_t>(-position % kMarkerInterval);  // req: RFC5044-4.3-15, RFC5044-4.3-13
}
// Octets of Markers in the FPDU that begins at `position` and has `fpdu_bytes` other octets: that before its length
// counts, that behind its CRC does not.
constexpr std::size_t marker_bytes(std::uint64_t position, std::size_t fpdu_bytes) {
  constexpr std::size_t kBetween = kMarkerInterval - kMarkerBytes;
  const std::size_t before = octets_to_marker(position);
  if (fpdu_bytes <= before) return 0;  // req: RFC5044-4.3-8
  return (fpdu_bytes - before + kBetween - 1) / kBetween * kMarkerBytes;
}
// Octets before the ULPDU_Length of an FPDU that begins at `position`: its Marker, or none.
constexpr std::size_t leading_marker_bytes(std::uint64_t position) {
  return octets_to_marker(position) == 0 ? kMarkerBytes : 0;
}

// Writes one FPDU and the Markers that belong to it.
class MarkedFpduWriter {
 public:
  // `out` has room for exactly this FPDU, which begins at `position`.
  MarkedFpduWriter(MutBytes out, std::uint64_t position) : out_(out), position_(position) {}

  // ULPDU_Length and the ULPDU, in any number of pieces.
  void append(ConstBytes octets);
  // Pad and CRC: zeros when `crc_enabled` is not set. Then `out` is full.
  void finish(bool crc_enabled);

 private:
  void append_marker_if_due();

  MutBytes out_;
  std::uint64_t position_;
  std::size_t written_ = 0;
};

// Whether all Markers of a whole FPDU, as received from `position` on, point to its ULPDU_Length.
[[nodiscard]] bool markers_agree(ConstBytes fpdu, std::uint64_t position);
// Cuts the Markers out of it, or of a beginning of it that has its ULPDU_Length, in place, and gives what is left: the
// FPDU as it is without Markers.
[[nodiscard]] MutBytes cut_markers(MutBytes fpdu, std::uint64_t position);

}  // namespace iwarp::mpa
