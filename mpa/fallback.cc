#include "iwarp/mpa/fallback.h"

namespace iwarp::mpa {

Fallback next_fallback(const Policy& policy) {
  if (policy.revision < 2) return Fallback::kNone;
  if (!policy.peer_to_peer && policy.allow_peer_to_peer_fallback) return Fallback::kPeerToPeer;
  return policy.allow_revision_1_fallback ? Fallback::kRevision1 : Fallback::kNone;  // req: RFC6581-10-12
}

Policy with_fallback(Policy policy, Fallback fallback) {
  switch (fallback) {
    case Fallback::kNone:
      break;
    case Fallback::kPeerToPeer:
      policy.peer_to_peer = true;
      break;
    case Fallback::kRevision1:
      policy.revision = 1;
      break;
  }
  return policy;
}

Fallback reachable(const Policy& policy, Fallback remembered) {
  Policy at = policy;
  for (Fallback next = next_fallback(at); next != Fallback::kNone; next = next_fallback(at)) {
    if (next == remembered) return next;
    at = with_fallback(at, next);
  }
  return Fallback::kNone;
}

}  // namespace iwarp::mpa
