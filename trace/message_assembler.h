// Groups the DDP segments of one direction into RDMAP messages (RFC 5040, RFC 5041), as an observer: what contradicts
// the order is noted, not refused.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "iwarp/ddp/segment_header.h"
#include "iwarp/rdmap/control.h"

namespace iwarp::trace {

struct Message {
  rdmap::Opcode op{};
  Stag stag{};               // tagged: the target; Send with Invalidate: what to invalidate
  std::uint64_t to = 0;      // tagged: of the first octet seen
  std::uint32_t msn = 0;     // untagged
  std::uint64_t length = 0;  // octets of payload, by the lengths of the FPDUs
  std::uint32_t segments = 0;
  bool complete = true;                       // false: its beginning or its end was not seen
  std::optional<std::uint32_t> expected_msn;  // when another one was due
  std::vector<std::byte> head;                // its first octets

  // Of an untagged message: enough for the largest RPC-over-RDMA header and the RPC header behind it.
  static constexpr std::size_t kKeepBytes = 16384;
  // Of a tagged one, which may carry an RPC message.
  static constexpr std::size_t kKeepTaggedBytes = 4096;
};

class MessageAssembler {
 public:
  // Takes one segment; `seen` is what was captured of the beginning of its `payload_bytes`. Gives the messages that are
  // over now: one that this segment ends, and before it one that it breaks off.
  [[nodiscard]] std::vector<Message> add(const ddp::SegmentHeader& header, rdmap::Opcode op, ConstBytes seen,
                                         std::size_t payload_bytes);
  // Segments may have been lost: gives the messages that were under way, and takes any order next.
  [[nodiscard]] std::vector<Message> interrupt();
  // Octets of memory of the messages that are under way.
  [[nodiscard]] std::size_t memory() const;

 private:
  // Write, Read Response, and the four untagged queues.
  static constexpr std::size_t kGroups = 6;
  struct Group {
    std::optional<Message> open;
    std::optional<std::uint32_t> next_msn = 1;
  };
  std::array<Group, kGroups> groups_{};
};

}  // namespace iwarp::trace
