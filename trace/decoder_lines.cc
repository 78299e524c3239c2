// The lines of RDMAP messages and DDP segments.
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

// nullopt: not what the RFC says, and all of it was captured.
std::optional<Pdu> read_request(const Message& m) {
  Pdu pdu("ReadRequest");
  pdu.number("msn", m.msn);
  if (const auto r = rdmap::ReadRequest::parse(m.head)) {
    pdu.hex("sink_stag", raw(r->sink_stag)).hex("sink_to", r->sink_to).number("size", r->size);
    pdu.hex("source_stag", raw(r->source_stag)).hex("source_to", r->source_to);
    return pdu;
  }
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
  if (m.op == Opcode::kReadRequest) {
    pdu = read_request(m);
  } else if (m.op == Opcode::kTerminate) {
    pdu = terminate(m);
  } else {
    pdu.emplace(rdmap::to_string(m.op)).hex("stag", raw(m.stag)).hex("to", m.to);
    length_of(*pdu, m);
  }
  if (!pdu) {
    ++half(d).totals.malformed;
    pdu.emplace("Malformed").word("opcode", rdmap::to_string(m.op)).octets("octets", m.head);
    length_of(*pdu, m);
  }
  lines_.add(at, d, "rdmap", remarks(*pdu, m).str());
}

void Decoder::write_send(Direction d, Duration at, const Message& m) {
  Pdu pdu(rdmap::to_string(m.op));
  pdu.number("msn", m.msn);
  length_of(pdu, m);
  if (rdmap::invalidates(m.op)) pdu.hex("invalidate", raw(m.stag));
  lines_.add(at, d, "rdmap", remarks(pdu, m).str());
  const RpcView::Decoded rpc = rpc_.on_send(d, m);
  if (rpc.malformed) ++half(d).totals.malformed;
  if (!rpc.header.empty()) lines_.add(at, d, "rpcrdma", rpc.header);
  if (!rpc.rpc.empty()) lines_.add(at, d, "rpc", rpc.rpc);
}

void Decoder::write_segment(Direction d, Duration at, const ddp::SegmentHeader& header, std::size_t payload_bytes) {
  if (const auto* t = std::get_if<ddp::TaggedHeader>(&header)) {
    Pdu pdu("Tagged");
    pdu.number("last", t->last ? 1 : 0).hex("stag", raw(t->stag)).hex("to", t->to).number("length", payload_bytes);
    return lines_.add(at, d, "ddp", pdu.str());
  }
  const auto& u = std::get<ddp::UntaggedHeader>(header);
  Pdu pdu("Untagged");
  pdu.number("last", u.last ? 1 : 0).number("qn", u.qn).number("msn", u.msn.value).number("mo", u.mo);
  lines_.add(at, d, "ddp", pdu.number("length", payload_bytes).str());
}

}  // namespace iwarp::trace
