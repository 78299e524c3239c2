// The send side of one connection: messages leave in the order queued, each as its RDMA Writes followed by one Send, as
// fast as the send queue has room. Buffers of a message live until the last of its operations completed. Also counts
// the room that RDMA Reads take in the same queue. Internal to rpcrdma.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "iwarp/base/result.h"
#include "iwarp/rpcrdma/buffer_pool.h"
#include "iwarp/rpcrdma/endpoint.h"
#include "iwarp/rpcrdma/small_vector.h"
#include "iwarp/rpcrdma/transport_header.h"

namespace iwarp::rpcrdma {

// Octets of a message, counted from its first.
struct ByteRange {
  std::size_t offset = 0;
  std::size_t length = 0;
  friend constexpr bool operator==(const ByteRange&, const ByteRange&) = default;
};
using ByteRanges = SmallVector<ByteRange, 4>;

// One RDMA Write out of the payload buffer.
struct RemoteWrite {
  ByteRange from{};
  Stag handle{};
  std::uint64_t offset = 0;
  friend constexpr bool operator==(const RemoteWrite&, const RemoteWrite&) = default;
};
using RemoteWrites = SmallVector<RemoteWrite, 4>;

struct OutgoingMessage {
  Header header{};
  Buffer payload{};       // RPC message; may be empty
  ByteRanges in_line{};   // parts of the payload that follow the header in the Send
  RemoteWrites writes{};  // executed before the Send
  std::optional<Stag> invalidate{};
};

class TransmitQueue {
 public:
  TransmitQueue(Endpoint& endpoint, BufferPool& pool);

  // Takes over `message`; pump() posts it.
  void send(OutgoingMessage message);
  // Posts what there is room for. An error means that the endpoint refused: close.
  [[nodiscard]] Result<void> pump();
  // Handles a completion of ours; the message's buffers are released with its last one.
  void on_completion(const Completion& done);

  // Send queue entries of others (RDMA Reads). True if one was reserved; give it back when it completed.
  [[nodiscard]] bool reserve();
  void unreserve() { --used_; }
  // Messages not yet posted completely.
  [[nodiscard]] std::size_t backlog() const { return backlog_.size(); }
  // Operations posted and not completed, RDMA Reads included.
  [[nodiscard]] std::size_t posted() const { return used_; }
  // Sends and Writes posted and not completed, and how many have completed.
  [[nodiscard]] std::size_t unsent() const { return unsent_; }
  [[nodiscard]] std::uint64_t sent() const { return sent_; }
  // Messages that send() has taken, and how many of these, in the same order, have completed.
  [[nodiscard]] std::uint64_t taken() const { return taken_; }
  [[nodiscard]] std::uint64_t finished() const { return finished_; }
  // No further posts; what was never posted is dropped. Posted messages wait for their flush completions.
  void stop();

 private:
  struct Job {
    OutgoingMessage message{};
    Buffer header{};  // encoded; its storage may take in-line pieces too
    std::size_t next_write = 0;
    std::size_t uncompleted = 0;
    bool all_posted = false;
  };

  // False: no room, or no memory for the header.
  [[nodiscard]] Result<bool> post_more(std::uint32_t slot);
  [[nodiscard]] bool encode_header(Job& job);
  [[nodiscard]] Result<void> post_send(Job& job, std::uint32_t slot);
  void release(std::uint32_t slot);

  Endpoint& endpoint_;
  BufferPool& pool_;
  EndpointLimits limits_;
  std::deque<Job> jobs_;  // references stay valid while it grows
  std::vector<std::uint32_t> free_;
  std::deque<std::uint32_t> backlog_;
  std::vector<LocalSlice> slices_;  // scratch of post_send()
  std::size_t used_ = 0;
  std::size_t unsent_ = 0;
  std::uint64_t sent_ = 0;
  std::uint64_t taken_ = 0;
  std::uint64_t finished_ = 0;
  bool stopped_ = false;
};

}  // namespace iwarp::rpcrdma
