// Record marking, sending side (RFC 5531 s11): queues ONC RPC records and offers them as one gather list, each as a
// single fragment behind its 4-byte mark, so that many records leave in one system call. Copies no payload. Memory
// follows the most records that there ever were at a time. Not thread-safe.
//
// Driving: write tx_buffers(), say how much of it went with tx_commit(), collect the ids of finished records with
// poll_written(), repeat until tx_buffers() is empty.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "iwarp/base/bytes.h"
#include "iwarp/base/chunked_ring.h"
#include "iwarp/base/result.h"

namespace iwarp::gateway {

struct RecordWriterOptions {
  // Records added and not yet collected by poll_written(). Above the credits granted it never fills up.
  std::size_t max_records = 128;
  // Pieces of all queued records together, one per record for its mark included.
  std::size_t max_pieces = 1024;
  // Most entries of one gather list; IOV_MAX is 1024 on Linux.
  std::size_t max_gather = 64;
};

class RecordWriter {
 public:
  explicit RecordWriter(const RecordWriterOptions& options);
  // The gather list points into this object.
  RecordWriter(const RecordWriter&) = delete;
  RecordWriter& operator=(const RecordWriter&) = delete;

  // Queues the record made of `pieces`, in order. Their bytes must live and stay unchanged until poll_written()
  // returned `id` or this object is gone; the span of pieces itself is not kept. On failure nothing is queued:
  //   kQueueFull        try again after poll_written() returned something
  //   kResource         there is no memory
  //   kInvalidArgument  the record is empty, longer than the 2^31 - 1 bytes of a fragment, or has more pieces than fit
  [[nodiscard]] Result<void> add(std::uint64_t id, std::span<const ConstBytes> pieces);

  // What to send next. Empty when all is sent. Valid until the next non-const call.
  [[nodiscard]] std::span<const ConstBytes> tx_buffers();
  // The first n bytes of those buffers were sent. Precondition: n is not more than they hold.
  void tx_commit(std::size_t n);
  // Id of the oldest record that was sent completely and not yet reported: its bytes may be reused.
  [[nodiscard]] std::optional<std::uint64_t> poll_written();

  // Records not yet sent completely.
  [[nodiscard]] std::size_t pending_records() const { return records_.size(); }
  [[nodiscard]] bool empty() const { return records_.empty(); }

 private:
  struct Record {
    std::array<std::byte, 4> mark{};
    std::uint64_t id = 0;
    std::size_t pieces_left = 0;
  };

  RecordWriterOptions options_;
  ChunkedRing<Record> records_;
  ChunkedRing<ConstBytes> pieces_;  // of all records, marks included; the first may be partly sent
  ChunkedRing<std::uint64_t> written_;
  std::vector<ConstBytes> gather_;
};

}  // namespace iwarp::gateway
