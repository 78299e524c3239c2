// Enhanced connection establishment (RFC 6581 s9) as functions over values, for either role: what to offer, what to
// answer, and what is agreed then. The lower layer carries the enhanced data: in MPA startup frames, or in SCTP session
// control messages (s7).
//
// IRD and ORD cross over: the ORD of one end is held to the IRD of the other. With Offer::max_ird above `ird` an end is
// relaxed: it raises its IRD to what the peer wants. With max_ird at or below `ird` it is strict: its IRD stays, and
// where the peer must have more, the Initiator ends with Terminate 2/0/6.
#pragma once

#include <optional>

#include "iwarp/base/result.h"
#include "iwarp/enhanced/enhanced_data.h"
#include "iwarp/enhanced/rtr.h"

namespace iwarp::enhanced {

// Inbound RDMA Reads that an end admits at a time (IRD) and outbound ones that it has outstanding at most (ORD).
struct Depths {
  std::uint16_t ird = 0;  // admitted
  std::uint16_t ord = 0;  // outstanding

  friend constexpr bool operator==(const Depths&, const Depths&) = default;
};

// `own` made to fit what the peer says of itself: ORD lowered to its IRD, IRD raised towards its ORD, up to `max_ird`
// and never from 0. A value of the peer of kNoIrdOrdNegotiation leaves its counterpart here as it is.
[[nodiscard]] Depths fit(Depths own, const Depths& peer, std::uint16_t max_ird);

// The part of `told` that startup has left to the applications, the rest being kNoIrdOrdNegotiation. `startup`: the
// peer's IRD and ORD in its startup message, nullopt when that is not enhanced.
[[nodiscard]] Depths left_open(Depths told, const std::optional<Depths>& startup);

// What one end wants and is able to do.
struct Offer {
  bool peer_to_peer = false;     // Initiator: the model it asks for (A). A Responder follows the Request
  RtrForms forms{};              // those it sends (Initiator) or takes (Responder)
  Depths depths{};               // 0..kMaxIrdOrd
  std::uint16_t max_ird = 0;     // up to where its IRD may be raised; below depths.ird it means that
  bool negotiate_depths = true;  // Initiator. False: its Request has kNoIrdOrdNegotiation in both fields
};

// What both ends have agreed on.
struct Settled {
  bool peer_to_peer = false;  // an RTR opens the connection
  Rtr rtr = Rtr::kNone;       // Initiator: the form to send. Responder: the form it named
  Depths depths{};            // that this end uses
};

// --- Initiator.
[[nodiscard]] EnhancedData make_request(const Offer& offer);
// Judges an accepting Reply. Errors, each with the Terminate that is owed before the end: kConnectionModel (2/0/7: A
// differs), kInsufficientIrd (2/0/6), kNoMatchingRtr (2/0/7). `out` then holds what was settled until there.
[[nodiscard]] Result<void> settle_reply(const Offer& offer, const EnhancedData& reply, Settled& out);

// --- Responder.
// What it uses when it accepts this Request. Precondition: offer.forms.any().
[[nodiscard]] Settled settle_request(const Offer& offer, const EnhancedData& request);
// The enhanced data of its Reply, accepting or not: `depths` are those that it uses, or, on a reject, would use.
[[nodiscard]] EnhancedData make_reply(const RtrForms& forms, const Depths& depths, const EnhancedData& request);

}  // namespace iwarp::enhanced
