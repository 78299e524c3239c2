#include "iwarp/trace/fpdu_search.h"

#include "iwarp/base/wire.h"
#include "iwarp/ddp/segment_header.h"
#include "iwarp/mpa/crc32c.h"
#include "iwarp/mpa/fpdu_decoder.h"
#include "iwarp/mpa/fpdu_encoder.h"
#include "iwarp/rdmap/atomic.h"
#include "iwarp/rdmap/control.h"
#include "iwarp/rdmap/read_request.h"

namespace iwarp::trace {
namespace {

constexpr int kChain = 3;
// The longest header that is looked at: length and untagged header.
constexpr std::size_t kHeadBytes = mpa::kLengthBytes + ddp::UntaggedHeader::kSize;

enum class Verdict { kNo, kUndecided, kYes };

// Stricter than a receiver: bits that every known sender leaves zero must be zero.
bool plausible(ConstBytes head, std::size_t ulpdu_bytes) {
  constexpr std::byte kReservedDdp{0x3C}, kReservedRdmap{0x30};
  if (ulpdu_bytes < ddp::TaggedHeader::kSize) return false;
  const ConstBytes ulpdu = head.subspan(mpa::kLengthBytes);
  if (ulpdu_bytes < ddp::expected_header_size(ulpdu)) return false;
  const auto header = ddp::parse_segment_header(ulpdu);
  if (!header || (ulpdu[0] & kReservedDdp) != std::byte{0} || (ulpdu[1] & kReservedRdmap) != std::byte{0}) return false;
  const auto op = rdmap::check_control(*header, rdmap::Extensions::kRfc7306);
  if (!op) return false;
  if (*op == rdmap::Opcode::kReadRequest) return ulpdu_bytes == ddp::UntaggedHeader::kSize + rdmap::ReadRequest::kSize;
  if (*op == rdmap::Opcode::kAtomicRequest)
    return ulpdu_bytes == ddp::UntaggedHeader::kSize + rdmap::AtomicRequest::kSize;
  if (*op == rdmap::Opcode::kAtomicResponse)
    return ulpdu_bytes == ddp::UntaggedHeader::kSize + rdmap::AtomicResponse::kSize;
  return !rdmap::is_immediate(*op) || ulpdu_bytes == ddp::UntaggedHeader::kSize + rdmap::kImmediateBytes;
}

bool crc_fits(ConstBytes fpdu) {
  return mpa::crc32c(fpdu.first(fpdu.size() - mpa::kCrcBytes)) == mpa::load_crc(fpdu.last<mpa::kCrcBytes>());
}

struct Judged {
  Verdict verdict = Verdict::kNo;
  std::optional<bool> crc;
};

// Whether an FPDU starts at rest[0].
Judged judge(ConstBytes rest, std::optional<bool> crc, bool at_end) {
  for (int n = 0; n < kChain; ++n) {
    if (at_end && rest.empty() && n > 0) break;
    if (rest.size() < kHeadBytes) return {at_end ? Verdict::kNo : Verdict::kUndecided, {}};
    const auto layout = mpa::FpduDecoder::peek(rest);
    if (!plausible(rest.first(kHeadBytes), layout->ulpdu_bytes)) return {};
    if (rest.size() < layout->fpdu_bytes) return {at_end ? Verdict::kNo : Verdict::kUndecided, {}};
    if (crc.value_or(true) && crc_fits(rest.first(layout->fpdu_bytes))) return {Verdict::kYes, true};
    if (crc.value_or(false)) return {};
    rest = rest.subspan(layout->fpdu_bytes);
  }
  return {Verdict::kYes, false};
}

}  // namespace

FpduSearch find_fpdu(ConstBytes bytes, std::optional<bool> crc, bool at_end) {
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    const Judged j = judge(bytes.subspan(at), crc, at_end);
    if (j.verdict == Verdict::kYes) return {at, true, j.crc};
    if (j.verdict == Verdict::kUndecided) return {at, false, {}};
  }
  return {bytes.size(), false, {}};
}

}  // namespace iwarp::trace
