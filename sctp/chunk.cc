#include "iwarp/sctp/chunk.h"

#include <algorithm>

#include "iwarp/base/wire.h"

namespace iwarp::sctp {
namespace {

constexpr std::size_t kSackBytes = 20;  // a SACK chunk with one gap block: 16 and 4

}  // namespace

Result<void> check_indication(std::optional<std::uint32_t> peers) {
  // req: RFC5043-11.1-2, RFC5043-11.1-3, RFC5043-11.1-5, RFC5043-7.1-2
  if (!peers) return make_error(Errc::kAdaptation, "peer has no adaptation indication: it does not know DDP over SCTP");
  if (*peers != kDdpIndication) return make_error(Errc::kAdaptation);  // req: RFC5043-5.1-5, RFC5043-11.1-4
  return {};
}

std::size_t max_segment_bytes(std::size_t fragmentation_point) {
  constexpr std::size_t kBeside = kSsnBytes + kSackBytes;  // req: RFC5043-9-6
  const std::size_t room = fragmentation_point > kBeside ? fragmentation_point - kBeside : 0;
  return std::max(room, kMinMessageLimit);  // req: RFC5043-9-2, RFC5043-9-3
}

Result<DdpSsn> parse_ssn(ConstBytes message) {
  const auto view = FixedView<kSsnBytes>::of(message);  // req: RFC5043-5.2.1-1, RFC5043-5.2.2-1
  if (!view) return make_error(Errc::kSessionSequence, "Data Chunk too short for a DDP-SSN");
  return DdpSsn{view->be<std::uint16_t, 0>()};
}

void write_ssn(DdpSsn ssn, MutBytes out) {
  store_be<std::uint16_t>(out, ssn.value);
}

}  // namespace iwarp::sctp
