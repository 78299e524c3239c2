// A Call whose connection ended before its Reply: what goes from one connection to the next (RFC 8166 s4.5.5, RFC 8167
// s5.4). A value: it needs neither of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "iwarp/base/time.h"

namespace iwarp::rpcrdma {

// Whether the peer has executed it nobody knows, unless it was never sent. Whoever sends it again relies on the peer's
// duplicate request cache, or on procedures that may be executed twice.
struct OutstandingCall {
  std::uint32_t xid = 0;             // the same on every connection
  std::uint32_t tag = 0;             // as given to Requester::call()
  TimePoint since{};                 // likewise
  std::uint32_t times_sent = 0;      // 0: it never left; a bound on it ends what kills every connection
  std::vector<std::byte> message{};  // the whole RPC Call
  std::size_t max_reply = SIZE_MAX;  // as given to Requester::call()
};

}  // namespace iwarp::rpcrdma
