// What to say to a Call whose head cannot be read. Internal to rpc.
#pragma once

#include "iwarp/rpc/message.h"

namespace iwarp::rpc {

// A whole RPC Reply to it: MSG_DENIED with RPC_MISMATCH if it is of another version of RPC, else GARBAGE_ARGS (RFC 5531
// s9). `message` is anything; without an xid that is 0.
[[nodiscard]] Octets refusal(ConstBytes message);

}  // namespace iwarp::rpc
