// Extensions of version 2 of RPC-over-RDMA: messages RDMA_OPTIONAL, whose types other documents define
// (draft-cel-nfsv4-rpcrdma-version-two-00 s3). The registry says which types an end knows, and whether an RPC message
// follows in each; OptionExchange is what a Requester and a Responder do with them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <variant>
#include <vector>

#include "iwarp/base/result.h"
#include "iwarp/rpcrdma/buffer_pool.h"
#include "iwarp/rpcrdma/transmit_queue.h"
#include "iwarp/rpcrdma/transport_header.h"

namespace iwarp::rpcrdma {

// The types of RDMA_OPTIONAL that an end knows. A value.
class OptionRegistry {
 public:
  // Whether an RPC message follows the header; of one type always, or never.
  enum class Payload : std::uint8_t { kNever, kAlways };

  // kInvalidArgument: the type is known already.
  [[nodiscard]] Result<void> add(std::uint32_t type, Payload payload);
  // Nullopt: the type is not known.
  [[nodiscard]] std::optional<Payload> find(std::uint32_t type) const;

 private:
  struct Entry {
    std::uint32_t type = 0;
    Payload payload = Payload::kNever;
  };
  std::vector<Entry> entries_;
};

// A message of a known type has come. What answers it owes, its definition says.
struct OptionReceived {
  std::uint32_t xid = 0;          // of its header
  std::uint32_t type = 0;         // as registered
  std::vector<std::byte> info{};  // rdma_optinfo, without padding
  Buffer message{};               // what follows the header; empty for types of Payload::kNever
};
// The peer does not know the type of a message that we have sent (RDMA_ERR_INVAL_OPTION).
struct OptionRefused {
  std::uint32_t xid = 0;   // of that message
  std::uint32_t type = 0;  // of that message
};
using OptionEvent = std::variant<OptionReceived, OptionRefused>;  // what poll_option() gives

// Internal to rpcrdma.
class OptionExchange {
 public:
  // At most `most` messages wait to be polled, and as many of ours for a refusal, the latest.
  OptionExchange(OptionRegistry known, std::size_t most) : known_(std::move(known)), most_(most) {}

  // What has become of a message.
  enum class Verdict : std::uint8_t {
    kTaken,
    kUnknown,    // RDMA_ERR_INVAL_OPTION is due
    kMalformed,  // RDMA_ERR_BAD_HEADER is due: a payload where there is never one, or none where there is always one
    kTooMany,    // nobody polls as fast as they come
  };
  // A message whose header is parsed; its payload begins at `payload_offset`.
  [[nodiscard]] Verdict on_message(const ParsedHeader& parsed, Buffer& message);
  // Whether an RDMA_ERROR is the answer to a message of ours.
  [[nodiscard]] bool on_error(const Header& header);
  // Oldest event not yet taken.
  [[nodiscard]] std::optional<OptionEvent> poll();
  // A message of ours of at most `most_bytes`; kInvalidArgument, with `message` untouched: the type is not known, a
  // payload as its type has none or the other way round, or it is too long.
  [[nodiscard]] Result<OutgoingMessage> make(std::uint32_t xid, OptionBody option, Buffer& message,
                                             std::uint32_t credits, std::size_t most_bytes);

 private:
  struct Sent {
    std::uint32_t xid = 0;
    std::uint32_t type = 0;
  };

  OptionRegistry known_;
  std::size_t most_;
  std::deque<Sent> sent_;
  std::deque<OptionEvent> events_;
};

}  // namespace iwarp::rpcrdma
