#include "iwarp/mpa/markers.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>

#include "iwarp/base/wire.h"
#include "iwarp/mpa/crc32c.h"
#include "iwarp/mpa/fpdu_encoder.h"

namespace iwarp::mpa {
namespace {

constexpr std::uint16_t kPointerBits = 0xFFFC;  // the low two count as zero. req: RFC5044-4.2-7, RFC5044-4.3-11

// FPDUPTR of the Marker `at` octets behind the beginning of an FPDU whose ULPDU_Length is `lead` octets behind it: all
// multiples of four. req: RFC5044-4.2-6
std::uint16_t pointer(std::size_t at, std::size_t lead) {
  // req: RFC5044-4.2-5, RFC5044-4.3-5, RFC5044-4.3-16, RFC5044-4.3-17, RFC5044-4.3-19
  return at < lead ? 0 : static_cast<std::uint16_t>(at - lead);  // req: RFC5044-4.3-7, RFC5044-4.3-18
}

}  // namespace

void MarkedFpduWriter::append_marker_if_due() {
  if (octets_to_marker(position_ + written_) != 0) return;  // req: RFC5044-4.3-3, RFC5044-4.3-10
  FixedWriter<kMarkerBytes> marker{out_.subspan(written_).first<kMarkerBytes>()};
  marker.be<0>(std::uint16_t{0});                                    // req: RFC5044-4.2-3
  marker.be<2>(pointer(written_, leading_marker_bytes(position_)));  // req: RFC5044-4.2-1, RFC5044-4.2-2
  written_ += kMarkerBytes;
}

void MarkedFpduWriter::append(ConstBytes octets) {
  while (!octets.empty()) {
    append_marker_if_due();
    const std::size_t n = std::min(octets.size(), octets_to_marker(position_ + written_));
    std::memcpy(out_.data() + written_, octets.data(), n);
    written_ += n;
    octets = octets.subspan(n);
  }
}

void MarkedFpduWriter::finish(bool crc_enabled) {
  static constexpr std::array<std::byte, 3> kZeros{};
  append(ConstBytes(kZeros).first(static_cast<std::size_t>(-(position_ + written_) % 4)));
  append_marker_if_due();  // before the CRC field: of this FPDU. req: RFC5044-4.4-17
  assert(out_.size() - written_ == kCrcBytes);
  const std::span<std::byte, kCrcBytes> field = out_.last<kCrcBytes>();
  std::fill(field.begin(), field.end(), std::byte{0});
  if (!crc_enabled) return;
  Crc32c crc;
  crc.update(
      out_.first(written_));  // all Markers, the first octet being one or not. req: RFC5044-4.3-1, RFC5044-4.4-19
  crc.write_to(field);        // req: RFC5044-4.3-9, RFC5044-4.4-18
}

bool markers_agree(ConstBytes fpdu, std::uint64_t position) {
  const std::size_t lead = leading_marker_bytes(position);
  // All of them, though RFC 5044 s8 asks for one. req: RFC5044-8-9, RFC5044-5.2-2
  for (std::size_t at = octets_to_marker(position); at < fpdu.size(); at += kMarkerInterval) {
    const auto marker = FixedView<kMarkerBytes>::of(fpdu.subspan(at));
    // RESERVED is not looked at. req: RFC5044-4.2-4
    if ((marker->be<std::uint16_t, 2>() & kPointerBits) != (pointer(at, lead) & kPointerBits)) return false;
  }
  return true;
}

MutBytes cut_markers(MutBytes fpdu, std::uint64_t position) {
  const MutBytes whole = fpdu.subspan(leading_marker_bytes(position));
  position += leading_marker_bytes(position);
  std::size_t kept = std::min(whole.size(), octets_to_marker(position));
  for (std::size_t from = kept; from < whole.size();) {
    from += std::min(kMarkerBytes, whole.size() - from);
    const std::size_t n = std::min(whole.size() - from, kMarkerInterval - kMarkerBytes);
    std::memmove(whole.data() + kept, whole.data() + from, n);
    kept += n;
    from += n;
  }
  return whole.first(kept);
}

}  // namespace iwarp::mpa
