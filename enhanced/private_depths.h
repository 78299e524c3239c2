// IRD and ORD in the private data of an application, for peers of revision 1, whose startup does not settle them: the
// 8 octets that SMB Direct puts at the front of its private data then ([MS-SMBD] appendix A). Octets:
//   0-3 IRD     4-7 ORD, both most significant octet first, both 1 or more
// The Reply speaks in the Initiator's terms too: its IRD is what the Initiator is to use as IRD.
#pragma once

#include <array>
#include <optional>

#include "iwarp/base/bytes.h"
#include "iwarp/enhanced/settlement.h"

namespace iwarp::enhanced {

inline constexpr std::size_t kPrivateDepthsBytes = 8;  // octets at the front of the private data

// Linux cifs and ksmbd wrote both numbers least significant octet first; no valid pair reads as one either way, so both
// are understood. nullopt: too short, or no pair of 1 to kMaxIrdOrd.
[[nodiscard]] std::optional<Depths> parse_private_depths(ConstBytes private_data);
// As [MS-SMBD] has it, most significant octet first.
[[nodiscard]] std::array<std::byte, kPrivateDepthsBytes> write_private_depths(const Depths& depths);

// A Responder's answer, in the Initiator's terms: no more than either end can do. `own`: the Responder's.
[[nodiscard]] Depths answer_private_depths(const Depths& own, const Depths& asked);
// What the other end says of itself where the octets speak in this end's terms, as those of a Reply do for an
// Initiator.
[[nodiscard]] constexpr Depths crossed(const Depths& depths) {
  return {depths.ord, depths.ird};
}

}  // namespace iwarp::enhanced
