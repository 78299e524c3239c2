#include "iwarp/ddp/segment_header.h"

#include "iwarp/base/wire.h"

namespace iwarp::ddp {
namespace {

constexpr std::uint8_t kTagged = 0x80;
constexpr std::uint8_t kLast = 0x40;
constexpr std::uint8_t kVersionMask = 0x03;

std::uint8_t control(bool tagged, bool last) {
  // req: RFC5040-4.1-3 RFC5041-4.1-1
  // req: RFC5044-3-15
  return static_cast<std::uint8_t>((tagged ? kTagged : 0) | (last ? kLast : 0) |
                                   kDdpVersion);  // req: RFC5041-4.1-10 RFC5041-4.1-12
}

}  // namespace

// req: RFC5041-4.2-1 RFC5041-4-1 RFC5041-4.2-2
void TaggedHeader::write_to(std::span<std::byte, kSize> out) const {
  FixedWriter<kSize> w{out};
  w.be<0>(control(true, last));
  w.be<1>(rsvd_ulp);  // req: RFC5041-4.2-3
  w.be<2>(raw(stag));
  w.be<6>(to);
}

// req: RFC5041-4.3-1 RFC5041-4.3-2
void UntaggedHeader::write_to(std::span<std::byte, kSize> out) const {
  FixedWriter<kSize> w{out};
  w.be<0>(control(false, last));
  w.be<1>(rsvd_ulp);  // req: RFC5041-4.3-3
  // req: RFC5040-3.1-10
  w.be<2>(rsvd_ulp_tail);
  w.be<6>(qn);
  w.be<10>(msn.value);
  w.be<14>(mo);
}

std::size_t expected_header_size(ConstBytes ulpdu) {
  return (std::to_integer<std::uint8_t>(ulpdu[0]) & kTagged) != 0 ? TaggedHeader::kSize : UntaggedHeader::kSize;
}

Result<SegmentHeader> parse_segment_header(ConstBytes ulpdu) {
  SegmentHeader header;
  if (auto ok = parse_segment_header(ulpdu, header); !ok) return ok.error();
  return header;
}

Result<void> parse_segment_header(ConstBytes ulpdu, SegmentHeader& out) {
  if (ulpdu.empty()) return make_error(Errc::kFpduLength);
  const auto first = std::to_integer<std::uint8_t>(ulpdu[0]);
  const bool tagged = (first & kTagged) != 0;
  const bool last = (first & kLast) != 0;
  if (ulpdu.size() < expected_header_size(ulpdu)) return make_error(Errc::kFpduLength);  // req: RFC5041-4.4-1
  if ((first & kVersionMask) != kDdpVersion) {  // req: RFC5041-4.1-13; Rsvd is not checked: RFC5041-4.1-11
    // req: RFC5041-7.2-7 RFC5041-7.2-13
    return make_error(tagged ? Errc::kDdpVersionTagged : Errc::kDdpVersionUntagged);
  }
  if (tagged) {
    // req: RFC5041-4.2-4
    const auto v = *FixedView<TaggedHeader::kSize>::of(ulpdu);
    auto& h = out.emplace<TaggedHeader>();
    h.last = last;
    h.rsvd_ulp = v.be<std::uint8_t, 1>();
    h.stag = Stag{v.be<std::uint32_t, 2>()};
    h.to = v.be<std::uint64_t, 6>();
  } else {
    const auto v = *FixedView<UntaggedHeader::kSize>::of(ulpdu);
    auto& h = out.emplace<UntaggedHeader>();
    h.last = last;
    h.rsvd_ulp = v.be<std::uint8_t, 1>();
    h.rsvd_ulp_tail = v.be<std::uint32_t, 2>();
    h.qn = v.be<std::uint32_t, 6>();
    h.msn = Msn{v.be<std::uint32_t, 10>()};
    h.mo = v.be<std::uint32_t, 14>();
  }
  return {};
}

}  // namespace iwarp::ddp
