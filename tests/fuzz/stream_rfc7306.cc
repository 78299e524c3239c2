// Messages of RFC 7306 in a script: what the peer sends, and what the application posts.
#include <algorithm>

#include "tests/fuzz/stream_world.h"

namespace iwarp::fuzz {

using rdmap::Opcode;

namespace {

template <class Message>
Bytes octets_of(const Message& m) {
  Bytes out(Message::kSize);
  m.write_to(std::span<std::byte, Message::kSize>(out));
  return out;
}

// Small numbers mostly, so that they compare equal now and then.
rdmap::AtomicOperands operands(Script& in) {
  rdmap::AtomicOperands o{.data = in.u8(), .mask = ~std::uint64_t{0}, .compare = 0};
  const std::uint8_t more = in.u8();
  if ((more & 1) != 0) o.mask = in.take<std::uint64_t>();
  if ((more & 2) != 0) o.compare = in.take<std::uint64_t>();
  if ((more & 4) != 0) o.compare_mask = in.u8();
  return o;
}

}  // namespace

// Immediate Data, with a solicited event and without; an Atomic Request; an Atomic Response that may answer nothing.
Bytes World::made_rfc7306(Script& in, std::uint8_t kind) {
  const auto opcode = static_cast<Opcode>(8 | (kind & 3));
  if (rdmap::is_immediate(opcode)) {
    const std::size_t length = in.flag() ? in.u8() % 16 : rdmap::kImmediateBytes;
    const bool last = (kind & 8) == 0;
    Bytes ulpdu = test::send_segment(content(length, kind), {.msn = send_msn_, .mo = send_mo_, .last = last}, opcode);
    send_mo_ = last ? 0 : send_mo_ + static_cast<std::uint32_t>(length);
    if (last) ++send_msn_;
    return ulpdu;
  }
  if (opcode == Opcode::kAtomicResponse) return atomic_response(in.u8());
  const auto [stag, to] = target(in);
  const std::uint8_t code = in.u8();
  const rdmap::AtomicRequest request{.code = static_cast<std::uint8_t>(code < 240 ? code & 2 : code & 15),
                                     .id = in.u8(),
                                     .stag = stag,
                                     .to = to & ~std::uint64_t{in.flag() ? 0U : 7U},
                                     .operands = operands(in)};
  return test::send_segment(octets_of(request), {.msn = read_msn_++}, opcode, rdmap::kReadRequestQn);
}

Bytes World::atomic_response(std::uint32_t id) {
  return test::send_segment(octets_of(rdmap::AtomicResponse{id, 0x0102030405060708}), {.msn = atomic_msn_++},
                            Opcode::kAtomicResponse, rdmap::kAtomicResponseQn);
}

// A request of RFC 7306, mostly a well-formed one.
void World::become_rfc7306(Script& in, rdmap::SendWr& wr) {
  const std::uint8_t kind = in.u8();
  wr.op = static_cast<rdmap::SendOp>(static_cast<std::uint8_t>(rdmap::SendOp::kImmediate) + (kind & 3));
  wr.immediate = kind;
  wr.atomic = rdmap::is_atomic(wr.op) ? operands(in) : rdmap::AtomicOperands{};
  if ((kind & 128) != 0) return;
  if (wr.op == rdmap::SendOp::kImmediate) wr.sges = {};
  if (rdmap::is_atomic(wr.op)) wr.sges = memory_[in.u8() % memory_.size()].region->sge(in.u8(), 8);
}

}  // namespace iwarp::fuzz
