// The messages of RFC 7306 on their way in.
#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "iwarp/base/wire.h"
#include "iwarp/rdmap/receiver.h"

namespace iwarp::rdmap {
using ddp::Access;
using ddp::UntaggedHeader;

// Delivered like a Send, behind all that came before it, in one sequence with them.
Result<void> Receiver::end_immediate(const UntaggedHeader& h) {
  const auto length = send_rx_.commit(h, payload_bytes_);  // req: RFC7306-6.3-3 RFC7306-7-1 RFC7306-7-5
  if (!length) return {};
  Completion c;
  // req: RFC7306-4.1-4: of the Invalidate STag field nothing is looked at
  c.solicited = solicited(opcode_);
  c.has_immediate = *length == kImmediateBytes;
  if (!c.has_immediate) {  // req: RFC7306-6.3-7
    c.status = Errc::kMalformedImmediate;
    recvs_.complete_current(c);
    return make_error(Errc::kMalformedImmediate);
  }
  ++counters_.immediates;
  c.byte_len = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(std::exchange(written_, 0), std::numeric_limits<std::uint32_t>::max()));
  c.immediate = load_be<std::uint64_t>(immediate_);  // req: RFC7306-6.1-2 RFC7306-6-2 RFC7306-6.2-1
  recvs_.complete_current(c);                        // req: RFC7306-6.4-1 RFC7306-7-6
  return {};
}

// The application hears of it only when it cannot be done. req: RFC7306-5.2.1-17
Result<void> Receiver::end_atomic_request(const UntaggedHeader& h) {
  const auto length = read_request_rx_.commit(h, payload_bytes_);
  if (!length) return {};
  const auto request = AtomicRequest::parse(ConstBytes{internal_}.first(*length));
  if (!request) return make_error(Errc::kMalformedAtomic);  // req: RFC7306-4.2-3
  if (!request->known())
    return make_error(Errc::kRdmapOpcode, "Atomic Request with an unknown AOpCode");  // req: RFC7306-5.2.1-18
  ++counters_.atomics;
  InboundRead read;
  read.request = *request;
  // Delivered, and all before it; what comes behind it need not wait for its Response. req: RFC7306-5.4-4 RFC7306-5.4-6
  // req: RFC7306-7-13 RFC7306-7-14 RFC7306-7-4 RFC7306-5.4-5 RFC7306-5.4-7
  push_inbound(h, read);
  return {};
}

Result<void> Receiver::end_atomic_response(const UntaggedHeader& h) {
  const auto length = atomic_response_rx_.commit(h, payload_bytes_);
  if (!length) return {};
  const auto response = AtomicResponse::parse(ConstBytes{atomic_response_}.first(*length));
  // Requests are numbered as their Responses are. req: RFC7306-4.2-4 RFC7306-5.2.2-10
  if (!response || response->id != h.msn.value) return make_error(Errc::kMalformedAtomic);
  const Sge& sink = sends_.oldest_atomic()->sges.view()[0];
  const auto p = stags_.pin_local(sink.lkey, who_.pd, Access::kLocalWrite, sink.at(0), sink.length);
  if (!p.ok) return make_error(Errc::kDdpCatastrophic, "sink of an Atomic is not registered for local write");
  std::memcpy(p.pin.bytes().data(), &response->original, sizeof response->original);
  sends_.atomic_done();  // req: RFC7306-5.2.2-9
  return {};
}

}  // namespace iwarp::rdmap
