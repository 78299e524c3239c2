// The chunks of a captured SCTP packet (RFC 9260 s3), as far as DDP is concerned. Packets are untrusted and may be cut
// off anywhere. Checksums and verification tags are not looked at. Pure values.
#pragma once

#include <cstdint>
#include <optional>

#include "iwarp/base/bytes.h"

namespace iwarp::trace {

// Types of chunks; others are passed over.
enum class SctpType : std::uint8_t {
  kData = 0,
  kInit = 1,
  kInitAck = 2,
  kAbort = 6,
  kShutdown = 7,
  kShutdownComplete = 14,
};

// One chunk.
struct SctpChunk {
  SctpType type{};              // possibly none of those above
  std::uint8_t flags = 0;       // their meaning depends on the type
  ConstBytes value{};           // behind its header, as much as was captured; into the packet
  std::size_t value_bytes = 0;  // on the wire
};

// A DATA chunk.
struct SctpData {
  bool unordered = false, begins = false, ends = false;  // U, B, E
  std::uint32_t tsn = 0;
  std::uint16_t stream = 0;
  std::uint32_t ppid = 0;
  ConstBytes bytes{};          // user data as captured
  std::size_t wire_bytes = 0;  // and on the wire
};

// An INIT or INIT ACK.
struct SctpInit {
  std::uint32_t tag = 0;                      // of its sender
  std::uint16_t outbound = 0, inbound = 0;    // streams
  std::uint32_t first_tsn = 0;                // of its sender
  std::optional<std::uint32_t> indication{};  // of the adaptation layer
  bool cut = false;                           // not all of it was captured
};

// Takes a packet apart.
class SctpChunks {
 public:
  // From the common header on; `wire_bytes` on the wire.
  SctpChunks(ConstBytes packet, std::size_t wire_bytes);
  // The next chunk; nullopt: no more, or what follows is no chunk.
  [[nodiscard]] std::optional<SctpChunk> next();

 private:
  ConstBytes rest_;
  std::size_t wire_;
};

// nullopt: too short, or its head was not captured.
[[nodiscard]] std::optional<SctpData> parse_data(const SctpChunk& chunk);
[[nodiscard]] std::optional<SctpInit> parse_init(const SctpChunk& chunk);

}  // namespace iwarp::trace
