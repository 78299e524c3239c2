// The reply decisions of a Responder (RFC 8166 s3.5, s4.3; RFC 8267): which octets of a Reply go into which chunk, what
// the transport header says about it, and when the peer gets ERR_CHUNK instead. A function of its arguments: no memory,
// no I/O. Internal to rpcrdma.
//
//   1. DDP-eligible results go into the Write chunks offered, the n-th result (READ, READLINK; in the order of the
//      operations) into the n-th chunk. An empty chunk (count 0) returns its result in line; larger than its chunk:
//      ERR_CHUNK. RPCSEC_GSS integrity or privacy, errors and denied Calls have no such result: nothing is reduced.
//   2. What remains, with its header, fits in line: RDMA_MSG, also when a Reply chunk was offered, which is then echoed
//      with lengths 0. (RFC 8166 s4.3.3 allows it and the Linux client takes it; the Linux server would use the Reply
//      chunk. In line costs the peer one RDMA operation less.)
//   3. Else the Reply chunk, if offered and large enough: RDMA_NOMSG. Else ERR_CHUNK.
#pragma once

#include <cstdint>
#include <optional>

#include "iwarp/base/bytes.h"
#include "iwarp/rpcrdma/nfs_binding.h"
#include "iwarp/rpcrdma/transmit_queue.h"
#include "iwarp/rpcrdma/transport_header.h"

namespace iwarp::rpcrdma {

// What a Call offered for its Reply.
struct ReplyOffer {
  WriteList write_list{};
  std::optional<WriteChunk> reply_chunk{};
  std::optional<Stag> sole_handle{};  // the one STag in all chunks of the Call, if there is exactly one
  ResultBinding binding{};
};

// `header` is the Call's.
[[nodiscard]] ReplyOffer make_offer(const Header& header, ResultBinding binding);

struct ReplyPlan {
  bool error = false;  // ERR_CHUNK: nothing below is set
  Header header{};
  ByteRanges in_line{};  // of the Reply, behind the header
  RemoteWrites writes{};
  std::uint64_t reduced_bytes = 0;      // went into Write chunks
  std::uint64_t reply_chunk_bytes = 0;  // went into the Reply chunk
};

[[nodiscard]] ReplyPlan plan_reply(std::uint32_t xid, const ReplyOffer& offer, ConstBytes reply, std::uint32_t credits,
                                   std::size_t inline_bytes);

}  // namespace iwarp::rpcrdma
