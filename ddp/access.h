// Access rights of registered memory and the identity that an access is checked against (RFC 5041 s8, RFC 5042 s5).
#pragma once

#include <cstdint>

#include "iwarp/base/ids.h"

namespace iwarp::ddp {

// Bit set. Local read is always allowed. Receive buffers and Read sinks need kLocalWrite.
enum class Access : std::uint8_t {
  kLocalRead = 0,
  kLocalWrite = 1,
  kRemoteRead = 2,
  kRemoteWrite = 4,
  kRemoteInvalidate = 8,  // the peer may revoke the STag by Send with Invalidate, if it is bound to that one stream
  // The owner's promise that nothing changes the memory while a Read of it may be under way - not the owner, no peer's
  // Write, not by another STag - as RPC-over-RDMA gives for Read chunks. Read Responses with CRC then leave from where
  // they lie; else they are copied: a change between sum and sending is a wrong CRC, which ends the connection. Gives
  // no right.
  kStableSource = 16,
  kRemoteAtomic = 32,  // Atomics of RFC 7306, which kRemoteRead with kRemoteWrite admit as well
};
// The rights of both.
constexpr Access operator|(Access a, Access b) {
  return static_cast<Access>(static_cast<std::uint8_t>(a) | static_cast<std::uint8_t>(b));
}
// Whether `have` has all the rights in `need`.
constexpr bool includes(Access have, Access need) {
  return (static_cast<std::uint8_t>(have) & static_cast<std::uint8_t>(need)) == static_cast<std::uint8_t>(need);
}

// A DDP Stream of this process, never on the wire (RFC 5041 s8.2). 0 stands for "any stream of the Protection Domain".
enum class StreamId : std::uint64_t { kAny = 0 };

// Who accesses: the stream and its Protection Domain.
struct StreamKey {
  PdId pd{};          // its Protection Domain
  StreamId stream{};  // the stream
};

}  // namespace iwarp::ddp
