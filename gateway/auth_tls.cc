#include "iwarp/gateway/auth_tls.h"

#include <algorithm>

#include "iwarp/rpcrdma/rpc_message.h"

namespace iwarp::gateway {

bool deny_tls(rpcrdma::Buffer& call) {
  const auto head = rpcrdma::RpcCall::parse(call.bytes());
  if (!head || head->credential.flavor != rpcrdma::kAuthTls) return false;
  const auto denial = rpcrdma::make_auth_error_reply(head->xid, rpcrdma::AuthStat::kRejectedCred);
  call.set_view(call.headroom(), denial.size());  // shorter than any Call
  std::copy(denial.begin(), denial.end(), call.bytes().begin());
  return true;
}

}  // namespace iwarp::gateway
