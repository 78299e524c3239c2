// The Receives of one connection: posted up front, filled again as soon as a message arrived, whatever becomes of that
// message. A message leaves the ring in the very buffer it was received into; a fresh buffer takes its place. Internal
// to rpcrdma.
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
[[nodiscard]] constexpr std::uint64_t work_id(WorkOwner owner, std::size_t slot) {
  return std::uint64_t{static_cast<std::uint8_t>(owner)} << 56 | static_cast<std::uint32_t>(slot);
}
[[nodiscard]] constexpr WorkOwner work_owner(std::uint64_t id) {
  return static_cast<WorkOwner>(id >> 56);
}
[[nodiscard]] constexpr std::size_t work_slot(std::uint64_t id) {
  return static_cast<std::uint32_t>(id);
}

class ReceiveRing {
 public:
  ReceiveRing(Endpoint& endpoint, BufferPool& pool, std::size_t receives, std::size_t receive_bytes);

  // Posts what is missing. Buffers that cannot be had yet stay missing: call again when some came back. An error means
  // that the endpoint refused: close the connection.
  [[nodiscard]] Result<void> fill();
  // Takes what a completion of ours holds, viewed as received; empty when it did not succeed.
  [[nodiscard]] Buffer take(const Completion& done);
  [[nodiscard]] std::size_t posted() const { return slots_.size() - missing_.size(); }
  [[nodiscard]] std::size_t missing() const { return missing_.size(); }
  // Gives the system the pages of posted Receives until a message comes, for an idle connection: of all but the oldest,
  // which may hold a part of the next message. All completions there are must have been taken.
  void rest();

 private:
  Endpoint& endpoint_;
  BufferPool& pool_;
  std::size_t receive_bytes_;
  std::vector<Buffer> slots_;
  std::vector<std::uint64_t> posted_at_;  // in which order
  std::uint64_t next_post_ = 0;
  std::vector<std::uint32_t> missing_;
};

}  // namespace iwarp::rpcrdma
