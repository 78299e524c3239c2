#include "iwarp/enhanced/settlement.h"

#include <algorithm>

namespace iwarp::enhanced {
namespace {

// An RTR by Read is an RDMA Read: it needs an ORD of 1.
std::uint16_t initial_ord(const Offer& offer) {
  const bool may_read = offer.peer_to_peer && offer.forms.read;
  return may_read ? std::max<std::uint16_t>(offer.depths.ord, 1) : offer.depths.ord;  // req: RFC6581-9.2-6
}

}  // namespace

Depths fit(Depths own, const Depths& peer, std::uint16_t max_ird) {
  // kNoIrdOrdNegotiation is more than any ORD. req: RFC6581-9.1-22
  // req: RFC6581-9.1-6, RFC6581-9.1-7, RFC6581-9.1-10, RFC6581-9.1-12, RFC6581-9.1-16, RFC6581-9.1-25, RFC6581-9.1-26
  own.ord = std::min(own.ord, peer.ird);
  if (peer.ord != kNoIrdOrdNegotiation && own.ird != 0)        // req: RFC6581-9.1-4, RFC6581-9.1-23, RFC6581-9.1-28
    own.ird = std::max(own.ird, std::min(peer.ord, max_ird));  // req: RFC6581-9.1-15, RFC6581-12-1
  return own;
}

Depths left_open(Depths told, const std::optional<Depths>& startup) {
  if (!startup) return told;
  if (startup->ird != kNoIrdOrdNegotiation) told.ird = kNoIrdOrdNegotiation;
  if (startup->ord != kNoIrdOrdNegotiation) told.ord = kNoIrdOrdNegotiation;
  return told;
}

EnhancedData make_request(const Offer& offer) {
  EnhancedData e;
  e.ird = offer.negotiate_depths ? offer.depths.ird : kNoIrdOrdNegotiation;    // req: RFC6581-9.1-2
  e.ord = offer.negotiate_depths ? initial_ord(offer) : kNoIrdOrdNegotiation;  // req: RFC6581-9.1-3
  if (!offer.peer_to_peer) return e;                                           // req: RFC6581-9.2-22, RFC6581-9.2-24
  e.peer_to_peer = true;      // req: RFC6581-9.2-1, RFC6581-9.2-8, RFC6581-5-1
  set_forms(e, offer.forms);  // req: RFC6581-9.2-9, RFC6581-9.2-2, RFC6581-9.2-3, RFC6581-9.2-4
  return e;
}

Result<void> settle_reply(const Offer& offer, const EnhancedData& reply, Settled& out) {
  out.peer_to_peer = offer.peer_to_peer;
  out.depths = fit({offer.depths.ird, initial_ord(offer)}, {reply.ird, reply.ord}, offer.max_ird);
  if (reply.peer_to_peer != offer.peer_to_peer) {  // req: RFC6581-9.2-11, RFC6581-9.2-23
    Error error = make_error(Errc::kConnectionModel, "flag A of the Reply differs from the Request");
    error.tell_peer =
        make_error(Errc::kNoMatchingRtr).tell_peer;  // s9.2: "no compatible connection model or RTR option"
    return error;
  }
  if (reply.ord != kNoIrdOrdNegotiation && reply.ord > out.depths.ird)
    return make_error(Errc::kInsufficientIrd);  // req: RFC6581-9.1-17, RFC6581-9.1-19
  if (!offer.peer_to_peer) return {};
  out.rtr = choose_rtr(offer.forms, forms_of(reply), out.depths.ord);
  if (out.rtr == Rtr::kNone) return make_error(Errc::kNoMatchingRtr);  // req: RFC6581-9.2-18, RFC6581-9.2-20
  return {};
}

Settled settle_request(const Offer& offer, const EnhancedData& request) {
  Settled s;
  s.peer_to_peer = request.peer_to_peer;
  s.depths = fit(offer.depths, {request.ird, request.ord}, offer.max_ird);
  if (s.peer_to_peer) s.rtr = name_rtr(offer.forms, forms_of(request));
  if (s.rtr == Rtr::kRead) s.depths.ird = std::max<std::uint16_t>(s.depths.ird, 1);  // req: RFC6581-9.1-11
  return s;
}

EnhancedData make_reply(const RtrForms& forms, const Depths& depths, const EnhancedData& request) {
  EnhancedData e;
  e.ird = request.ord == kNoIrdOrdNegotiation ? kNoIrdOrdNegotiation : depths.ird;  // req: RFC6581-9.1-24
  e.ord = request.ird == kNoIrdOrdNegotiation ? kNoIrdOrdNegotiation : depths.ord;  // req: RFC6581-9.1-27
  e.peer_to_peer = request.peer_to_peer;  // req: RFC6581-9.2-11, RFC6581-9.2-23, RFC6581-9.3-2
  if (!e.peer_to_peer) return e;          // req: RFC6581-9.2-24, RFC6581-9.2-25
  const Rtr rtr = name_rtr(forms, forms_of(request));
  set_forms(e, {.send = rtr == Rtr::kSend, .write = rtr == Rtr::kWrite, .read = rtr == Rtr::kRead});
  return e;
}

}  // namespace iwarp::enhanced
