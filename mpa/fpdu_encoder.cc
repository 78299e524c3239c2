#include "iwarp/mpa/fpdu_encoder.h"

#include <algorithm>
#include <cassert>

#include "iwarp/base/wire.h"
#include "iwarp/mpa/markers.h"

namespace iwarp::mpa {
namespace {

constexpr std::size_t kOverheadBytes = kLengthBytes + kCrcBytes;
constexpr std::size_t k16kFpduBytes = 16384;

// The longest ULPDU whose FPDU is at most `bytes` long and needs no pad.
constexpr std::size_t unpadded_ulpdu(std::size_t bytes) {
  return bytes < kOverheadBytes + 4 ? 0 : bytes - bytes % 4 - kOverheadBytes;  // req: RFC5044-4.5-3, RFC5044-4.5-1
}

// The octets of Markers that `bytes` of the stream hold at worst: one begins in every 512, whole or not.
constexpr std::size_t room_for_markers(std::size_t bytes) {
  return kMarkerBytes * ((bytes + kMarkerInterval - 1) / kMarkerInterval);  // req: RFC5044-4.5-2
}

}  // namespace

void write_length(std::span<std::byte, kLengthBytes> out, std::size_t ulpdu_bytes) {
  assert(ulpdu_bytes <= kMaxSendUlpduBytes);
  store_be(out, static_cast<std::uint16_t>(ulpdu_bytes));
}

// req: RFC5044-3-1, RFC5044-4.1-1  one ULPDU, one length, one trailer
FpduTrailer make_trailer(ConstBytes length_and_header, std::span<const ConstBytes> payload, bool crc_enabled) {
  assert(length_and_header.size() >= kLengthBytes);
  std::size_t bytes = length_and_header.size();
  for (const ConstBytes piece : payload) bytes += piece.size();
  if (!crc_enabled) return make_trailer(nullptr, bytes - kLengthBytes);
  Crc32c crc;
  crc.update(length_and_header);  // req: RFC5044-4.4-16
  for (const ConstBytes piece : payload) crc.update(piece);
  return make_trailer(&crc, bytes - kLengthBytes);
}

FpduTrailer make_trailer(const Crc32c* crc_or_null, std::size_t ulpdu_bytes) {
  FpduTrailer trailer;  // all zero: the pad (req: RFC5044-4.1-5) and, with CRC off, the field that is sent all the same
                        // (req: RFC5044-4.4-13)
  const std::size_t pad = pad_bytes(ulpdu_bytes);
  trailer.size = pad + kCrcBytes;  // req: RFC5044-4.1-8
  if (crc_or_null != nullptr) {
    Crc32c crc = *crc_or_null;
    if (pad > 0) crc.update(ConstBytes(trailer.bytes).first(pad));
    // req: RFC5044-4.4-1, RFC5044-4.4-9, RFC5044-4.4-14, RFC5044-4.1-7
    crc.write_to(std::span<std::byte, kCrcBytes>(trailer.bytes.data() + pad, kCrcBytes));  // req: RFC5044-4.4-20
  }
  return trailer;
}

std::size_t mulpdu_for(FpduPolicy policy, std::size_t emss, bool markers) {
  std::size_t fpdu = 0;
  switch (policy) {
    case FpduPolicy::kEmss:
      fpdu = emss;
      break;
    case FpduPolicy::k16k:
      fpdu = k16kFpduBytes;
      break;
    case FpduPolicy::kMax:
      fpdu = kMaxSendUlpduBytes + kOverheadBytes;
      markers = false;  // its bound is of the ULPDU, and FPDUPTR was made for it
      break;
  }
  if (markers) fpdu -= room_for_markers(fpdu);
  // req: RFC5044-3-4, RFC5044-4.5-6, RFC5044-3-5, RFC5044-4.5-7, RFC5044-4.5-8
  return std::clamp(unpadded_ulpdu(fpdu), kMinMulpduBytes, unpadded_ulpdu(kMaxSendUlpduBytes + kOverheadBytes));
}

}  // namespace iwarp::mpa
