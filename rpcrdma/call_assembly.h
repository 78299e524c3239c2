// Puts a Call together out of its in-line part and its Read chunks (RFC 8166 s3.4.5, s3.5.3). plan_call() works out
// what goes where and touches nothing; CallAssembler executes plans: it waits for memory, keeps the RDMA Reads within
// the ORD and the send queue, and reads straight into the final place. Internal to rpcrdma.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <variant>
#include <vector>

#include "iwarp/rpcrdma/buffer_pool.h"
#include "iwarp/rpcrdma/declared_binding.h"
#include "iwarp/rpcrdma/endpoint.h"
#include "iwarp/rpcrdma/receive_ring.h"
#include "iwarp/rpcrdma/transmit_queue.h"
#include "iwarp/rpcrdma/transport_header.h"

namespace iwarp::rpcrdma {

struct RemoteRead {
  std::size_t into = 0;  // offset in the assembled message
  std::uint32_t length = 0;
  Stag handle{};
  std::uint64_t offset = 0;
  friend constexpr bool operator==(const RemoteRead&, const RemoteRead&) = default;
};

// Where a Read chunk of non-zero Position lies in the assembled message.
struct PlacedChunk {
  std::uint32_t position = 0;
  std::uint64_t length = 0;  // as advertised: with or without padding
  friend constexpr bool operator==(const PlacedChunk&, const PlacedChunk&) = default;
};

struct CallPlan {
  struct Copy {
    std::size_t from = 0;  // offset in the in-line payload
    std::size_t into = 0;
    std::size_t length = 0;
    friend constexpr bool operator==(const Copy&, const Copy&) = default;
  };
  std::size_t total_bytes = 0;
  SmallVector<RemoteRead, 4> reads{};  // none of length 0
  SmallVector<Copy, 4> copies{};
  SmallVector<ByteRange, 2> zeros{};     // padding that the peer left out
  SmallVector<PlacedChunk, 2> chunks{};  // in ascending Position
};

enum class PlanFault : std::uint8_t {
  kTooLong,       // more octets than allowed: ERR_CHUNK
  kBadPositions,  // chunks overlap or lie behind the end of the message: GARBAGE_ARGS
};

// `header` passed check_call() and has a Read list; `inline_bytes` is the size of the payload behind it.
[[nodiscard]] std::variant<CallPlan, PlanFault> plan_call(const Header& header, std::size_t inline_bytes,
                                                          std::size_t max_call_bytes);

enum class ChunkVerdict : std::uint8_t {
  kFine,
  kNotEligible,  // a chunk replaces what the Upper-Layer Binding does not allow: ERR_CHUNK (RFC 8166 s6.1)
  kWrongSize,  // a chunk's length contradicts the count word, or what is left in line is no XDR: GARBAGE_ARGS (RFC 8166
               // s4.5.2)
};
// Judges the chunks of an assembled Call. `declared`: of other programs than NFS, or null.
[[nodiscard]] ChunkVerdict check_chunks(ConstBytes call, const CallPlan& plan,
                                        const DeclaredBinding* declared = nullptr);

// Executes plans in the order given.
class CallAssembler {
 public:
  struct Done {
    std::uint32_t owner = 0;
    Buffer message{};
    CallPlan plan{};
  };

  // `purpose`: of the memory for assembled Calls.
  CallAssembler(Endpoint& endpoint, BufferPool& pool, TransmitQueue& transmit,
                BufferPool::Purpose purpose = BufferPool::Purpose::kCall);

  // `received` holds the Send, its payload at `payload_offset`; kept until the memory for the whole Call is there.
  void add(std::uint32_t owner, CallPlan plan, Buffer received, std::size_t payload_offset);
  // Starts and continues what memory, ORD and send queue allow. An error means that the endpoint refused: close.
  [[nodiscard]] Result<void> pump();
  // A Read of ours completed.
  void on_completion(const Completion& done);
  // The oldest Call that has become complete.
  [[nodiscard]] std::optional<Done> take_finished();
  [[nodiscard]] bool waits_for_memory() const { return !waiting_.empty(); }
  // RDMA Reads under way, and how many were answered.
  [[nodiscard]] std::size_t reads() const { return reads_; }
  [[nodiscard]] std::uint64_t reads_answered() const { return reads_answered_; }
  // No further posts; Calls that wait are dropped.
  void stop();

 private:
  struct Job {
    std::uint32_t owner = 0;
    CallPlan plan{};
    Buffer received{};
    std::size_t payload_offset = 0;
    Buffer message{};
    std::size_t next_read = 0;
    std::size_t uncompleted = 0;
  };

  [[nodiscard]] bool start(Job& job);
  void release(std::uint32_t slot);

  Endpoint& endpoint_;
  BufferPool& pool_;
  TransmitQueue& transmit_;
  BufferPool::Purpose purpose_;
  std::size_t max_reads_;
  std::size_t reads_ = 0;
  std::uint64_t reads_answered_ = 0;
  std::deque<Job> jobs_;
  std::vector<std::uint32_t> free_;
  std::deque<std::uint32_t> waiting_;  // for memory
  std::deque<std::uint32_t> reading_;  // Reads still to be posted
  std::deque<std::uint32_t> finished_;
  bool stopped_ = false;
};

}  // namespace iwarp::rpcrdma
