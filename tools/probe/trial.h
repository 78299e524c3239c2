// The questions of `iwarp probe --listen`: each is a way to answer one MPA Request, to find out what an initiator does
// then. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "iwarp/base/bytes.h"
#include "iwarp/enhanced/rtr.h"
#include "tools/probe/raw_frame.h"

namespace iwarp::tools::probe {

using enhanced::RtrForms;
// Those that a startup frame names.
[[nodiscard]] RtrForms forms_of(const RawFrame& frame);

struct Trial {
  enum class Answer : std::uint8_t { kAccept, kReject, kClose, kWrongKey, kWrongLength };

  std::string_view name;  // for --only
  std::string_view asks;  // what is found out, one line
  Answer answer = Answer::kAccept;
  bool enhanced = true;                       // false: the Reply is of revision 1, whatever the Request is
  bool other_crc = false;                     // C is not that of the Request
  std::optional<RtrForms> forms{};            // named in the Reply; nullopt: those that are offered
  std::optional<std::uint16_t> ird{};         // nullopt: the Request's ORD
  bool ord_above_ird = false;                 // ORD is one more than the Request's IRD
  std::uint8_t reserved_bits = 0;             // ORed into octet 16 of the Reply
  std::optional<std::size_t> private_data{};  // octets that no ULP knows; nullopt: those that the user chose

  // The Reply on the wire; empty: none. `request` is complete. `private_data`: the user's, at most 508 octets.
  [[nodiscard]] std::vector<std::byte> reply(const RawFrame& request, ConstBytes private_data) const;
};

// In the order in which they are put. The last one may make an initiator try again at once in another way.
[[nodiscard]] std::span<const Trial> trials();
// nullptr: there is none of this name.
[[nodiscard]] const Trial* trial_named(std::string_view name);

}  // namespace iwarp::tools::probe
