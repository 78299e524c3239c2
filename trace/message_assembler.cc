#include "iwarp/trace/message_assembler.h"

#include <algorithm>
#include <utility>

namespace iwarp::trace {
namespace {

std::size_t group_of(const ddp::SegmentHeader& header, rdmap::Opcode op) {
  if (const auto* u = std::get_if<ddp::UntaggedHeader>(&header)) return 2 + u->qn;  // check_control(): at most 3
  return op == rdmap::Opcode::kWrite ? 0 : 1;
}

bool continues(const Message& m, const ddp::SegmentHeader& header, rdmap::Opcode op) {
  if (const auto* t = std::get_if<ddp::TaggedHeader>(&header)) return t->stag == m.stag && t->to == m.to + m.length;
  return m.op == op && std::get<ddp::UntaggedHeader>(header).msn.value == m.msn;
}

}  // namespace

std::vector<Message> MessageAssembler::add(const ddp::SegmentHeader& header, rdmap::Opcode op, ConstBytes seen,
                                           std::size_t payload_bytes) {
  std::vector<Message> over;
  Group& g = groups_[group_of(header, op)];
  if (g.open && !continues(*g.open, header, op)) {
    g.open->complete = false;
    over.push_back(*std::exchange(g.open, std::nullopt));
  }
  const auto* untagged = std::get_if<ddp::UntaggedHeader>(&header);
  if (!g.open) {
    Message& m = g.open.emplace();
    m.op = op;
    if (untagged != nullptr) {
      m.msn = untagged->msn.value;
      if (g.next_msn && *g.next_msn != m.msn) m.expected_msn = g.next_msn;
      g.next_msn = m.msn + 1;
      if (rdmap::invalidates(op)) m.stag = Stag{untagged->rsvd_ulp_tail};
    } else {
      m.stag = std::get<ddp::TaggedHeader>(header).stag;
      m.to = std::get<ddp::TaggedHeader>(header).to;
    }
  }
  Message& m = *g.open;
  if (untagged != nullptr && untagged->mo != m.length) m.complete = false;
  // Octets behind a missing one would stand in the wrong place.
  if (m.complete && m.head.size() == m.length) {
    const std::size_t most = untagged != nullptr ? Message::kKeepBytes : Message::kKeepTaggedBytes;
    const ConstBytes keep = seen.first(std::min(seen.size(), most - m.head.size()));
    m.head.insert(m.head.end(), keep.begin(), keep.end());
  }
  m.length += payload_bytes;
  ++m.segments;
  const bool last = std::visit([](const auto& h) { return h.last; }, header);
  if (last) over.push_back(*std::exchange(g.open, std::nullopt));
  return over;
}

std::vector<Message> MessageAssembler::interrupt() {
  std::vector<Message> over;
  for (Group& g : groups_) {
    g.next_msn.reset();
    if (!g.open) continue;
    g.open->complete = false;
    over.push_back(*std::exchange(g.open, std::nullopt));
  }
  return over;
}

std::size_t MessageAssembler::memory() const {
  std::size_t out = 0;
  for (const Group& g : groups_) out += g.open ? g.open->head.capacity() : 0;
  return out;
}

}  // namespace iwarp::trace
