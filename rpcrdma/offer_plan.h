// What a Requester offers with a Call (RFC 8166 s3.4, s3.5; RFC 8267): which octets of the Call travel as Read chunks,
// and what memory the server may write the Reply into. A function of its arguments: no memory, no I/O. Internal to
// rpcrdma.
//
//   1. A Call that fits goes in line, whole.
//   2. Else its DDP-eligible data become Read chunks at their Positions, and the rest goes in line. If they are more
//      than the policy has, or the rest is still too long, or nothing is eligible, the whole Call is one Position-Zero
//      Read chunk; by policy the rest alone is, beside the others, where the header has room for them.
//   3. A Reply that may be too long because of the data of its READs (by policy, the paths of READLINKs as well) gets a
//      Write chunk for each of them, when the rest fits in line; every other one that may be too long gets a Reply
//      chunk. Both in one Call only by policy.
//   4. Without a bound the Reply chunk is the largest there is; of a likely size, where the Call may be sent again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "iwarp/base/bytes.h"
#include "iwarp/rpcrdma/nfs_binding.h"
#include "iwarp/rpcrdma/offer_policy.h"
#include "iwarp/rpcrdma/transmit_queue.h"
#include "iwarp/rpcrdma/transport_header.h"

namespace iwarp::rpcrdma {

struct OfferPlan {
  // RDMA_MSG with `rest` behind the header; else RDMA_NOMSG with `rest` as Position-Zero chunk.
  bool in_line = true;
  ByteRanges rest{};                             // of the Call: what is no data of a Read chunk
  SmallVector<DdpItem, 2> data{};                // of the Call: a Read chunk each, in ascending Position
  SmallVector<std::uint32_t, 1> write_chunks{};  // octets of each; 0: an empty chunk, for a result in line
  std::size_t reply_chunk = 0;                   // octets; 0: none
  // Most octets of the Reply that do not go into Write chunks, transport header not included.
  std::size_t reply_rest = 0;
  // The Reply chunk is of a likely size: a Reply that does not fit calls for the largest, once.
  bool guessed = false;
};

// `call_inline`, `reply_inline`: octets of the largest message in each direction. `max_reply`: octets of the largest
// Reply there is room for. `declared`: of other programs than NFS, or null. `session_limit`: octets of the largest
// Reply that the Call's NFSv4.1 session lets a server send. req: RFC8166-4.3.3-1
[[nodiscard]] OfferPlan plan_offer(ConstBytes call, const ResultBinding& results, const OfferPolicy& policy,
                                   std::size_t call_inline, std::size_t reply_inline, std::size_t max_reply,
                                   const DeclaredBinding* declared = nullptr,
                                   std::optional<std::size_t> session_limit = std::nullopt);

}  // namespace iwarp::rpcrdma
