// TxGather: the list of FPDUs that are encoded and that TCP has not taken yet. It owns the headers and trailers. The
// payload stays where it is, in registered memory, and is pinned only while the list is handed to TCP: so a slow peer
// keeps nobody from deregistering. When the list is empty it owns no storage. Not thread-safe.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "iwarp/ddp/stag_table.h"
#include "iwarp/rdmap/transmitter.h"

namespace iwarp::stream {

class TxGather {
 public:
  using Done = rdmap::Transmitter::Done;

  [[nodiscard]] bool empty() const { return pieces_.empty(); }
  [[nodiscard]] std::size_t pieces() const { return pieces_.size(); }
  // Storage held for headers, trailers and copies.
  [[nodiscard]] std::size_t staged_bytes() const { return staged_; }
  // Stream offset of the next FPDU; the first has 0.
  [[nodiscard]] std::uint64_t position() const { return end_; }
  [[nodiscard]] std::size_t bytes() const { return static_cast<std::size_t>(end_ - committed_); }

  // Storage for octets of the next FPDU. Valid until they are committed.
  [[nodiscard]] MutBytes allocate(std::size_t n);
  // Appends octets that live in allocate()d storage; joins them to the piece before when they are adjacent.
  void append(ConstBytes owned);
  // Appends pinned memory.
  void append(ddp::Pin pin);
  // Ends an FPDU. `read_response`: it has pinned payload of one.
  void end_fpdu(const Done& done, bool read_response);

  // Pins all payload again. False when some of it was revoked. The list then ends before the first FPDU that needs it.
  // If that FPDU is partly sent already, broken() is true: the byte stream cannot go on.
  [[nodiscard]] bool resume();
  [[nodiscard]] bool broken() const { return broken_; }
  // After a failed resume(): the memory was the source of a Read Response, not of a work request.
  [[nodiscard]] bool lost_read_source() const { return lost_read_source_; }
  // What to hand to TCP. Valid until the next non-const call.
  [[nodiscard]] std::span<const ConstBytes> spans();

  // TCP took `n` octets. Lets go of all pins, and appends to `done` the Done of each FPDU that has left as a whole.
  // What is left of a partly sent Read Response is copied: others may revoke its memory at any time.
  void commit(std::size_t n, std::vector<Done>& done);
  // Lets go of all pins without sending.
  void suspend();
  // Before work requests are flushed: drops the FPDUs of which nothing has left, and copies what is left of the one
  // that is partly sent.
  void drop_unbegun();
  void clear();

 private:
  struct Piece {
    ConstBytes bytes;
    ddp::Pin pin;  // empty for owned octets
    bool pinned = false;
  };
  struct Fpdu {
    std::uint64_t begin = 0, end = 0;  // stream offsets
    std::size_t pieces_end = 0;        // pieces counted from the first ever appended
    Done done{};
    bool read_response = false;
  };
  struct Block {
    std::unique_ptr<std::byte[]> bytes;
    std::size_t size = 0, used = 0;
    std::uint64_t last = 0;  // stream offset behind the last octet that lies here
  };

  void truncate(std::size_t fpdus_kept);
  void copy_aside_rest_of_front();

  std::deque<Piece> pieces_;
  std::deque<Fpdu> fpdus_;
  std::deque<Block> blocks_;
  std::vector<ConstBytes> spans_;
  std::size_t staged_ = 0;
  std::size_t pieces_popped_ = 0;
  std::uint64_t committed_ = 0, end_ = 0, fpdu_begin_ = 0;
  bool broken_ = false;
  bool lost_read_source_ = false;
  bool joinable_ = false;  // the last piece may grow: it is owned and belongs to FPDUs that are all unsent or whole
};

}  // namespace iwarp::stream
