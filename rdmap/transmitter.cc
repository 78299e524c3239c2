#include "iwarp/rdmap/transmitter.h"

#include <algorithm>
#include <cstring>

#include "iwarp/ddp/segmenter.h"

namespace iwarp::rdmap {
using ddp::TaggedHeader;
using ddp::UntaggedHeader;

namespace {

void put(Transmitter::Segment& s, const TaggedHeader& h) {
  h.write_to(std::span{s.octets}.first<TaggedHeader::kSize>());
  s.header_bytes = TaggedHeader::kSize;
}
void put(Transmitter::Segment& s, const UntaggedHeader& h) {
  h.write_to(std::span{s.octets}.first<UntaggedHeader::kSize>());
  s.header_bytes = UntaggedHeader::kSize;
}
// req: RFC5040-4-3
void put(Transmitter::Segment& s, const ReadRequest& r) {
  r.write_to(std::span{s.octets}.subspan<UntaggedHeader::kSize, ReadRequest::kSize>());
  s.header_bytes += ReadRequest::kSize;
}

Opcode opcode_of(const SendWr& wr) {
  switch (wr.op) {
    case SendOp::kSend:
      return wr.solicited ? Opcode::kSendSolicited : Opcode::kSend;
    case SendOp::kSendInvalidate:
      return wr.solicited ? Opcode::kSendSolicitedInvalidate : Opcode::kSendInvalidate;
    case SendOp::kSendImmediate:
      return wr.solicited ? Opcode::kSendSolicitedWithImmediate : Opcode::kSendWithImmediate;
    case SendOp::kWrite:
    case SendOp::kWriteImmediate:
      return Opcode::kWrite;
    case SendOp::kRead:
    case SendOp::kReadInvalidate:
      return Opcode::kReadRequest;
    case SendOp::kLocalInvalidate:  // never on the wire
      break;
    case SendOp::kImmediate:
      return wr.solicited ? Opcode::kImmediateSolicited : Opcode::kImmediate;
    case SendOp::kFetchAdd:
    case SendOp::kCmpSwap:
      return Opcode::kAtomicRequest;
  }
  return Opcode::kSend;
}

// STag of messages that reach no memory: the RTR, a wake, zero-length Writes and Reads. Never 0, which Chelsio hardware
// refuses even there.
constexpr Stag kRtrStag{1};
Stag named(Stag stag, std::uint32_t octets) {
  return octets == 0 && stag == Stag{} ? kRtrStag : stag;
}

// The Invalidate STag field of a Send.
std::uint32_t tail_of(const SendWr& wr) {
  if (wr.op == SendOp::kSendInvalidate) return raw(wr.remote_stag);
  return wr.op == SendOp::kSendImmediate ? static_cast<std::uint32_t>(wr.immediate) : 0;
}

}  // namespace

void Transmitter::queue_terminate(const TerminateMessage& message) {
  if (!terminate_) terminate_ = message;  // req: RFC5040-7.1-6
}

bool Transmitter::ready(std::size_t ord) const {
  if (terminate_) return !terminate_emitted_;
  return rtr_ != Rtr::kNone || wake_ || mid_message() || !reads_.empty() || sends_.next(ord) != nullptr;
}

bool Transmitter::start_next_message(std::size_t ord) {
  const SendWr* wr = sends_.next(ord);
  if (!reads_.empty() && (response_turn_ || wr == nullptr)) {
    // Read and Atomic Requests wait in one queue. req: RFC7306-5.2.1-21 RFC7306-5.2.2-11 RFC7306-5.4-9 RFC7306-5.4-10
    // req: RFC7306-7-11 RFC7306-7-12 RFC7306-7-15
    current_ = ResponseMessage{reads_.start(), 0};  // req: RFC5040-5.2.2-7 RFC5040-5.5-27 RFC5040-5.2.2-1 RFC5040-B-9
    response_turn_ = false;
    return true;
  }
  response_turn_ = true;
  if (wr == nullptr) return false;
  const auto total = static_cast<std::uint32_t>(wr->sges.total());  // req: RFC5040-4-2
  // In the order of posting, whatever they are. req: RFC5040-5.5-20 RFC5041-5.3-2 RFC5040-1.1-2
  // req: RFC5040-5.1-7 RFC5040-5.2.1-7 RFC5040-5.3-10
  current_ = RequestMessage{.ticket = sends_.start(), .total = total};
  return true;
}

// A message without a segment, in the order of posting: what was posted before has begun, what is posted behind it
// begins later. req: RFC5040-1.2-3
Result<void> Transmitter::invalidate_local(const RequestMessage& m) {
  const SendQueue::Ticket ticket = m.ticket;
  if (!stags_.invalidate_local(sends_.request(ticket).local_stag, who_.pd)) return local_error(ticket);
  sends_.sent(ticket);
  current_ = std::monostate{};
  return {};
}

Result<bool> Transmitter::next(std::size_t mulpdu, std::size_t ord, Segment& segment, std::vector<ddp::Pin>& payload) {
  segment.payload_bytes = segment.copied_bytes = 0;
  segment.read_response = segment.may_change = false;
  segment.done = {};
  if (terminate_) {
    if (terminate_emitted_) return false;  // req: RFC5040-5.4-10 RFC5040-5.4-1
    terminate_segment(segment);
    return true;
  }
  if (rtr_ != Rtr::kNone) {
    rtr_segment(segment);  // req: RFC6581-5-2
    return true;
  }
  if (wake_ && !mid_message()) {
    wake_segment(segment);
    return true;
  }
  segment.header_bytes = 0;
  do {
    if (!mid_message() && !start_next_message(ord)) return false;
    auto* const response = std::get_if<ResponseMessage>(&current_);
    const auto ok = response != nullptr ? response_segment(*response, mulpdu, segment, payload)
                                        : request_segment(std::get<RequestMessage>(current_), mulpdu, segment, payload);
    if (!ok) return ok.error();
  } while (segment.header_bytes == 0);  // it was a Local Invalidate
  return true;
}

void Transmitter::terminate_segment(Segment& s) {
  put(s,
      UntaggedHeader{.last = true, .rsvd_ulp = control_octet(Opcode::kTerminate), .qn = kTerminateQn, .msn = Msn{1}});
  // req: RFC5040-A.6-1
  terminate_->write_to(std::span{s.octets}.subspan(s.header_bytes));
  s.header_bytes += terminate_->size();
  s.done.what = Done::What::kTerminate;
  terminate_emitted_ = true;
}

void Transmitter::rtr_segment(Segment& s) {
  switch (rtr_) {  // req: RFC6581-9.2-5
    case Rtr::kNone:
      break;
    case Rtr::kSend:
      put(s, UntaggedHeader{.last = true, .rsvd_ulp = control_octet(Opcode::kSend), .qn = kSendQn, .msn = send_msn_});
      send_msn_.advance();
      break;
    case Rtr::kWrite:
      // req: RFC5041-5.2-15
      put(s, TaggedHeader{.last = true, .rsvd_ulp = control_octet(Opcode::kWrite), .stag = kRtrStag});
      break;
    case Rtr::kRead:
      put(s,
          UntaggedHeader{
              .last = true, .rsvd_ulp = control_octet(Opcode::kReadRequest), .qn = kReadRequestQn, .msn = read_msn_});
      put(s, ReadRequest{.sink_stag = kRtrStag, .source_stag = kRtrStag});
      read_msn_.advance();
      break;
  }
  s.done.what = Done::What::kRtr;
  rtr_ = Rtr::kNone;
}

void Transmitter::wake_segment(Segment& s) {
  put(s, TaggedHeader{.last = true, .rsvd_ulp = control_octet(Opcode::kWrite), .stag = kRtrStag});
  s.done.what = Done::What::kWake;
  wake_ = false;
}

// From the one piece of memory where the send queue keeps them.
void Transmitter::gather_inline(const SendWr& wr, const RequestMessage& m, std::uint32_t bytes, Segment& s,
                                std::vector<ddp::Pin>& payload) {
  if (bytes == 0) return;
  const MutBytes octets{wr.sges.view()[0].address + m.sent, bytes};
  if (bytes > kCopied) {
    payload.push_back(ddp::Pin::unregistered(octets));
    return;
  }
  std::memcpy(s.octets.data() + s.header_bytes, octets.data(), bytes);
  s.copied_bytes = bytes;
}

bool Transmitter::gather(const SendWr& wr, RequestMessage& m, std::uint32_t bytes, Segment& s,
                         std::vector<ddp::Pin>& payload) {
  const bool copy = bytes <= kCopied;
  const auto sges = wr.sges.view();
  const std::size_t first = payload.size();
  while (bytes > 0) {
    const Sge& sge = sges[m.sge];
    if (m.sge_offset == sge.length) {
      ++m.sge;
      m.sge_offset = 0;
      continue;
    }
    // req: RFC5040-5.1-6 RFC5040-5.3-8
    const std::uint32_t n = std::min(bytes, sge.length - m.sge_offset);
    const std::uint64_t from = sge.at(m.sge_offset);
    if (copy) {
      const auto octets = stags_.local(s.source, sge.lkey, who_.pd, ddp::Access::kLocalRead, from, n);
      if (!octets) return false;
      std::memcpy(s.octets.data() + s.header_bytes + s.copied_bytes, octets->data(), n);
      s.copied_bytes += n;
    } else {
      auto p = stags_.pin_local(sge.lkey, who_.pd, ddp::Access::kLocalRead, from, n);
      if (!p.ok) {
        payload.resize(first);
        return false;
      }
      payload.push_back(std::move(p.pin));
    }
    m.sge_offset += n;
    bytes -= n;
  }
  return true;
}

Error Transmitter::local_error(SendQueue::Ticket ticket) {
  const Error error = make_error(Errc::kLocalProtection);
  sends_.fail(ticket, error.code);
  current_ = std::monostate{};
  error_terminate_ = make_terminate(error, {}, 0, false);  // req: RFC5040-7.1-3
  return error;
}

Result<void> Transmitter::request_segment(RequestMessage& m, std::size_t mulpdu, Segment& s,
                                          std::vector<ddp::Pin>& payload) {
  const SendWr& wr = sends_.request(m.ticket);
  // req: RFC5040-1.2-1
  if (is_read(wr.op)) return read_request_segment(m, s);
  if (is_atomic(wr.op)) return atomic_request_segment(m, s);
  if (wr.op == SendOp::kLocalInvalidate) return invalidate_local(m);
  if (wr.op == SendOp::kImmediate || m.written) {
    immediate_segment(m, s);
    return {};
  }
  // req: RFC5040-4.1-5
  const bool tagged = wr.op == SendOp::kWrite || wr.op == SendOp::kWriteImmediate;
  // req: RFC5040-3.1-5
  s.header_bytes = tagged ? TaggedHeader::kSize : UntaggedHeader::kSize;
  const ddp::Cut cut = ddp::next_cut(m.total - m.sent, mulpdu, s.header_bytes);
  const std::uint32_t offset = m.sent;
  if (wr.inline_data) {
    gather_inline(wr, m, cut.payload_bytes, s, payload);
  } else if (!gather(wr, m, cut.payload_bytes, s, payload)) {
    return local_error(m.ticket);
  }

  // The same in each segment. req: RFC5040-4.1-1 RFC5040-4-1 RFC5041-4.2-6 RFC5041-4.3-5 RFC5040-3.1-8
  const std::uint8_t control = control_octet(opcode_of(wr));
  if (tagged) {
    // The one STag and the TO of the request. req: RFC5040-3.2-5 RFC5040-5.1-9 RFC5041-5.2-10 RFC5040-3.1-6
    // req: RFC5041-4.2-8 RFC5041-4.2-11 RFC5041-4.2-10 RFC5041-5.2-11 RFC5041-1.2-6
    // Nothing of RDMAP follows. req: RFC5040-4.3-1 RFC5040-A.1-1
    put(s, TaggedHeader{cut.last, control, named(wr.remote_stag, m.total), wr.remote_to + offset});
    counters_.write_bytes += cut.payload_bytes;
    if (cut.last) ++counters_.writes;
  } else {
    // req: RFC5040-3.2-1 RFC5040-4.1-4 RFC5040-4.1-14 RFC5040-5.3-13
    const std::uint32_t tail = tail_of(wr);
    // QN 0 throughout; MO from 0. req: RFC5041-4.3-7 RFC5041-4.3-8 RFC5041-4.3-12 RFC5041-4.3-13 RFC5041-5.2-8
    // req: RFC5041-1.2-4; nothing of RDMAP follows: RFC5040-4.6-1 RFC5040-4.7-1 RFC5040-A.4-1 RFC5040-A.5-1
    put(s, UntaggedHeader{cut.last, control, tail, kSendQn, send_msn_, offset});
    counters_.send_bytes += cut.payload_bytes;
    if (cut.last) {
      ++counters_.sends;
      send_msn_.advance();  // req: RFC5041-4.3-9
    }
  }
  s.payload_bytes = cut.payload_bytes;
  // req: RFC5041-5.3-3 RFC5041-5.3-4
  m.sent += cut.payload_bytes;
  if (cut.last && wr.op == SendOp::kWriteImmediate) {
    m.written = true;  // nothing comes between. req: RFC7306-6-1 RFC7306-7-6
  } else if (cut.last) {
    s.done = {Done::What::kRequest, m.ticket};
    current_ = std::monostate{};
  }
  return {};
}

Result<void> Transmitter::read_request_segment(const RequestMessage& m, Segment& s) {
  const SendWr& wr = sends_.request(m.ticket);
  const SendQueue::ReadPart part = sends_.part(m.ticket);
  // req: RFC5040-3.2-8 RFC5040-4.4-7 RFC5040-5.2.1-9 RFC5040-5.2.1-11
  ReadRequest request{.sink_stag = kRtrStag,
                      .sink_to = 0,
                      .size = part.length(),
                      .source_stag = named(wr.remote_stag, m.total),
                      .source_to = wr.remote_to + part.offset};
  // What nothing is read into is not looked at, unless it is to be revoked.
  if (part.sink != nullptr || wr.op == SendOp::kReadInvalidate) {
    const Sge& sink = part.sink != nullptr ? *part.sink : wr.sges.view()[0];
    const auto p = stags_.pin_local(sink.lkey, who_.pd, ddp::Access::kLocalWrite, sink.at(0), sink.length);
    const auto to = stags_.to_of(sink.lkey, who_.pd, sink.at(0));
    if (!p.ok || !to) return local_error(m.ticket);
    request.sink_stag = sink.lkey;
    request.sink_to = *to;
  }
  put(s, UntaggedHeader{
             .last = true, .rsvd_ulp = control_octet(Opcode::kReadRequest), .qn = kReadRequestQn, .msn = read_msn_});
  put(s, request);
  read_msn_.advance();
  ++counters_.reads;
  s.done = {Done::What::kRequest, m.ticket};
  current_ = std::monostate{};
  return {};
}

Result<void> Transmitter::response_segment(ResponseMessage& m, std::size_t mulpdu, Segment& s,
                                           std::vector<ddp::Pin>& payload) {
  if (std::holds_alternative<AtomicRequest>(m.read.request)) return atomic_response_segment(m.read, s);
  const auto& r = std::get<ReadRequest>(m.read.request);
  // req: RFC5040-1.2-5
  const ddp::Cut cut = ddp::next_cut(r.size - m.sent, mulpdu, TaggedHeader::kSize);
  // req: RFC5040-5.2.1-10 RFC5040-5.2.1-12 RFC5040-5.2.1-17 RFC5040-5.2.2-9 RFC5040-5.2.1-13 RFC5042-6.3.5-2
  if (r.size != 0) {  // req: RFC5040-5.2.1-14 RFC5040-5.2.1-15 RFC5040-5.2.1-16
    // The whole rest is checked, so that a Request that leaves its buffer fails before its first octet.
    const auto rest = stags_.pin(r.source_stag, who_, ddp::Access::kRemoteRead, r.source_to + m.sent, r.size - m.sent);
    // req: RFC5040-4.4-8
    auto p = stags_.pin(r.source_stag, who_, ddp::Access::kRemoteRead, r.source_to + m.sent, cut.payload_bytes);
    if (!rest.ok || !p.ok) {
      const Error error = ddp::read_error(rest.ok ? p.fault : rest.fault);
      // Quote the Request as received, or, when part of it was served, what is left of it.
      // req: RFC5040-4.8-35 RFC5040-4.8-36
      ReadRequest left = r;
      left.sink_to += m.sent;
      left.source_to += m.sent;
      left.size -= m.sent;
      left.write_to(std::span{m.read.ulpdu}.subspan<UntaggedHeader::kSize, ReadRequest::kSize>());
      error_terminate_ = make_terminate(error, m.read.ulpdu, m.read.ulpdu.size(), true);
      current_ = std::monostate{};
      return error;
    }
    s.may_change = !p.stable;  // req: RFC5040-5.5-9 RFC5040-5.5-18
    payload.push_back(std::move(p.pin));
  }
  // req: RFC5040-4.4-4 RFC5040-4.4-5 RFC5040-4.4-6 RFC5040-4.5-1 RFC5040-5.2.2-6 RFC5040-A.3-1
  put(s, TaggedHeader{cut.last, control_octet(Opcode::kReadResponse), r.sink_stag,
                      r.sink_to + m.sent});  // req: RFC5040-4.4-3
  s.payload_bytes = cut.payload_bytes;
  s.read_response = true;
  counters_.read_response_bytes += cut.payload_bytes;
  m.sent += cut.payload_bytes;
  if (cut.last) {
    s.done.what = Done::What::kReadResponse;
    current_ = std::monostate{};
  }
  return {};
}

void Transmitter::segment_sent(const Done& done) {
  switch (done.what) {
    case Done::What::kRequest:
      sends_.sent(done.ticket);
      break;
    case Done::What::kReadResponse:
      reads_.response_sent();
      break;
    case Done::What::kWake:
      ++counters_.wakes;
      break;
    case Done::What::kNothing:
    case Done::What::kTerminate:
    // req: RFC6581-5-3
    case Done::What::kRtr:
      break;
  }
}

}  // namespace iwarp::rdmap
