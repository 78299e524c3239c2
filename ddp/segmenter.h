// How a DDP message is cut into segments (RFC 5041 s5.2).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace iwarp::ddp {

struct Cut {
  std::uint32_t payload_bytes;
  bool last;
};

// The next segment of a message of which `remaining` octets are unsent, with headers of `header_bytes` in a ULPDU of at
// most `mulpdu`. Precondition: mulpdu > header_bytes. A zero-length message is one segment with L=1. The MULPDU of MPA
// is such that only the last FPDU of a message needs a pad; DDP knows nothing of that.
[[nodiscard]] constexpr Cut next_cut(std::uint32_t remaining, std::size_t mulpdu, std::size_t header_bytes) {
  const std::size_t room = mulpdu - header_bytes;  // req: RFC5041-5.2-1 RFC5041-5.2-2 RFC5041-1.2-5
  // The rest is the last, and the highest. req: RFC5041-4.1-4 RFC5041-4.1-6 RFC5041-4.1-7 RFC5041-5.2-4 RFC5041-5.2-14
  if (remaining <= room) return {remaining, true};
  return {static_cast<std::uint32_t>(room), false};  // req: RFC5041-4.1-5 RFC5041-5.2-9 RFC5041-5.2-12
}

}  // namespace iwarp::ddp
