// A peer that floods a server with the smallest messages there are.
#pragma once

#include "bench/lib/peer.h"

namespace iwarp::bench {

// Empty RDMA Writes, 20 octets each, as fast as TCP takes them, for ever.
[[noreturn]] void flood(const Target& server);

}  // namespace iwarp::bench
