#include "iwarp/trace/call_book.h"

namespace iwarp::trace {

CallBook::Key CallBook::key(const Pair& ends, const SeenRpc& rpc) {
  return {ends, rpc.caller, rpc.xid, rpc.program, rpc.version, rpc.procedure, rpc.call_bytes};
}

std::optional<CallBook::Earlier> CallBook::call(const Pair& ends, const std::string& connection, const SeenRpc& rpc) {
  if (calls_.size() >= kMaxCalls) calls_.clear();
  const auto [it, is_new] = calls_.try_emplace(key(ends, rpc), Earlier{connection, rpc.sent.frame});
  if (is_new) return std::nullopt;
  return it->second;
}

void CallBook::reply(const Pair& ends, const SeenRpc& rpc) {
  calls_.erase(key(ends, rpc));
}

}  // namespace iwarp::trace
