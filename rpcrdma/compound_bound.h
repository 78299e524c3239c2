// How long the Reply to an NFSv4 COMPOUND can be (RFC 7530, RFC 5661, RFC 7863), from its arguments alone. An iterative
// walker over untrusted XDR that allocates nothing. Internal to rpcrdma.
#pragma once

#include <cstddef>
#include <optional>

#include "iwarp/base/wire.h"

namespace iwarp::rpcrdma {

// Owners, groups and the one in an ACE: strings without a limit in the RFCs. Linux takes 128 octets on either side.
inline constexpr std::size_t kMaxNameBytes = 768;

// Most octets of the COMPOUND4res to the COMPOUND4args that `in` begins with. Nothing where there is no bound:
// malformed arguments, operations that are unknown or whose results have no limit (READDIR's servers may exceed their
// count a little, READLINK, SECINFO, layouts, xattrs ...), and attributes without one (ACLs, labels, locations).
[[nodiscard]] std::optional<std::size_t> compound_reply_bound(ReadCursor in);

}  // namespace iwarp::rpcrdma
