// How long the Reply to an NFSv4 COMPOUND can be (RFC 7530, RFC 5661, RFC 7863), from its arguments alone. An iterative
// walker over untrusted XDR that allocates nothing. Internal to rpcrdma.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "iwarp/base/wire.h"

namespace iwarp::rpcrdma {

// Owners, groups and the one in an ACE: strings without a limit in the RFCs. Linux takes 128 octets on either side.
inline constexpr std::size_t kMaxNameBytes = 768;

// Results whose octets the Call limits by a count (READDIR, READ_PLUS, LISTXATTRS, layouts): with room for servers that
// exceed it a little, and for what READ_PLUS says about each of its segments.
[[nodiscard]] constexpr std::size_t counted_bound(std::uint32_t count) {
  return 2 * std::size_t{count} + 4096;
}

// Most octets of the COMPOUND4res to the COMPOUND4args that `in` begins with. Nothing where there is no bound:
// malformed arguments, operations that are unknown or whose results have no limit (SECINFO, EXCHANGE_ID, GETXATTR ...,
// READLINK where `path_bytes`, the longest path, is 0), and attributes without one (ACLs, labels, locations).
[[nodiscard]] std::optional<std::size_t> compound_reply_bound(ReadCursor in, std::uint32_t path_bytes = 0);

// The same for a COMPOUND of minor version 0 that asks for such attributes and changes nothing, so that it may be sent
// once more if its Reply is longer than this (RFC 8267 s6.2.1). Nothing for every other.
[[nodiscard]] std::optional<std::size_t> compound_reply_guess(ReadCursor in);

}  // namespace iwarp::rpcrdma
