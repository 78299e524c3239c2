// RDMAP Terminate (RFC 5040 s4.8, Figures 7 to 10).
//
// 0 layer(4) etype(4) | 1 code | 2 M 0x80, D 0x40, R 0x20, reserved | 3 reserved | then, as flagged: DDP Segment Length
// (2), Terminated DDP Header (14 tagged, 18 untagged), Terminated RDMA Header (28).
//
// Linux siw lays the first three octets out with C bitfields, which on little-endian hosts swaps layer with etype and
// M,D,R to 0x01, 0x02, 0x04; it also reports the payload length where the RFC has the segment length. parse() tells the
// two orders apart.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "iwarp/base/bytes.h"
#include "iwarp/base/error.h"

namespace iwarp::rdmap {

// Bit order of a received Terminate.
enum class TerminateOrder : std::uint8_t { kRfc, kSiw };

struct TerminateMessage {
  static constexpr std::size_t kMaxSize = 4 + 2 + 18 + 28;  // RFC 5040 s5.4: a receiver always has this much room

  TerminateCode code{};                         // what went wrong
  std::optional<std::uint16_t> segment_length;  // M: length of the offending DDP segment, header included
  std::array<std::byte, 18> ddp_header{};       // D
  std::uint8_t ddp_header_bytes = 0;            // 0, 14 or 18
  std::array<std::byte, 28> rdmap_header{};     // R
  bool has_rdmap_header = false;                // whether rdmap_header is there
  TerminateOrder order = TerminateOrder::kRfc;  // as parsed

  // Octets that write_to() writes.
  [[nodiscard]] std::size_t size() const;
  // Writes in RFC order whatever `order` says. Precondition: out.size() >= size().
  void write_to(MutBytes out) const;
  // nullopt when the fixed part is incomplete. A cut or missing optional part is dropped, trailing octets are tolerated
  // (s7.1).
  [[nodiscard]] static std::optional<TerminateMessage> parse(ConstBytes in);
  // "1/2/2 no buffer posted for an untagged message"
  [[nodiscard]] std::string to_string() const;
};

// The Terminate owed for `error` caused by a segment whose ULPDU starts with `ulpdu_head` and is `ulpdu_bytes` long
// (empty: no segment). Follows Figure 10: which of M, D and R are set depends on the layer; `read_request` tells that R
// applies.
[[nodiscard]] TerminateMessage make_terminate(const Error& error, ConstBytes ulpdu_head, std::size_t ulpdu_bytes,
                                              bool read_request);

// Standard text of a code, e.g. "invalid STag"; "unknown error" for others. Never null.
[[nodiscard]] const char* describe(TerminateCode code);

}  // namespace iwarp::rdmap
