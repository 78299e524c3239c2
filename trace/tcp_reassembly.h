// Puts one direction of a captured TCP connection in order: retransmissions, overlaps, reordering, sequence numbers
// that wrap, and octets that the capture lacks. A hole is taken for lost when the receiver has acknowledged what lies
// behind it and the missing segment still does not show up, or when too much waits behind it. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <variant>
#include <vector>

#include "iwarp/base/bytes.h"

namespace iwarp::trace {

class TcpReassembly {
 public:
  // Octets kept behind a hole. Default 1 MiB, some receive windows; lower gives up on slow reordering.
  static constexpr std::size_t kMaxHeldBytes = std::size_t{1} << 20;
  // Packets of the connection, after the acknowledgement, in which a segment may still turn up: capture points with
  // several queues swap packets.
  static constexpr unsigned kGracePackets = 16;

  struct Data {
    ConstBytes bytes;
  };
  struct Lost {
    std::uint64_t bytes;
  };
  struct Fin {};
  using Item = std::variant<Data, Lost, Fin>;

  // The SYN, with its own sequence number. Only if seen is the beginning of the stream known.
  void on_syn(std::uint32_t sequence);
  // A segment; `wire_bytes` > payload.size() when the capture cut it. After each of these calls drain next().
  void on_segment(std::uint32_t sequence, ConstBytes payload, std::size_t wire_bytes, bool fin);
  // The receiver has everything up to here. Call it for each packet of the other direction that has an ACK.
  void on_ack(std::uint32_t acknowledged);
  // Any other packet of the connection.
  void on_other_packet();
  // No more will come: whatever is missing is lost.
  void on_end();
  // More comes after all. Between on_end() and this, nothing waits behind a hole any longer: it is for a caller that
  // has no memory to wait.
  void resume();
  // What comes next in the stream. Spans are valid until the next call of any of these.
  [[nodiscard]] std::optional<Item> next();

  // Sequence number of the SYN, if it was captured: then the stream is known from its first octet.
  [[nodiscard]] std::optional<std::uint32_t> syn() const { return syn_; }
  // Octets of memory.
  [[nodiscard]] std::size_t memory() const { return held_bytes_ + current_.capacity(); }
  // Octets that came more than once.
  [[nodiscard]] std::uint64_t repeated_bytes() const { return repeated_; }

 private:
  struct Held {
    std::vector<std::byte> bytes;
    std::uint64_t wire = 0;
  };
  // Position in the stream, which does not wrap: its low 32 bits are the sequence number.
  [[nodiscard]] std::uint64_t position(std::uint32_t sequence) const;
  void hold(std::uint64_t at, ConstBytes payload, std::uint64_t wire);

  std::optional<std::uint32_t> syn_;
  bool started_ = false;
  std::uint64_t next_ = 0;  // position of the octet that is due
  std::map<std::uint64_t, Held> held_;
  std::size_t held_bytes_ = 0;
  std::optional<std::uint64_t> fin_;
  std::uint64_t acked_ = 0;
  unsigned packets_since_ack_ = 0;
  bool give_up_holes_ = false;
  std::uint64_t lost_ = 0;          // octets just before next_, still to be reported
  std::vector<std::byte> current_;  // what the last item refers to
  std::uint64_t repeated_ = 0;
};

}  // namespace iwarp::trace
