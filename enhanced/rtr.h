// The Ready-To-Receive message (RFC 6581 s9.2): with the peer-to-peer model the Initiator's first message, of zero
// length, opens the way for the Responder. Which of its forms is settled by flags in Request and Reply; these functions
// choose, for either role.
#pragma once

#include <cstdint>
#include <string>

#include "iwarp/enhanced/enhanced_data.h"

namespace iwarp::enhanced {
// Its forms, each of zero length.
enum class Rtr : std::uint8_t { kNone, kSend, kWrite, kRead };

// "none", "send", "write", "read"
[[nodiscard]] const char* name(Rtr rtr);

// Flags B, C and D.
struct RtrForms {
  bool send = false, write = false, read = false;  // B, C and D: by Send, by RDMA Write, by RDMA Read

  // Whether there is one at all.
  [[nodiscard]] constexpr bool any() const { return send || write || read; }
  // Those that both have.
  [[nodiscard]] constexpr RtrForms common(const RtrForms& other) const {
    return {send && other.send, write && other.write, read && other.read};
  }
  // "Send+Write+Read", "none"
  [[nodiscard]] std::string to_string() const;

  friend constexpr bool operator==(const RtrForms&, const RtrForms&) = default;
};

// Those that the flags say. With A=0 the flags mean nothing, and there are none.
[[nodiscard]] RtrForms forms_of(const EnhancedData& data);
// Sets the flags.
void set_forms(EnhancedData& data, const RtrForms& forms);

// What a Responder names in its Reply. Exactly one form, whatever else it could take: Chelsio refuses a Reply with two.
// Read if it was offered, since every RNIC knows it, then Write, then Send. If nothing that was offered can be taken,
// still one that can, so that the Initiator is able to tell why it gives up. Precondition: supported.any().
[[nodiscard]] Rtr name_rtr(const RtrForms& supported, const RtrForms& offered);

// What an Initiator sends. Read first, since Chelsio takes nothing else, but it is an RDMA Read and wants an ORD of 1;
// then Write; Send last, as the peer may take one of its posted receives for it. What was named and not offered is
// overlooked. kNone: no common form, Terminate 2/0/7.
[[nodiscard]] Rtr choose_rtr(const RtrForms& offered, const RtrForms& named, std::uint16_t ord);

}  // namespace iwarp::enhanced
