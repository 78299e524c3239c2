#include "iwarp/ddp/untagged_receiver.h"

namespace iwarp::ddp {

Result<std::uint32_t> UntaggedReceiver::check(const UntaggedHeader& h, std::size_t payload_bytes,
                                              std::optional<std::uint64_t> buffer_bytes) const {
  // Each message once, and in order. req: RFC5041-5.3-7 RFC5041-5.3-8 RFC5040-3.1-13
  // req: RFC5041-7.1-5 RFC5041-7.1-10 RFC5041-7.2-10 RFC5041-4.3-9 RFC5041-4.3-10
  if (h.msn != expected_) return make_error(Errc::kUntaggedMsnRange);
  if (!buffer_bytes) return make_error(Errc::kUntaggedNoBuffer);     // req: RFC5041-7.1-2 RFC5041-7.1-6 RFC5041-7.2-9
  if (h.mo != placed_) return make_error(Errc::kUntaggedInvalidMo);  // req: RFC5041-7.1-3 RFC5041-7.2-11
  // req: RFC5041-7.1-4 RFC5041-7.2-12; of a Send: RFC5040-5.3-5 RFC5041-1.2-2
  if (payload_bytes > *buffer_bytes || h.mo > *buffer_bytes - payload_bytes) {
    return make_error(Errc::kUntaggedTooLong);
  }
  return h.mo;
}

std::optional<std::uint32_t> UntaggedReceiver::commit(const UntaggedHeader& h, std::size_t payload_bytes) {
  placed_ += static_cast<std::uint32_t>(payload_bytes);
  // req: RFC5041-4.1-9
  if (!h.last) return std::nullopt;
  const std::uint32_t length = placed_;  // req: RFC5041-5.4-6 RFC5041-5.4-7
  placed_ = 0;
  expected_.advance();  // req: RFC5041-4.3-11
  return length;
}

}  // namespace iwarp::ddp
