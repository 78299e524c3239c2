// What two drop-in ends agree on before they use it: a trailer behind the program's own private data in the MPA Request
// and the Reply, cut off before the program sees them. Only who is asked to by its settings sends one in a Request, for
// a peer that does not know it shows it to its program; a Reply has one only if the Request had. Without, the wire is
// as the program has it.
//
// Last in the private data, 12 octets:
//    0               1               2               3
//   +---------------+---------------+-------------------------------+
//   |    version    |     flags     | octets of the program's data  |
//   +---------------+---------------+-------------------------------+
//   |                     magic, "iwDropIn"                         |
//   |                                                               |
//   +---------------------------------------------------------------+
// The count is where the program's data end, so that a later version may have more before it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "dropin/verbs/settings.h"
#include "iwarp/base/bytes.h"
#include "iwarp/rdmap/control.h"

namespace iwarp::dropin {

// What an end can do, or what both have agreed on.
struct Agreement {
  bool rfc7306 = false;         // Immediate Data and Atomics of RFC 7306
  bool roce = false;            // the device presents itself as RoCE
  bool send_immediate = false;  // Send with Immediate, by an opcode of no RFC

  // Nothing.
  [[nodiscard]] bool empty() const { return *this == Agreement{}; }
  friend bool operator==(const Agreement&, const Agreement&) = default;
};

inline constexpr std::size_t kTrailerBytes = 12;
inline constexpr std::size_t kMagicBytes = 8;  // the last of them
// Of private data, trailer included: the most that iwarp sends (mpa::kMaxSendPrivateDataBytes).
inline constexpr std::size_t kMostPrivateData = 251;

// What the settings ask for. Empty: no trailer is sent.
[[nodiscard]] Agreement wanted(const Settings& from);
// What a program's private data may have where a trailer comes behind them, or none does.
[[nodiscard]] constexpr std::size_t most_private_data(bool with_trailer) {
  return kMostPrivateData - (with_trailer ? kTrailerBytes : 0);
}
// `own` and the trailer. Precondition: at most most_private_data(true) octets.
[[nodiscard]] std::vector<std::byte> with_trailer(ConstBytes own, const Agreement& what);

struct PrivateData {
  ConstBytes own;                    // the program's
  std::optional<Agreement> trailer;  // none: `own` is all. Of a version that is not known: empty
};
// Of whatever a peer sent, of any length. Flags without a meaning are not looked at.
[[nodiscard]] PrivateData parse_private_data(ConstBytes all);

// What both can do.
[[nodiscard]] Agreement both(const Agreement& here, const Agreement& there);
// What the core is told of it.
[[nodiscard]] rdmap::Extensions extensions_of(const Agreement& agreed);
// For who has offered `offer` in a Request: what the private data of the Reply make of it. kPeerRejected: this device
// presents itself as RoCE, and the peer does not.
[[nodiscard]] Result<rdmap::Extensions> judge_reply(const Agreement& offer, ConstBytes private_data);

}  // namespace iwarp::dropin
