#include "iwarp/mpa/policy.h"

#include "iwarp/mpa/startup_frame.h"

namespace iwarp::mpa {
Result<void> validate(const Policy& policy) {
  const auto invalid = [](const char* why) { return make_error(Errc::kInvalidArgument, why); };
  if (policy.revision != 1 && policy.revision != 2) return invalid("MPA revision must be 1 or 2");
  if (policy.ird > kMaxIrdOrd || policy.ord > kMaxIrdOrd || policy.max_ird > kMaxIrdOrd) {  // req: RFC6581-9.1-22
    return invalid("IRD and ORD go up to 16382");
  }
  if (policy.revision >= 2 && !offer_of(policy).forms.any()) {
    return invalid("at least one RTR form is needed");  // req: RFC6581-9.2-10
  }
  if (policy.startup_timeout <= std::chrono::milliseconds::zero()) return invalid("startup timeout must be positive");
  return {};
}

enhanced::Offer offer_of(const Policy& policy) {
  return {.peer_to_peer = policy.peer_to_peer,
          .forms = {.send = policy.rtr_send, .write = policy.rtr_write, .read = policy.rtr_read},
          .depths = {policy.ird, policy.ord},
          .max_ird = policy.max_ird,
          .negotiate_depths = policy.negotiate_depths};
}

std::string Negotiated::to_string() const {
  return "rev=" + std::to_string(revision) + " enhanced=" + (enhanced ? "1" : "0") + " crc=" + (crc ? "1" : "0") +
         " p2p=" + (peer_to_peer ? "1" : "0") + " rtr=" + enhanced::name(rtr) + " ird=" + std::to_string(ird) +
         " ord=" + std::to_string(ord) +
         (markers_sent && markers_received ? " markers=both"
          : markers_sent                   ? " markers=sent"
          : markers_received               ? " markers=received"
                                           : "");
}

}  // namespace iwarp::mpa
