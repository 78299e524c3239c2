// What came back for a Call.
#pragma once

#include <functional>

#include "iwarp/base/error.h"
#include "iwarp/rpc/held_buffer.h"
#include "iwarp/rpcrdma/rpc_message.h"

namespace iwarp::rpc {

// What was answered. Move-only; it holds memory of the connection, so let it go soon.
class Reply {
 public:
  // None.
  Reply() = default;
  // By the Client.
  Reply(HeldBuffer message, const rpcrdma::RpcReply& head) : message_(std::move(message)), head_(head) {}

  // Whether the procedure was executed and there are results.
  [[nodiscard]] bool success() const { return head_.success(); }
  // Whether the server has taken the Call; false: it has denied it (RFC 5531 s9), and message() says why.
  [[nodiscard]] bool accepted() const { return head_.accepted; }
  // How an accepted Call went.
  [[nodiscard]] rpcrdma::AcceptStat accept_stat() const { return head_.accept_stat; }
  // The results of the procedure; empty unless success(). Valid as long as this object is not moved from.
  [[nodiscard]] ConstBytes results() const {
    return success() ? message_.bytes().subspan(head_.results_offset) : ConstBytes{};
  }
  // The whole RPC Reply, likewise.
  [[nodiscard]] ConstBytes message() const { return message_.bytes(); }
  // Gives the memory back now; nothing is left.
  void reset() { *this = Reply(); }

 private:
  HeldBuffer message_;
  rpcrdma::RpcReply head_{};
};

}  // namespace iwarp::rpc
