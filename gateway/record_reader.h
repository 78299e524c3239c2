// Record marking, receiving side (RFC 5531 s11): finds the ONC RPC records in a TCP byte stream and lays each one out
// in ONE buffer that the owner supplies, whatever its fragmentation. Knows nothing of what a record contains. No
// sockets, no allocation after construction. Not thread-safe.
//
// Driving: read into rx_buffers(), say so with rx_commit(), then look at state() and serve it:
//   kNeedBuffer  give_buffer() with room for at least wanted_bytes(). Nothing is read until then: that is
//   back-pressure. kRecord      take record(), then next(). Nothing is read until then. kError       error() says why;
//   the stream has lost its framing for good, close the connection.
// Repeat until state() is kReceiving: one commit can make many records available. A large record is received straight
// into its final buffer; only what arrives together with a fragment header passes through a small read-ahead buffer.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "iwarp/base/bytes.h"
#include "iwarp/base/error.h"

namespace iwarp::gateway {

struct RecordOptions {
  // Shortest record accepted: an xid and a direction (RFC 5531 s9). More would refuse legal messages.
  std::size_t min_record_bytes = 8;
  // Longest record accepted, over all its fragments: 1 MiB of NFS data and its headers. Less refuses a WRITE of the
  // largest size that the server offers; more lets one client hold more memory.
  std::size_t max_record_bytes = (std::size_t{1} << 20) + (std::size_t{64} << 10);
  // Empty fragments tolerated in one record. The RFC allows any number; without a bound a peer keeps us busy for ever.
  std::size_t max_empty_fragments = 16;
  // Own buffer for headers and small records, held for the life of the connection; what was never received into is not
  // resident. Below 4 it is raised to 4. Less costs a system call for each READ of 4 KiB, more copies more of the large
  // ones.
  std::size_t read_ahead_bytes = 16384;
};

class RecordReader {
 public:
  enum class State : std::uint8_t { kReceiving, kNeedBuffer, kRecord, kError };

  explicit RecordReader(const RecordOptions& options);
  ~RecordReader();
  RecordReader(const RecordReader&) = delete;
  RecordReader& operator=(const RecordReader&) = delete;

  [[nodiscard]] State state() const { return state_; }

  // Where the next received bytes go, in order; for one scattered read. Empty unless state() is kReceiving. Valid until
  // the next non-const call.
  [[nodiscard]] std::span<const MutBytes> rx_buffers();
  // The first n bytes of those buffers were filled. Precondition: n is not more than they hold.
  void rx_commit(std::size_t n);
  // The stream ended. An Error when that was inside a record; nothing between two records.
  [[nodiscard]] std::optional<Error> rx_end() const;

  // kNeedBuffer: what the whole record may need, once for each record: its size when it comes in one fragment, else
  // max_record_bytes. (A record that took a larger buffer with each fragment would wait for memory with memory in its
  // hands, and some of them could wait for each other.)
  [[nodiscard]] std::size_t wanted_bytes() const { return wanted_bytes_; }
  // Lends the buffer of the current record until next(). Precondition: state() is kNeedBuffer, buffer.size() is at
  // least wanted_bytes().
  void give_buffer(MutBytes buffer);

  // Gives the system the pages of the read-ahead until more is received, if it is empty: for an idle connection.
  void rest();

  // kRecord: the whole record, in the lent buffer.
  [[nodiscard]] MutBytes record() const { return buffer_.first(received_bytes_); }
  // Hands the buffer back to the owner and goes on. Precondition: state() is kRecord.
  void next();

  // kError only.
  [[nodiscard]] const Error& error() const { return error_; }

 private:
  static constexpr std::size_t kHeaderBytes = 4;

  void advance();
  // Takes one fragment header from the read-ahead. False: it is not complete yet.
  bool take_header();
  void take_read_ahead();
  void start_record();
  void fail(Errc code);

  RecordOptions options_;
  MutBytes pages_;
  MutBytes ahead_;               // in them
  std::size_t ahead_begin_ = 0;  // ahead_[begin, end) is received and not yet looked at
  std::size_t ahead_end_ = 0;
  MutBytes buffer_{};  // lent; empty before the first fragment with content
  std::size_t received_bytes_ = 0;
  std::size_t wanted_bytes_ = 0;
  std::size_t fragment_left_ = 0;
  bool in_fragment_ = false;
  bool last_fragment_ = false;
  bool started_ = false;  // a header of the current record was seen
  std::size_t empty_fragments_ = 0;
  State state_ = State::kReceiving;
  Error error_{};
  std::array<MutBytes, 2> rx_{};
};

}  // namespace iwarp::gateway
