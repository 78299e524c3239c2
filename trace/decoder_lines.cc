// The records of RDMAP messages and DDP segments.
#include "iwarp/base/wire.h"
#include "iwarp/rdmap/atomic.h"
#include "iwarp/rdmap/read_request.h"
#include "iwarp/rdmap/terminate_message.h"
#include "iwarp/trace/decoder.h"

namespace iwarp::trace {
namespace {

using rdmap::Opcode;

Pdu& length_of(Pdu& pdu, const Message& m) {
  pdu.number("length", m.length).number("segments", m.segments);
  return pdu;
}

Pdu& remarks(Pdu& pdu, const Message& m) {
  if (m.expected_msn) pdu.number("expected_msn", *m.expected_msn);
  if (!m.complete) pdu.number("complete", 0);
  return pdu;
}

// Something of it, or before it, is missing.
bool is_broken(const Message& m) {
  return m.expected_msn.has_value() || !m.complete;
}

// nullopt: not what the RFC says, and all of it was captured.
std::optional<Pdu> read_request(const Message& m) {
  Pdu pdu("ReadRequest");
  pdu.number("msn", m.msn);
  if (const auto r = rdmap::ReadRequest::parse(m.head)) {
    pdu.number("size", r->size).hex("source_stag", raw(r->source_stag)).hex("source_to", r->source_to);
    pdu.hex("sink_stag", raw(r->sink_stag)).hex("sink_to", r->sink_to);
    return pdu;
  }
  if (m.head.size() == m.length) return std::nullopt;
  return pdu;
}

std::optional<Pdu> immediate(const Message& m) {
  Pdu pdu(rdmap::to_string(m.op));
  pdu.number("msn", m.msn);
  if (m.length == rdmap::kImmediateBytes && m.head.size() == m.length)
    return pdu.hex("data", load_be<std::uint64_t>(m.head));
  if (m.head.size() == m.length) return std::nullopt;
  return pdu;
}

std::optional<Pdu> atomic_request(const Message& m) {
  Pdu pdu("AtomicRequest");
  pdu.number("msn", m.msn);
  const auto r = rdmap::AtomicRequest::parse(m.head);
  if (!r && m.head.size() == m.length) return std::nullopt;
  if (!r) return pdu;
  const bool add = r->code == static_cast<std::uint8_t>(rdmap::AtomicCode::kFetchAdd);
  pdu.word("op", add ? "FetchAdd" : r->known() ? "CmpSwap" : std::to_string(r->code)).number("id", r->id);
  pdu.hex("stag", raw(r->stag)).hex("to", r->to).hex("data", r->operands.data).hex("mask", r->operands.mask);
  if (!add) pdu.hex("compare", r->operands.compare).hex("compare_mask", r->operands.compare_mask);
  return pdu;
}

std::optional<Pdu> atomic_response(const Message& m) {
  Pdu pdu("AtomicResponse");
  pdu.number("msn", m.msn);
  if (const auto r = rdmap::AtomicResponse::parse(m.head)) return pdu.number("id", r->id).hex("original", r->original);
  if (m.head.size() == m.length) return std::nullopt;
  return pdu;
}

std::optional<Pdu> terminate(const Message& m) {
  Pdu pdu("Terminate");
  const auto t = rdmap::TerminateMessage::parse(m.head);
  if (!t && m.head.size() == m.length) return std::nullopt;
  if (!t) return pdu;
  pdu.number("layer", t->code.layer).number("type", t->code.type).number("code", t->code.code);
  pdu.text("text", rdmap::describe(t->code));
  if (t->order == rdmap::TerminateOrder::kSiw) pdu.word("order", "siw");
  if (t->segment_length) pdu.number("segment_length", *t->segment_length);
  if (t->ddp_header_bytes > 0) pdu.octets("ddp_header", ConstBytes(t->ddp_header).first(t->ddp_header_bytes));
  if (t->has_rdmap_header) pdu.octets("rdmap_header", t->rdmap_header);
  return pdu;
}

}  // namespace

void Decoder::write(Direction d, Duration at, const Message& m) {
  ++half(d).totals.messages;
  if (rdmap::is_send(m.op)) return write_send(d, at, m);
  std::optional<Pdu> pdu;
  RpcView::Read read;
  bool error = m.op == Opcode::kTerminate;
  if (m.op == Opcode::kReadRequest) {
    pdu = read_request(m);
    if (const auto r = rdmap::ReadRequest::parse(m.head)) read.rpc = rpc_.on_read_request(d, *r);
  } else if (m.op == Opcode::kTerminate) {
    pdu = terminate(m);
  } else if (rdmap::is_immediate(m.op)) {
    pdu = immediate(m);
  } else if (m.op == Opcode::kAtomicRequest) {
    pdu = atomic_request(m);
  } else if (m.op == Opcode::kAtomicResponse) {
    pdu = atomic_response(m);
  } else {
    pdu.emplace(rdmap::to_string(m.op)).hex("stag", raw(m.stag)).hex("to", m.to);
    length_of(*pdu, m);
    if (m.op == Opcode::kWrite) {
      read.rpc = rpc_.on_write(d, m);
    } else {
      read = rpc_.on_read_response(d, m, {at, frame_});
    }
  }
  if (!pdu) {
    ++half(d).totals.malformed;
    error = true;
    pdu.emplace("Malformed").word("opcode", rdmap::to_string(m.op)).octets("octets", m.head);
    length_of(*pdu, m);
  }
  if (read.rpc != nullptr) pdu->hex("xid", read.rpc->xid);
  remarks(*pdu, m);
  Record& r = push(d, at, "rdmap", std::move(*pdu), error || is_broken(m));
  if (read.rpc != nullptr) r.xid = read.rpc->xid;
  r.rpc = std::move(read.rpc);
  push(d, at, std::move(read.events));
}

void Decoder::write_send(Direction d, Duration at, const Message& m) {
  Pdu pdu(rdmap::to_string(m.op));
  pdu.number("msn", m.msn);
  length_of(pdu, m);
  if (rdmap::invalidates(m.op)) pdu.hex("invalidate", raw(m.stag));
  RpcView::Events events = rpc_.on_send(d, m, {at, frame_});
  Record& r = push(d, at, "rdmap", std::move(remarks(pdu, m)), is_broken(m));
  if (!events.empty()) {
    r.xid = events.front().record.xid;
    r.rpc = events.front().record.rpc;
  }
  push(d, at, std::move(events));
}

void Decoder::write_segment(Direction d, Duration at, const ddp::SegmentHeader& header, std::size_t payload_bytes) {
  if (const auto* t = std::get_if<ddp::TaggedHeader>(&header)) {
    Pdu pdu("Tagged");
    pdu.number("last", t->last ? 1 : 0).hex("stag", raw(t->stag)).hex("to", t->to).number("length", payload_bytes);
    push(d, at, "ddp", std::move(pdu));
    return;
  }
  const auto& u = std::get<ddp::UntaggedHeader>(header);
  Pdu pdu("Untagged");
  pdu.number("last", u.last ? 1 : 0).number("qn", u.qn).number("msn", u.msn.value).number("mo", u.mo);
  push(d, at, "ddp", std::move(pdu.number("length", payload_bytes)));
}

}  // namespace iwarp::trace
