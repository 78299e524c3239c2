// RPC over TLS (RFC 9289) does not pass through a gateway: a client that were told STARTTLS by the server would begin a
// TLS session with us.
#pragma once

#include "iwarp/rpcrdma/buffer_pool.h"

namespace iwarp::gateway {

// If `call` is a Call with the flavor AUTH_TLS, turns it into its Reply: denied with AUTH_REJECTEDCRED, as a server
// does that does not know the flavor (RFC 5531 s9). False, and untouched, for everything else.
[[nodiscard]] bool deny_tls(rpcrdma::Buffer& call);

}  // namespace iwarp::gateway
