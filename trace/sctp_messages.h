// The messages of one direction of an SCTP association, as an observer sees them: chunks that come twice count once,
// fragments are put together, in whatever order they come. Not thread-safe.
//
// Memory: kMaxBytes of fragments that wait for others, kMaxSeen TSNs.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "iwarp/trace/sctp_packet.h"

namespace iwarp::trace {

// A whole message.
struct SctpMessage {
  std::uint16_t stream = 0;
  std::uint32_t ppid = 0;
  bool ordered = false;            // U=0
  std::uint32_t fragments = 1;     // chunks that it came in
  std::vector<std::byte> bytes{};  // as captured: what a chunk lacks ends it
  std::size_t wire_bytes = 0;      // and on the wire
};

class SctpMessages {
 public:
  static constexpr std::size_t kMaxBytes = std::size_t{1} << 20;
  static constexpr std::size_t kMaxSeen = 8192;

  // A chunk has come: the message that it completes.
  [[nodiscard]] std::optional<SctpMessage> add(const SctpData& chunk);
  // Octets of fragments that were dropped since the last call, as the rest of their messages did not come.
  [[nodiscard]] std::uint64_t take_dropped();
  // Nothing more comes: drops what waits.
  void finish() { drop(); }
  // Octets of memory, about.
  [[nodiscard]] std::size_t memory() const { return bytes_ + seen_.size() * 64; }

 private:
  struct Fragment {
    SctpData head;  // its span is not used
    std::vector<std::byte> bytes;
  };
  [[nodiscard]] bool is_new(std::uint32_t tsn);
  void drop();

  std::set<std::uint32_t> seen_;
  std::deque<std::uint32_t> in_order_of_arrival_;
  std::map<std::uint32_t, Fragment> fragments_;  // by TSN
  std::size_t bytes_ = 0;
  std::uint64_t dropped_ = 0;
};

}  // namespace iwarp::trace
