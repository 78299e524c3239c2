// The messages of RFC 7306 on their way out.
#include "iwarp/base/wire.h"
#include "iwarp/rdmap/transmitter.h"

namespace iwarp::rdmap {
using ddp::UntaggedHeader;

namespace {

// Each is one segment: a header, and nothing of the application behind it.
std::span<std::byte> put(Transmitter::Segment& s, Opcode op, std::uint32_t qn, Msn msn, std::size_t rdmap_bytes) {
  // req: RFC7306-4.1-3 RFC7306-4.1-10
  UntaggedHeader{.last = true, .rsvd_ulp = control_octet(op), .qn = qn, .msn = msn}.write_to(
      std::span{s.octets}.first<UntaggedHeader::kSize>());
  s.header_bytes = UntaggedHeader::kSize + rdmap_bytes;
  return std::span{s.octets}.subspan(UntaggedHeader::kSize, rdmap_bytes);
}

}  // namespace

// A message of its own, in one sequence with the Sends.
void Transmitter::immediate_segment(const RequestMessage& m, Segment& s) {
  const SendWr& wr = sends_.request(m.ticket);
  const Opcode op = wr.solicited ? Opcode::kImmediateSolicited : Opcode::kImmediate;
  // req: RFC7306-4-1 RFC7306-6.3-1 RFC7306-6.3-4 RFC7306-6.3-6 RFC7306-A.3-1
  // req: RFC7306-4.2-1 RFC7306-4.2-2 RFC7306-6.2-1 RFC7306-6.3-5 RFC7306-6.1-1
  store_be(put(s, op, kSendQn, send_msn_, kImmediateBytes), wr.immediate);
  send_msn_.advance();
  ++counters_.immediates;
  s.done = {Done::What::kRequest, m.ticket};
  current_ = std::monostate{};
}

Result<void> Transmitter::atomic_request_segment(const RequestMessage& m, Segment& s) {
  const SendWr& wr = sends_.request(m.ticket);
  const Sge& sink = wr.sges.view()[0];
  if (!stags_.pin_local(sink.lkey, who_.pd, ddp::Access::kLocalWrite, sink.at(0), sink.length).ok)
    return local_error(m.ticket);  // req: RFC7306-8.1-2
  const bool swap = wr.op == SendOp::kCmpSwap;
  // req: RFC7306-5-6 RFC7306-5.1.1-11 RFC7306-5.1.2-3 RFC7306-5.2.1-4 RFC7306-5.2.1-5 RFC7306-5.2.1-6
  AtomicRequest request{.code = static_cast<std::uint8_t>(swap ? AtomicCode::kCmpSwap : AtomicCode::kFetchAdd),
                        .id = atomic_msn_.value,
                        .stag = wr.remote_stag,
                        .to = wr.remote_to,
                        .operands = wr.atomic};
  if (!swap) {  // req: RFC7306-5.2.1-10 RFC7306-5.2.1-11
    request.operands.compare = 0;
    request.operands.compare_mask = ~std::uint64_t{0};
  }
  // In one sequence with the Read Requests. req: RFC7306-5.2-2 RFC7306-5.2.1-19 RFC7306-5.2.1-20 RFC7306-A.1-1
  request.write_to(
      put(s, Opcode::kAtomicRequest, kReadRequestQn, read_msn_, AtomicRequest::kSize).first<AtomicRequest::kSize>());
  read_msn_.advance();
  atomic_msn_.advance();
  ++counters_.atomics;
  s.done = {Done::What::kRequest, m.ticket};
  current_ = std::monostate{};
  return {};
}

// The Atomic is done here, when its turn among the Responses comes: after what was delivered before it, in the order of
// the Requests, and once.
Result<void> Transmitter::atomic_response_segment(const InboundRead& read, Segment& s) {
  const auto& request = std::get<AtomicRequest>(read.request);
  // RFC 7306 has no right of its own: what reads and writes takes both, or the one for nothing else. req: RFC7306-9-1
  using ddp::Access;
  auto p = stags_.pin(request.stag, who_, Access::kRemoteAtomic, request.to, sizeof(std::uint64_t));
  if (!p.ok)
    p = stags_.pin(request.stag, who_, Access::kRemoteRead | Access::kRemoteWrite, request.to, sizeof(std::uint64_t));
  // The address counts, not the TO. req: RFC7306-5.2.1-7 RFC7306-8.2-5 RFC7306-8.2-6
  // req: RFC7306-5.1.1-4 RFC7306-5.1.1-5 RFC7306-5.1.1-7 RFC7306-5.1.2-6 RFC7306-5.1.2-7 RFC7306-5.1.2-9
  const bool aligned = p.ok && reinterpret_cast<std::uintptr_t>(p.pin.bytes().data()) % sizeof(std::uint64_t) == 0;
  if (!aligned) {
    // req: RFC7306-5.1.1-6 RFC7306-5.1.2-8
    const Error error = p.ok ? make_error(Errc::kMisalignedAtomic) : ddp::read_error(p.fault);
    // Without the RDMAP header. req: RFC7306-8.1-3
    error_terminate_ = make_terminate(error, read.ulpdu, UntaggedHeader::kSize + AtomicRequest::kSize, false);
    current_ = std::monostate{};
    return error;
  }
  // req: RFC7306-5.2.2-2 RFC7306-5.2.2-3 RFC7306-5.2.1-16 RFC7306-5.2.1-22
  const AtomicResponse response{request.id, execute(request, p.pin.bytes())};
  // req: RFC7306-5.2.2-4 RFC7306-5.2.2-6 RFC7306-A.2-1
  response.write_to(put(s, Opcode::kAtomicResponse, kAtomicResponseQn, atomic_response_msn_, AtomicResponse::kSize)
                        .first<AtomicResponse::kSize>());
  atomic_response_msn_.advance();
  s.done.what = Done::What::kReadResponse;
  current_ = std::monostate{};
  return {};
}

}  // namespace iwarp::rdmap
