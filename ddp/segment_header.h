// DDP segment headers (RFC 5041 s4). Pure codec: parse() checks presence and the DDP version; what the stream's state
// allows is checked by the receivers. DDP carries the upper layer's octets (RsvdULP) without looking at them.
#pragma once

#include <variant>

#include "iwarp/base/bytes.h"
#include "iwarp/base/ids.h"
#include "iwarp/base/result.h"

namespace iwarp::ddp {

inline constexpr std::uint8_t kDdpVersion = 1;

// 0 control: T=1 0x80, L 0x40, Rsvd 0x3C, DV 0x03 | 1 RsvdULP | 2 STag | 6 TO
struct TaggedHeader {
  static constexpr std::size_t kSize = 14;

  bool last = true;
  std::uint8_t rsvd_ulp = 0;
  Stag stag{};
  std::uint64_t to = 0;

  void write_to(std::span<std::byte, kSize> out) const;
  friend bool operator==(const TaggedHeader&, const TaggedHeader&) = default;
};

// 0 control: T=0, L 0x40, Rsvd 0x3C, DV 0x03 | 1 RsvdULP[0:7] | 2 RsvdULP[8:39] | 6 QN | 10 MSN | 14 MO
struct UntaggedHeader {
  static constexpr std::size_t kSize = 18;

  bool last = true;
  std::uint8_t rsvd_ulp = 0;
  std::uint32_t rsvd_ulp_tail = 0;
  std::uint32_t qn = 0;
  Msn msn{};
  std::uint32_t mo = 0;

  void write_to(std::span<std::byte, kSize> out) const;
  friend bool operator==(const UntaggedHeader&, const UntaggedHeader&) = default;
};

using SegmentHeader = std::variant<TaggedHeader, UntaggedHeader>;

[[nodiscard]] constexpr std::size_t header_size(const SegmentHeader& h) {
  return std::holds_alternative<TaggedHeader>(h) ? TaggedHeader::kSize : UntaggedHeader::kSize;
}
// How many octets of a ULPDU its DDP header takes, told from its first octet. Precondition: !ulpdu.empty().
[[nodiscard]] std::size_t expected_header_size(ConstBytes ulpdu);

// Reads the header at the start of a ULPDU. Errors: kFpduLength when the ULPDU is shorter than the header its T bit
// promises, kDdpVersionTagged or kDdpVersionUntagged when DV is not 1.
[[nodiscard]] Result<SegmentHeader> parse_segment_header(ConstBytes ulpdu);
// The same into `out`, which stays as it is on error.
[[nodiscard]] Result<void> parse_segment_header(ConstBytes ulpdu, SegmentHeader& out);

}  // namespace iwarp::ddp
