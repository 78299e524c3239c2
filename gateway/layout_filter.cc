#include "iwarp/gateway/layout_filter.h"

#include <algorithm>

#include "iwarp/rpcrdma/nfs_pnfs.h"
#include "iwarp/rpcrdma/rpc_message.h"

namespace iwarp::gateway {

void LayoutFilter::on_call(MutBytes call) {
  if (!on_) return;
  rpcrdma::hide_layout_attributes(call);
  if (!rpcrdma::has_exchange_id(call)) return;
  const std::uint32_t xid = *rpcrdma::rpc_xid(call);
  if (std::find(xids_.begin(), xids_.end(), xid) != xids_.end()) return;
  if (xids_.size() == kMaxCalls) xids_.pop_front();
  xids_.push_back(xid);
}

bool LayoutFilter::on_reply(MutBytes reply) {
  if (xids_.empty()) return false;
  const auto xid = rpcrdma::rpc_xid(reply);
  const auto known = std::find(xids_.begin(), xids_.end(), xid);
  if (!xid || known == xids_.end()) return false;
  xids_.erase(known);
  return rpcrdma::hide_layouts(reply);
}

}  // namespace iwarp::gateway
