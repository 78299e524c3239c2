// Identifiers that must not be mixed up, as distinct types at no cost.
#pragma once

#include <cstdint>

namespace iwarp {

// Steering Tag (RFC 5040 s1.1): names a registered buffer on the wire. 24-bit index << 8 | 8-bit key. Index 0 is never
// allocated.
enum class Stag : std::uint32_t {};
// The 32 bits as they are on the wire.
constexpr std::uint32_t raw(Stag s) {
  return static_cast<std::uint32_t>(s);
}

// Protection Domain identifier, local to one process and never on the wire (RFC 5041 s8.2).
enum class PdId : std::uint32_t {};

// Message Sequence Number of an untagged queue (RFC 5041 s4.3): starts at 1 and wraps from FFFFFFFF to 0, so it is
// ordered only modulo 2^32.
struct Msn {
  std::uint32_t value = 1;  // as on the wire

  // To the next one, with the wrap.
  constexpr void advance() { ++value; }
  // Signed distance from `base` to this: positive when this is later, modulo 2^32.
  [[nodiscard]] constexpr std::int32_t distance_from(Msn base) const {
    return static_cast<std::int32_t>(value - base.value);
  }
  friend constexpr bool operator==(Msn, Msn) = default;
};

}  // namespace iwarp
