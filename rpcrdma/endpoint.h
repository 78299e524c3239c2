// What the RPC-over-RDMA protocol needs from a reliable connection with RDMA: post work, register memory, fence it. The
// protocol never blocks and is never called back: posts return at once, and whoever owns the connection feeds each
// completion, as a plain value, into Responder::on_completion() or Requester::on_completion(). Implemented by our queue
// pairs, by rdma-core verbs, and by the fakes of the tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "iwarp/base/bytes.h"
#include "iwarp/base/ids.h"
#include "iwarp/base/result.h"

namespace iwarp::rpcrdma {

// Bytes of this process inside a local registration.
struct LocalSlice {
  MutBytes bytes{};  // within one registration
  Stag lkey{};       // of that registration
};

// What was posted.
enum class OpKind : std::uint8_t { kRecv, kSend, kWrite, kRead };
// How an operation ended.
enum class OpStatus : std::uint8_t {
  kOk,
  kFlushed,  // the connection ended before the operation did
  kFailed,   // the operation itself ended the connection
};

// The end of one posted operation. Operations of the send side (kSend, kWrite, kRead) complete in the order posted.
struct Completion {
  std::uint64_t id = 0;               // as posted
  OpKind op = OpKind::kRecv;          // what was posted
  OpStatus status = OpStatus::kOk;    // how it ended
  std::uint32_t byte_len = 0;         // of a kRecv: octets received
  std::optional<Stag> invalidated{};  // of a kRecv: the STag that the peer's Send with Invalidate took away
};

// What a connection can take.
struct EndpointLimits {
  std::size_t max_sge = 8;                // slices of one Send
  std::size_t max_outstanding_reads = 1;  // ORD. 0: this end can issue no RDMA Read; Calls with Read chunks are refused
  std::size_t send_queue_depth = 128;     // Sends, Writes and Reads posted and not yet completed
  std::size_t receive_queue_depth = 256;  // Receives posted and not yet completed
};

// kRead: what nothing changes while it is registered, as the Read chunks of a Call (RFC 8166 s4.4.1).
enum class RemoteAccess : std::uint8_t { kRead, kWrite };

// Memory the peer may access: what goes into the segment of a chunk.
struct ExposedMemory {
  Stag handle{};             // STag
  std::uint64_t offset = 0;  // tagged offset of the first octet
};

// Where Receives are posted: a connection, or a queue that several connections share.
class ReceiveQueue {
 public:
  virtual ~ReceiveQueue() = default;
  // One Receive of into.bytes.size() octets.
  [[nodiscard]] virtual Result<void> post_recv(std::uint64_t id, LocalSlice into) = 0;
};

// Slices must stay registered and, where they are read, unchanged until the operation's completion was delivered. Each
// successful post gives exactly one Completion, flushed ones included; a failed post gives none and obliges the caller
// to close the connection. Not thread-safe.
class Endpoint : public ReceiveQueue {
 public:
  // Constant from the moment the endpoint is given to a Responder or Requester.
  [[nodiscard]] virtual EndpointLimits limits() const = 0;
  // One message gathered from `from` (at most max_sge slices). With `invalidate`: Send with Invalidate of that STag.
  [[nodiscard]] virtual Result<void> post_send(std::uint64_t id, std::span<const LocalSlice> from,
                                               std::optional<Stag> invalidate) = 0;
  // RDMA Write, gathered. Placed at the peer before any Send posted later.
  [[nodiscard]] virtual Result<void> post_write(std::uint64_t id, std::span<const LocalSlice> from, Stag handle,
                                                std::uint64_t offset) = 0;
  // RDMA Read of into.bytes.size() octets. The caller keeps at most max_outstanding_reads uncompleted.
  [[nodiscard]] virtual Result<void> post_read(std::uint64_t id, LocalSlice into, Stag handle,
                                               std::uint64_t offset) = 0;

  // Exposes `memory` to the peer under a fresh STag that nobody can predict. `remote_invalidation`: the peer's Send
  // with Invalidate may end the exposure too.
  [[nodiscard]] virtual Result<ExposedMemory> register_memory(MutBytes memory, RemoteAccess access,
                                                              bool remote_invalidation) = 0;
  // The fence: when it returns successfully, no remote access through `handle` can happen any more. Success also if the
  // peer has invalidated it already. On failure the memory may still be exposed: the connection must be closed first.
  [[nodiscard]] virtual Result<void> invalidate(Stag handle) = 0;
};

}  // namespace iwarp::rpcrdma
