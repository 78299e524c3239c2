// RPC-over-RDMA headers and RPC messages as a trace shows them. Pure functions over untrusted octets that may be cut
// anywhere: what cannot be read is left out.
#pragma once

#include <cstdint>
#include <optional>

#include "iwarp/rpcrdma/config_rdma.h"
#include "iwarp/rpcrdma/transport_header.h"
#include "iwarp/trace/compound_view.h"
#include "iwarp/trace/record.h"

namespace iwarp::trace {

// "RDMA_MSG(xid=..., vers=1, credits=32, reads=[], writes=[], reply=-)"
[[nodiscard]] Pdu header_pdu(const rpcrdma::Header& header);

// "Call(...)" of the RPC message that begins with `message` and has `bytes` octets, and fills what it says into `rpc`.
// `places`: of its data. `config_program`: number of CONFIG_RDMA. nullopt: it is no Call, or its head is not all there.
[[nodiscard]] std::optional<Pdu> call_pdu(ConstBytes message, std::uint64_t bytes, const DataPlaces& places,
                                          std::uint32_t config_program, SeenRpc& rpc);

struct ReplyPdu {
  Pdu pdu;
  bool error = false;  // not done, or done with a status other than 0
};
// "Reply(...)". `rpc`: the one it answers, nullptr if its Call was not seen. `places`: of its data. `when`: of the
// Reply. nullopt: it is no Reply, or its head is not all there.
[[nodiscard]] std::optional<ReplyPdu> reply_pdu(ConstBytes message, std::uint64_t bytes, const DataPlaces& places,
                                                const SeenRpc* rpc, const When& when);

}  // namespace iwarp::trace
