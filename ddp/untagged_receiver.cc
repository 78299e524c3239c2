#include "iwarp/ddp/untagged_receiver.h"

namespace iwarp::ddp {

Result<std::uint32_t> UntaggedReceiver::check(const UntaggedHeader& h, std::size_t payload_bytes,
                                              std::optional<std::uint64_t> buffer_bytes) const {
  if (h.msn != expected_)
    return make_error(Errc::kUntaggedMsnRange);                      // req: RFC5041-7.1-5 RFC5041-4.3-9 RFC5041-4.3-10
  if (!buffer_bytes) return make_error(Errc::kUntaggedNoBuffer);     // req: RFC5041-7.1-2
  if (h.mo != placed_) return make_error(Errc::kUntaggedInvalidMo);  // req: RFC5041-7.1-3
  if (payload_bytes > *buffer_bytes || h.mo > *buffer_bytes - payload_bytes) {  // req: RFC5041-7.1-4
    return make_error(Errc::kUntaggedTooLong);
  }
  return h.mo;
}

std::optional<std::uint32_t> UntaggedReceiver::commit(const UntaggedHeader& h, std::size_t payload_bytes) {
  placed_ += static_cast<std::uint32_t>(payload_bytes);
  mid_message_ = !h.last;
  if (!h.last) return std::nullopt;
  const std::uint32_t length = placed_;  // req: RFC5041-5.4-6
  placed_ = 0;
  expected_.advance();  // req: RFC5041-4.3-11
  return length;
}

}  // namespace iwarp::ddp
