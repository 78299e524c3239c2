// Where the payload of segments belongs that came before others in front of them (RFC 5041 s5.3).
#include <variant>

#include "iwarp/rdmap/pieces.h"
#include "iwarp/rdmap/receiver.h"

namespace iwarp::rdmap {
using ddp::Access;
using ddp::TaggedHeader;
using ddp::UntaggedHeader;

bool Receiver::early_targets(ConstBytes ulpdu, std::vector<ddp::Pin>& out) const {
  ddp::SegmentHeader header;
  if (!ddp::parse_segment_header(ulpdu, header)) return false;
  const auto opcode = check_control(header, known_);
  if (!opcode) return false;
  const std::size_t bytes = ulpdu.size() - ddp::header_size(header);
  if (bytes == 0) return false;
  const std::size_t first = out.size();
  bool known = false;
  if (const auto* tagged = std::get_if<TaggedHeader>(&header)) {
    known = *opcode == Opcode::kWrite ? early_write(*tagged, bytes, out) : early_read_response(*tagged, bytes, out);
  } else if (is_send(*opcode)) {  // what RDMAP itself takes is short, and is looked at when it is delivered
    known = early_send(std::get<UntaggedHeader>(header), bytes, out);
  }
  if (!known) out.resize(first);
  return known;
}

// Not one octet beyond what the peer may write to at this moment. req: RFC5041-4.1-2 RFC5041-7.1-16
bool Receiver::early_write(const TaggedHeader& h, std::size_t bytes, std::vector<ddp::Pin>& out) const {
  auto p = stags_.pin(h.stag, who_, Access::kRemoteWrite, h.to, bytes);
  if (p.ok) out.push_back(std::move(p.pin));
  return p.ok;
}

// To whichever Read it belongs: its sink, and the place there, are named by the segment.
bool Receiver::early_read_response(const TaggedHeader& h, std::size_t bytes, std::vector<ddp::Pin>& out) const {
  return sends_.any_outstanding_sink([&](const Sge& sink) {
    if (h.stag != sink.lkey) return false;
    const auto to = stags_.to_of(sink.lkey, who_.pd, sink.at(0));
    const std::uint64_t offset = h.to - to.value_or(0);  // of what is in front of the sink: very great
    if (!to || offset > sink.length || bytes > sink.length - offset) return false;
    auto p = stags_.pin_local(sink.lkey, who_.pd, Access::kLocalWrite, sink.at(offset), bytes);
    if (p.ok) out.push_back(std::move(p.pin));
    return p.ok;
  });
}

// Each message of queue 0 takes one Receive, in the order posted, so the MSN names it. Where Receives are shared that
// holds for a message that has begun: no other one has its Receive yet.
bool Receiver::early_send(const UntaggedHeader& h, std::size_t bytes, std::vector<ddp::Pin>& out) const {
  if (rtr_send_due_) return false;  // the first one may take none
  const RecvWr* const wr = recvs_.behind_current(h.msn.value - send_rx_.expected().value);
  if (wr == nullptr || h.mo + std::uint64_t{bytes} > wr->sges.total()) return false;
  return rdmap::each_piece(wr->sges, h.mo, bytes, [&](Stag lkey, std::uint64_t iova, std::size_t n) {
    auto p = stags_.pin_local(lkey, who_.pd, Access::kLocalWrite, iova, n);
    if (p.ok) out.push_back(std::move(p.pin));
    return p.ok;
  });
}

}  // namespace iwarp::rdmap
