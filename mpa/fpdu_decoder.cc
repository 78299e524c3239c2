#include "iwarp/mpa/fpdu_decoder.h"

#include <cassert>

#include "iwarp/base/wire.h"
#include "iwarp/mpa/crc32c.h"
#include "iwarp/mpa/fpdu_encoder.h"
#include "iwarp/mpa/markers.h"

namespace iwarp::mpa {

FpduDecoder::FpduDecoder(bool crc_enabled, bool markers, bool skip_crc_check_for_fuzzing)
    : crc_enabled_(crc_enabled), markers_(markers), check_crc_(crc_enabled && !skip_crc_check_for_fuzzing) {}

std::optional<FpduDecoder::Layout> FpduDecoder::peek(ConstBytes bytes) {
  const auto head = FixedView<kLengthBytes>::of(bytes);
  if (!head) return std::nullopt;
  const std::size_t ulpdu = head->be<std::uint16_t, 0>();  // req: RFC5044-5.2-1, RFC5044-6-4, RFC5044-3-6
  return Layout{ulpdu, mpa::fpdu_bytes(ulpdu), pad_bytes(ulpdu) + kCrcBytes};
}

DecodeResult FpduDecoder::decode(MutBytes bytes) {
  if (error_) return *error_;  // req: RFC5044-8-13
  if (markers_) return decode_marked(bytes);
  const auto layout = peek(bytes);
  if (!layout) return NeedMore{kLengthBytes};  // req: RFC5044-5.1-6, RFC5044-A.4-1
  // req: RFC5044-1.2-1, RFC5044-A.4-2
  if (bytes.size() < layout->fpdu_bytes) return NeedMore{layout->fpdu_bytes};  // req: RFC5044-6-8
  const ConstBytes fpdu = bytes.first(layout->fpdu_bytes);
  const ConstBytes covered = fpdu.first(fpdu.size() - kCrcBytes);  // pad as received included, req: RFC5044-4.1-6
  // First of all, whatever the FPDU says. req: RFC5044-6-1, RFC5044-6-2, RFC5044-4.4-10, RFC5044-4.4-21, RFC5044-4.4-22
  // With CRC off the field means nothing. req: RFC5044-4.1-9, RFC5044-7.1.1-14, RFC5044-7.1.1-18
  if (check_crc_ && crc32c(covered) != load_crc(fpdu.last<kCrcBytes>())) {  // req: RFC5044-4.4-12, RFC5044-6-5
    error_ = make_error(Errc::kCrcMismatch);  // req: RFC5044-4.4-23, RFC5044-6-3, RFC5044-8-2, RFC5044-9.1-1
    return *error_;
  }
  stream_position_ += layout->fpdu_bytes;
  // req: RFC5044-3-9, RFC5044-4.3-21, RFC5044-4.3-22, RFC5044-4.1-2
  return FpduFrame{fpdu.subspan(kLengthBytes, layout->ulpdu_bytes), layout->fpdu_bytes};  // req: RFC5044-4.3-23
}

DecodeResult FpduDecoder::decode_marked(MutBytes bytes) {
  const std::size_t lead = leading_marker_bytes(stream_position_);  // req: RFC5044-4.3-12, RFC5044-4.3-14
  if (bytes.size() < lead + kLengthBytes) return NeedMore{lead + kLengthBytes};
  const Layout layout = *peek(bytes.subspan(lead));
  const std::size_t size = layout.fpdu_bytes + marker_bytes(stream_position_, layout.fpdu_bytes);
  if (bytes.size() < size) return NeedMore{size};
  const MutBytes fpdu = bytes.first(size);
  // Over the octets as they came, so with Markers. req: RFC5044-4.2-4, RFC5044-4.3-1, RFC5044-4.3-9
  if (check_crc_ && crc32c(fpdu.first(size - kCrcBytes)) != load_crc(fpdu.last<kCrcBytes>())) {
    error_ = make_error(Errc::kCrcMismatch);
    return *error_;
  }
  // The start follows from the lengths before it; Markers have to say the same.
  if (!markers_agree(fpdu, stream_position_)) {  // req: RFC5044-8-3, RFC5044-8-6, RFC5044-8-8, RFC5044-4.3-4
    error_ = make_error(Errc::kMarkerMismatch);
    return *error_;
  }
  const MutBytes unmarked = cut_markers(fpdu, stream_position_);  // req: RFC5044-4.3-20, RFC5044-4.4-24, RFC5044-4.4-25
  stream_position_ += size;                                       // req: RFC5044-4.3-6
  return FpduFrame{unmarked.subspan(kLengthBytes, layout.ulpdu_bytes), size};
}

bool FpduDecoder::has_begun(std::size_t bytes) const {
  return bytes > (markers_ ? leading_marker_bytes(stream_position_) : 0);  // req: RFC5044-4.3-8
}

void FpduDecoder::skip(const Layout& layout) {
  assert(!crc_enabled_ && !markers_ && !error_);
  stream_position_ += layout.fpdu_bytes;
}

}  // namespace iwarp::mpa
