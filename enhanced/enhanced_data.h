// The enhanced data of RFC 6581 s9: the first 32 bits of the Private Data of an enhanced MPA Request or Reply, and of
// an enhanced SCTP session control message. Plain values, no frame around them. Octets:
//   0-1 A 0x8000 B 0x4000 IRD 0x3FFF     2-3 C 0x8000 D 0x4000 ORD 0x3FFF
#pragma once

#include <cstdint>
#include <span>

#include "iwarp/base/bytes.h"

namespace iwarp::enhanced {

// Octets of the enhanced data, at the front of the Private Data field.
inline constexpr std::size_t kEnhancedDataBytes = 4;
// In an IRD or ORD field: "not negotiated here". It is no count; 0x3FFE is the largest one.
inline constexpr std::uint16_t kNoIrdOrdNegotiation = 0x3FFF;
inline constexpr std::uint16_t kMaxIrdOrd = 0x3FFE;  // largest IRD or ORD that is a count

// In parentheses the bits.
struct EnhancedData {
  bool peer_to_peer = false;  // A
  bool rtr_send = false;      // B
  bool rtr_write = false;     // C
  bool rtr_read = false;      // D
  std::uint16_t ird = 0;      // 14 bits
  std::uint16_t ord = 0;      // 14 bits

  // Any 32 bits are enhanced data.
  [[nodiscard]] static EnhancedData parse(std::span<const std::byte, kEnhancedDataBytes> in);
  // Precondition: IRD and ORD are at most 0x3FFF.
  void write_to(std::span<std::byte, kEnhancedDataBytes> out) const;

  friend constexpr bool operator==(const EnhancedData&, const EnhancedData&) = default;
};

}  // namespace iwarp::enhanced
