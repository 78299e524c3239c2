// Receives: posted up front, filled again as soon as a message arrived, whatever becomes of that message. A message
// leaves the ring in the very buffer it was received into; a fresh buffer takes its place. Each Requester and Responder
// has one of its own; or several share one over a shared receive queue, whose completions come to the connection that
// the message is of.
//
// Who shares sees to it that the Receives suffice: all that is granted to all clients, the Replies to all Calls; or
// fewer, where a message that finds none waits for one (StreamOptions::receive_wait, RNR retries). Not thread-safe: all
// that share are driven by one thread.
#pragma once

#include <cstdint>
#include <vector>

#include "iwarp/base/result.h"
#include "iwarp/rpcrdma/buffer_pool.h"
#include "iwarp/rpcrdma/endpoint.h"
#include "iwarp/rpcrdma/transport_header.h"

namespace iwarp::rpcrdma {

// Whose completion an id belongs to; kept in its top byte, the slot in the low word.
enum class WorkOwner : std::uint8_t { kReceive = 1, kTransmit = 2, kAssembly = 3 };
// The id of work of that owner.
[[nodiscard]] constexpr std::uint64_t work_id(WorkOwner owner, std::size_t slot) {
  return std::uint64_t{static_cast<std::uint8_t>(owner)} << 56 | static_cast<std::uint32_t>(slot);
}
// The owner in such an id.
[[nodiscard]] constexpr WorkOwner work_owner(std::uint64_t id) {
  return static_cast<WorkOwner>(id >> 56);
}
// The slot in such an id.
[[nodiscard]] constexpr std::size_t work_slot(std::uint64_t id) {
  return static_cast<std::uint32_t>(id);
}

class ReceiveRing {
 public:
  // So many Receives of so many octets, at least 1024. `queue` and `pool` outlive it, and the completions of its
  // Receives; where it is shared, the memory of `pool` has to be registered for all that share.
  ReceiveRing(ReceiveQueue& queue, BufferPool& pool, std::size_t receives, std::size_t receive_bytes);

  // Posts what is missing. Buffers that cannot be had yet stay missing: call again when some came back. An error means
  // that the endpoint refused: close the connection.
  [[nodiscard]] Result<void> fill();
  // Takes what a completion of ours holds, viewed as received; empty when it did not succeed.
  [[nodiscard]] Buffer take(const Completion& done);
  // From now on so many are kept posted: fill() posts more, or none until those beyond are used up.
  void resize(std::size_t receives);
  // Whether the pool has memory for so many.
  [[nodiscard]] bool can_hold(std::size_t receives) const;
  // Receives that are posted.
  [[nodiscard]] std::size_t posted() const { return slots_.size() - missing_.size(); }
  // Of those that are to be posted.
  [[nodiscard]] std::size_t missing() const { return wanted_ > posted() ? wanted_ - posted() : 0; }
  // Gives the system the pages of posted Receives until a message comes, for an idle connection: of all but the oldest,
  // which may hold a part of the next message. All completions there are must have been taken.
  void rest();

 private:
  ReceiveQueue& queue_;
  BufferPool& pool_;
  std::size_t receive_bytes_;
  std::size_t wanted_;
  std::vector<Buffer> slots_;
  std::vector<std::uint64_t> posted_at_;  // in which order
  std::uint64_t next_post_ = 0;
  std::vector<std::uint32_t> missing_;
};

}  // namespace iwarp::rpcrdma
