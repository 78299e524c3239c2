// Which Calls surely have a short Reply, so that no Reply chunk has to be offered for them. A small table of procedures
// whose results have a fixed maximum; whatever is not in it may be long. Internal to rpcrdma.
#pragma once

#include "iwarp/base/bytes.h"

namespace iwarp::rpcrdma {

// Whether the Reply to the RPC Call `call`, transport header included, always fits into 1024 octets, which every
// connection carries in line. Conservative: false for malformed Calls and for RPCSEC_GSS.
[[nodiscard]] bool reply_is_short(ConstBytes call);

}  // namespace iwarp::rpcrdma
