// RPC-over-RDMA version 1 (RFC 8166) and the heads of ONC RPC messages (RFC 5531) inside the Sends of one connection.
// Whether a connection carries them at all is told by the caller, by RFC 8797 private data, or guessed from the first
// Sends. RPC messages that travel in chunks are not looked at.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "iwarp/trace/line.h"
#include "iwarp/trace/message_assembler.h"

namespace iwarp::trace {

enum class RpcGuess : std::uint8_t { kUnknown, kYes, kNo };

class RpcView {
 public:
  explicit RpcView(RpcGuess guess) : guess_(guess) {}

  // Private data of a startup frame. The line for it, if it is RFC 8797's.
  [[nodiscard]] std::optional<std::string> on_private_data(ConstBytes private_data);
  struct Decoded {
    std::string header{};  // "RDMA_MSG(...)", "Malformed(...)" or "Cut(...)"; empty: not RPC-over-RDMA
    std::string rpc{};     // "Call(...)", "Reply(...)", "Malformed(...)", "Cut(...)" or empty
    bool malformed = false;
  };
  [[nodiscard]] Decoded on_send(Direction direction, const Message& message);

 private:
  struct Procedure {
    std::uint32_t program, version, procedure;
  };
  std::string rpc_line(Direction direction, ConstBytes message, std::uint64_t bytes, bool& malformed);

  RpcGuess guess_;
  unsigned guesses_ = 0;
  // Calls without a Reply so far, by who made them and xid; forgotten when there are too many.
  std::map<std::pair<Direction, std::uint32_t>, Procedure> calls_;
};

}  // namespace iwarp::trace
