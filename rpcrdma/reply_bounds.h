// How long the Reply to a Call can be, so that a Reply chunk is offered only where it may be needed, and no longer than
// that. For NULL, for NFS and the protocols beside it; of other programs nothing is known. Internal to rpcrdma.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "iwarp/base/bytes.h"
#include "iwarp/rpcrdma/rpc_message.h"

namespace iwarp::rpcrdma {

// What precedes the results: six words and a verifier of 400 octets (RFC 5531 s8.2). Other kinds of Reply are shorter.
inline constexpr std::size_t kReplyHead = 24 + kMaxAuthBytes;

// Most octets of the RPC Reply to the RPC Call `call`, transport header not included, whatever the outcome. Nothing:
// there is no bound, or none is known. Conservative: nothing for malformed Calls and for RPCSEC_GSS with integrity or
// privacy. A bound below the truth would end the RPC with ERR_CHUNK. `path_bytes`: of the longest path that a READLINK
// of NFSv3 and NFSv4 results in; 0: that has no bound.
[[nodiscard]] std::optional<std::size_t> reply_bound(ConstBytes call, std::uint32_t path_bytes = 0);

// For those Calls without a bound that RFC 8267 lets a client send once more with a larger Reply chunk (s3.1, short
// Reply chunk retry): NFSACL GETACL, and a COMPOUND of NFSv4.0 with GETATTR that does nothing but look. Octets that
// nearly all of their Replies keep to, transport header not included. Nothing for every other Call: a Reply that is
// longer than was offered ends its RPC. req: RFC8267-3.1-5
[[nodiscard]] std::optional<std::size_t> reply_guess(ConstBytes call);

}  // namespace iwarp::rpcrdma
