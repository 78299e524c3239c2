// How long the Reply to a Call can be, so that a Reply chunk is offered only where it may be needed, and no longer than
// that. For NULL and for NFS; of other programs nothing is known. Internal to rpcrdma.
#pragma once

#include <cstddef>
#include <optional>

#include "iwarp/base/bytes.h"
#include "iwarp/rpcrdma/rpc_message.h"

namespace iwarp::rpcrdma {

// What precedes the results: six words and a verifier of 400 octets (RFC 5531 s8.2). Other kinds of Reply are shorter.
inline constexpr std::size_t kReplyHead = 24 + kMaxAuthBytes;

// Most octets of the RPC Reply to the RPC Call `call`, transport header not included, whatever the outcome. Nothing:
// there is no bound, or none is known. Conservative: nothing for malformed Calls and for RPCSEC_GSS. A bound below the
// truth would end the RPC with ERR_CHUNK.
[[nodiscard]] std::optional<std::size_t> reply_bound(ConstBytes call);

}  // namespace iwarp::rpcrdma
