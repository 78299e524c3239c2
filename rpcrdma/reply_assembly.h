// Makes one RPC message of a Reply whose data came into Write chunks (RFC 8166 s3.4.6, RFC 8267 s6.4.1). The memory of
// the chunks lies in one buffer, with gaps for what stands between the data: so the first item, nearly always the only
// one, stays where the peer has written it. A function of its arguments. Internal to rpcrdma.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "iwarp/base/bytes.h"
#include "iwarp/rpcrdma/nfs_binding.h"
#include "iwarp/rpcrdma/transmit_queue.h"

namespace iwarp::rpcrdma {

// A Write chunk that was offered.
struct WrittenChunk {
  ByteRange room{};           // of the buffer
  std::uint32_t written = 0;  // octets, as the Reply says; at most the room
  bool empty = false;         // without room: its result comes in line
};

// `memory`: the buffer, whose chunks are in ascending order. `rest`: the Reply as received, without the data; outside
// of `memory`, or behind all that the message may take. Gives the range of `memory` that holds the whole Reply.
// Nullopt: the chunks do not go with the Reply, or the gaps are too small.
[[nodiscard]] std::optional<ByteRange> join_reply(MutBytes memory, std::span<const WrittenChunk> chunks,
                                                  const ResultBinding& results, ConstBytes rest);

}  // namespace iwarp::rpcrdma
