#include "iwarp/rpc/refusal.h"

#include "iwarp/base/wire.h"

namespace iwarp::rpc {

Octets refusal(ConstBytes message) {
  const std::uint32_t xid = rpcrdma::rpc_xid(message).value_or(0);
  ReadCursor in(message);
  in.skip(8);
  if (in.be<std::uint32_t>() == rpcrdma::kRpcVersion || !in.ok()) {
    return encode_reply(xid, rpcrdma::AcceptStat::kGarbageArgs, {});
  }
  Octets denied(24);
  WriteCursor out(denied);
  for (const std::uint32_t word : {xid, 1u, 1u, 0u, rpcrdma::kRpcVersion, rpcrdma::kRpcVersion}) out.be(word);
  return denied;
}

}  // namespace iwarp::rpc
