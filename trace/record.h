// What a trace is made of: records, one for each thing that happened (their text: docs/TRACE.md). Pure values.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "iwarp/base/time.h"
#include "iwarp/trace/pdu.h"

namespace iwarp::trace {

// As seen by the end whose connection is traced. In a capture by a third party that end is the TCP client.
enum class Direction : std::uint8_t { kTx, kRx };
// The other one.
[[nodiscard]] constexpr Direction opposite(Direction d) {
  return d == Direction::kTx ? Direction::kRx : Direction::kTx;
}
// 0 or 1, for arrays by direction.
[[nodiscard]] constexpr std::size_t index(Direction d) {
  return static_cast<std::size_t>(d);
}

// When something was seen.
struct When {
  Duration at{};            // since the start of the trace
  std::uint64_t frame = 0;  // number of the packet, from 1; 0: not from a capture
};

// An RPC that was seen. The records that belong to it share it; it fills as the trace goes on.
struct SeenRpc {
  std::uint32_t xid = 0;                                  // chosen by the caller
  Direction caller = Direction::kTx;                      // who has sent the Call
  When sent{};                                            // the Send with which the Call began
  bool known = false;                                     // its Call was read: what follows is valid
  std::uint32_t program = 0, version = 0, procedure = 0;  // with `known`
  std::optional<std::uint32_t> minor_version;             // of a COMPOUND
  std::string name;              // "NFS 3 READ"; of a COMPOUND "NFS 4.1 READ", after its main operation
  bool config = false;           // of CONFIG_RDMA, whose program number is an option
  bool plain = false;            // arguments and results travel as the program defines them
  std::uint64_t call_bytes = 0;  // of the Call message
  // Octets of its Sends (headers included), RDMA Writes and Read Responses.
  std::uint64_t send_bytes = 0, write_bytes = 0, read_bytes = 0;
};

// One line of a trace.
struct Record {
  When when;                             // time and frame
  std::string connection;                // its name; no blanks
  Direction direction = Direction::kTx;  // who has sent it
  std::string_view layer;                // static: "tcp", "mpa", "sctp", "ddp", "rdmap", "rpcrdma" or "rpc"
  Pdu pdu;                               // what was seen
  bool error = false;                    // something went wrong
  std::optional<std::uint32_t> xid;      // of the RPC it belongs to
  std::shared_ptr<const SeenRpc> rpc;    // the same RPC, if its Call or its header was seen
  std::optional<Duration> latency;       // of a Reply: since its Call
  bool retransmission = false;           // of a Call

  // "Call", "Reply", ... of layer rpc
  [[nodiscard]] bool is(std::string_view its_layer, std::string_view name) const {
    return layer == its_layer && pdu.name() == name;
  }
};

}  // namespace iwarp::trace
