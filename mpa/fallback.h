// What an Initiator asks for after a peer has ended TCP before its Reply began: Intel RNICs reset the connection when
// the peer-to-peer model is not asked for, and what does not know RFC 6581 closes it (RFC 6581 s10). Pure.
#pragma once

#include <cstdint>

#include "iwarp/mpa/policy.h"

namespace iwarp::mpa {

// What is asked for in place of what the policy says first.
enum class Fallback : std::uint8_t {
  kNone,
  kPeerToPeer,  // A=1, behind A=0
  kRevision1,
};

// The next thing to ask for, on a new TCP connection, after a Request of that policy: each is given once, for a policy
// with_fallback() is further down. kNone: nothing is left, or allowed.
[[nodiscard]] Fallback next_fallback(const Policy& policy);
// The policy that asks for it; with kNone the same one.
[[nodiscard]] Policy with_fallback(Policy policy, Fallback fallback);
// What worked before, as far as this policy would come to it by itself: else kNone.
[[nodiscard]] Fallback reachable(const Policy& policy, Fallback remembered);

}  // namespace iwarp::mpa
