// Immediate Data and Atomics (RFC 7306) that a victim must refuse, or must take: of one that knows them, and of one
// that does not.
#include "tests/hostile/rdma_talk.h"
#include "tests/hostile/script.h"

namespace iwarp::hostile {
namespace {

using rdmap::AtomicRequest;
using rdmap::AtomicResponse;
using rdmap::Opcode;
using test::send_segment;
using test::tagged_segment;
using Kind = Heard::Kind;

constexpr std::uint8_t kFetchAdd = static_cast<std::uint8_t>(rdmap::AtomicCode::kFetchAdd);
constexpr std::uint8_t kCmpSwap = static_cast<std::uint8_t>(rdmap::AtomicCode::kCmpSwap);

template <class Message>
Bytes octets_of(const Message& m) {
  Bytes out(Message::kSize);
  m.write_to(std::span<std::byte, Message::kSize>(out));
  return out;
}

Bytes request(const AtomicRequest& r, std::uint32_t msn = 1) {
  return send_segment(octets_of(r), {.msn = msn}, Opcode::kAtomicRequest, rdmap::kReadRequestQn);
}
Bytes response(const AtomicResponse& r, std::uint32_t msn = 1) {
  return send_segment(octets_of(r), {.msn = msn}, Opcode::kAtomicResponse, rdmap::kAtomicResponseQn);
}
// As they should be, but for the memory that is named: for segments that are refused before anybody looks there.
Bytes some_request() {
  return request({.code = kFetchAdd, .stag = Stag{0x12345600}, .to = kBase});
}
Bytes some_immediate(Opcode op = Opcode::kImmediate) {
  return send_segment(Bytes(rdmap::kImmediateBytes), {}, op);
}
Bytes control(Bytes ulpdu, unsigned octet) {
  return altered(std::move(ulpdu), {{1, octet}});
}

// One ULPDU to a victim that does not know RFC 7306.
Reaction where_off(Target& target, const Bytes& ulpdu) {
  Peer peer = open(target);
  peer.ulpdu(ulpdu);
  return verdict(peer);
}

// To one that does.
Peer knowing(Target& target) {
  Peer peer = open(target, Flavour::kRfc7306);
  peer.extensions = rdmap::Extensions::kRfc7306;
  return peer;
}

// What ends the connection, behind at most one message. A Terminate has to say which segment it is for, without the
// RDMAP header (s8.1, rule 2).
Reaction refusal(Peer& peer) {
  Heard heard = peer.hear_message();
  if (heard.kind == Kind::kSend) heard = peer.hear_message();
  const rdmap::TerminateMessage& t = heard.terminate;
  if (heard.kind == Kind::kTerminate && (!t.segment_length || t.ddp_header_bytes == 0 || t.has_rdmap_header))
    return term(t.code) + ", with other headers than M=1, D=1, R=0";
  return peer.ending(heard).value_or("a message");
}
Reaction refused(Target& target, const Bytes& ulpdu) {
  Peer peer = knowing(target);
  peer.ulpdu(ulpdu);
  return refusal(peer);
}

// An Atomic on memory that the victim has named, at the TO that `where` makes.
Reaction atomic_on(Target& target, Memory memory, std::uint64_t (*where)(const Region&),
                   std::uint8_t code = kFetchAdd) {
  Peer peer = knowing(target);
  const Region region = find_memory(target, peer, memory);
  peer.ulpdu(request({.code = code,
                      .stag = region.stag,
                      .to = where(region),
                      .operands = {.data = 1, .mask = code == kCmpSwap ? 1U : 0U, .compare_mask = 0}}));
  return refusal(peer);
}
std::uint64_t beginning(const Region& region) {
  return region.to;
}

// An Atomic that is served. False: another thing came.
bool served(Peer& peer, AtomicRequest atomic, std::uint64_t original, std::uint32_t msn = 1) {
  atomic.id = 0xABCD0000 | msn;
  peer.ulpdu(request(atomic, msn));
  const Heard heard = peer.hear();
  return heard.kind == Kind::kAtomicResponse && heard.answer == AtomicResponse{atomic.id, original};
}

// Both, and a Read in one sequence with them.
Reaction both_well(Target& target) {
  Peer peer = knowing(target);
  const Region r = find_memory(target, peer, Memory::kOpen);
  if (!served(peer, {.code = kFetchAdd, .stag = r.stag, .to = r.to, .operands = {.data = 5}}, 0))
    return "another answer to the FetchAdd";
  peer.ulpdu(test::read_request_segment({Stag{0x500}, 9, 4, r.stag, r.to}, 2));
  if (peer.hear().kind != Kind::kReadResponse) return "another answer to the Read";
  const rdmap::AtomicOperands swap{.data = 7, .mask = ~std::uint64_t{0}, .compare = 5};
  for (const std::uint32_t msn : {3U, 4U}) {
    if (!served(peer, {.code = kCmpSwap, .stag = r.stag, .to = r.to, .operands = swap}, msn == 3 ? 5 : 7, msn))
      return "another answer to the CmpSwap";
  }
  return verdict(peer);
}

// A FetchAdd of 0 whose octets are odd, but good.
Reaction odd_atomic(Target& target, Memory memory, std::uint64_t offset, Bytes (*make)(Bytes, const Region&)) {
  Peer peer = knowing(target);
  const Region r = find_memory(target, peer, memory);
  peer.ulpdu(make(request({.code = kFetchAdd, .stag = r.stag, .to = r.to + offset}), r));
  if (peer.hear().kind != Kind::kAtomicResponse) return "another answer to the FetchAdd";
  if (memory == Memory::kInvalidable) peer.ulpdu(test::write_segment(r.stag, r.to, pattern(4)));
  return verdict(peer);
}
Bytes with_invalidate_field(Bytes ulpdu, const Region& r) {
  store_be<std::uint32_t>(MutBytes(ulpdu).subspan(2), raw(r.stag));
  return ulpdu;
}

// Two segments that are good alone.
Reaction after(Target& target, const Bytes& first, const Bytes& second) {
  Peer peer = knowing(target);
  peer.ulpdu(first);
  peer.ulpdu(second);
  return refusal(peer);
}

// All there before the first can be answered.
Reaction overrun(Target& target, bool among_reads) {
  Peer peer = knowing(target);
  const Region r = find_memory(target, peer, Memory::kOpen);
  Bytes burst;
  for (std::uint32_t msn = 1; msn <= 256; ++msn) {
    burst = std::move(burst) |
            peer.framed(among_reads && msn % 2 == 0 ? test::read_request_segment({Stag{1}, 0, 0, Stag{1}, 0}, msn)
                                                    : request({.code = kFetchAdd, .stag = r.stag, .to = r.to}, msn));
  }
  peer.raw(burst);
  return refusal(peer);
}

// Asks for an Atomic of the victim, which waits for the Response.
AtomicRequest provoke_atomic(Peer& peer) {
  Bytes announced(rdmap::kImmediateBytes);
  store_be<std::uint64_t>(announced, 0x700);
  peer.send(announced, Opcode::kImmediate);
  const Heard heard = peer.hear();
  if (heard.kind != Kind::kAtomicRequest) throw std::runtime_error("the victim sent no Atomic Request");
  return heard.atomic;
}
// Answers it with something else, then perhaps once more.
Reaction bad_response(Target& target, Bytes (*make)(const AtomicRequest&),
                      Bytes (*again)(const AtomicRequest&) = nullptr) {
  Peer peer = knowing(target);
  const AtomicRequest asked = provoke_atomic(peer);
  peer.ulpdu(make(asked));
  if (again != nullptr) peer.ulpdu(again(asked));
  return refusal(peer);
}
Bytes good_response(const AtomicRequest& asked) {
  return response({asked.id, 1});
}
Reaction response_well(Target& target) {
  Peer peer = knowing(target);
  peer.ulpdu(good_response(provoke_atomic(peer)));
  if (const auto end = peer.ending(peer.hear_message())) return *end;
  return verdict(peer);
}

Reaction immediates_without_receives(Target& target) {
  Peer peer = knowing(target);
  (void)provoke_read(peer);
  for (std::size_t i = 0; i < 4 * kReceives; ++i) peer.send(Bytes(rdmap::kImmediateBytes), Opcode::kImmediate);
  return refusal(peer);
}

// Names an STag, which stays valid.
Reaction odd_immediate(Target& target, Opcode op) {
  Peer peer = knowing(target);
  const Region r = find_memory(target, peer, Memory::kInvalidable);
  peer.send(Bytes(rdmap::kImmediateBytes), op, raw(r.stag));
  peer.ulpdu(test::write_segment(r.stag, r.to, pattern(4)));
  return verdict(peer);
}

const Script kScripts[] = {
    {"fetch_add_where_off", [](Target& t) { return where_off(t, some_request()); }},
    {"atomic_response_where_off",
     [](Target& t) {
       return where_off(t, response({1, 0}));
     }},
    // Control field and queue.
    {"immediate_version_0", [](Target& t) { return refused(t, control(some_immediate(), 0x08)); }},
    {"atomic_version_0", [](Target& t) { return refused(t, control(some_request(), 0x0A)); }},
    {"atomic_version_2", [](Target& t) { return refused(t, control(some_request(), 0x8A)); }},
    {"opcode_12", [](Target& t) { return refused(t, control(some_immediate(), 0x4C)); }},
    {"opcode_15", [](Target& t) { return refused(t, control(some_immediate(), 0x4F)); }},
    {"queue_4", [](Target& t) { return refused(t, send_segment(info(), {}, Opcode::kSend, 4)); }},
    {"send_on_atomic_queue",
     [](Target& t) { return refused(t, send_segment(info(), {}, Opcode::kSend, rdmap::kAtomicResponseQn)); }},
    {"immediate_tagged",
     [](Target& t) { return refused(t, tagged_segment(Opcode::kImmediate, Stag{1}, 0, Bytes(8))); }},
    {"immediate_on_read_queue",
     [](Target& t) { return refused(t, send_segment(Bytes(8), {}, Opcode::kImmediate, rdmap::kReadRequestQn)); }},
    {"immediate_solicited_tagged",
     [](Target& t) { return refused(t, tagged_segment(Opcode::kImmediateSolicited, Stag{1}, 0, Bytes(8))); }},
    {"immediate_solicited_on_terminate_queue",
     [](Target& t) {
       return refused(t, send_segment(Bytes(8), {}, Opcode::kImmediateSolicited, rdmap::kTerminateQn));
     }},
    {"atomic_tagged",
     [](Target& t) {
       return refused(t, tagged_segment(Opcode::kAtomicRequest, Stag{1}, 0, octets_of(AtomicRequest{})));
     }},
    {"atomic_on_send_queue",
     [](Target& t) { return refused(t, send_segment(octets_of(AtomicRequest{}), {}, Opcode::kAtomicRequest)); }},
    {"atomic_on_response_queue",
     [](Target& t) {
       const Bytes body = octets_of(AtomicRequest{});
       return refused(t, send_segment(body, {}, Opcode::kAtomicRequest, rdmap::kAtomicResponseQn));
     }},
    {"atomic_response_tagged",
     [](Target& t) {
       return bad_response(t, [](const AtomicRequest& r) {
         return tagged_segment(Opcode::kAtomicResponse, Stag{1}, 0, octets_of(AtomicResponse{r.id, 1}));
       });
     }},
    {"atomic_response_on_send_queue",
     [](Target& t) {
       return bad_response(t, [](const AtomicRequest& r) {
         return send_segment(octets_of(AtomicResponse{r.id, 1}), {.msn = 2}, Opcode::kAtomicResponse);
       });
     }},
    {"atomic_response_on_queue_4",
     [](Target& t) {
       return bad_response(t, [](const AtomicRequest& r) {
         return send_segment(octets_of(AtomicResponse{r.id, 1}), {}, Opcode::kAtomicResponse, 4);
       });
     }},
    // Immediate Data.
    {"immediate_well",
     [](Target& t) {
       Peer peer = knowing(t);
       peer.send(Bytes(8), Opcode::kImmediate);
       if (const Reaction before = verdict(peer); before != kIgnore) return before;
       peer.send(Bytes(8), Opcode::kImmediateSolicited);
       return verdict(peer);
     }},
    {"immediate_invalidate_field", [](Target& t) { return odd_immediate(t, Opcode::kImmediate); }},
    {"immediate_solicited_invalidate_field", [](Target& t) { return odd_immediate(t, Opcode::kImmediateSolicited); }},
    {"immediate_too_short", [](Target& t) { return refused(t, send_segment(Bytes(7), {}, Opcode::kImmediate)); }},
    {"immediate_empty", [](Target& t) { return refused(t, send_segment({}, {}, Opcode::kImmediate)); }},
    {"immediate_too_long", [](Target& t) { return refused(t, send_segment(Bytes(9), {}, Opcode::kImmediate)); }},
    {"immediate_solicited_too_short",
     [](Target& t) { return refused(t, send_segment(Bytes(7), {}, Opcode::kImmediateSolicited)); }},
    {"immediate_solicited_too_long",
     [](Target& t) { return refused(t, send_segment(Bytes(9), {}, Opcode::kImmediateSolicited)); }},
    {"immediate_msn_skipped",
     [](Target& t) { return refused(t, send_segment(Bytes(8), {.msn = 2}, Opcode::kImmediate)); }},
    {"immediate_mo_not_zero",
     [](Target& t) { return refused(t, send_segment(Bytes(4), {.mo = 4}, Opcode::kImmediate)); }},
    {"immediate_continues_send",
     [](Target& t) {
       return after(t, send_segment(Bytes(4), {.last = false}), send_segment(Bytes(4), {.mo = 4}, Opcode::kImmediate));
     }},
    {"more_immediates_than_receives", immediates_without_receives},
    // Atomic Requests.
    {"atomics_well", both_well},
    {"atomic_invalidate_field",
     [](Target& t) { return odd_atomic(t, Memory::kInvalidable, 0, with_invalidate_field); }},
    {"atomic_reserved_bits",
     [](Target& t) {
       return odd_atomic(t, Memory::kOpen, 0, [](Bytes u, const Region&) {
         return altered(std::move(u), {{18, 0xFF}, {19, 0xFF}, {20, 0xFF}, {21, 0xF0}});
       });
     }},
    {"atomic_too_short",
     [](Target& t) { return refused(t, send_segment(Bytes(51), {}, Opcode::kAtomicRequest, rdmap::kReadRequestQn)); }},
    {"atomic_too_long",
     [](Target& t) { return refused(t, send_segment(Bytes(53), {}, Opcode::kAtomicRequest, rdmap::kReadRequestQn)); }},
    {"aopcode_1", [](Target& t) { return atomic_on(t, Memory::kShifted, beginning, 1); }},
    {"aopcode_15", [](Target& t) { return atomic_on(t, Memory::kShifted, beginning, 15); }},
    {"atomic_msn_skipped",
     [](Target& t) { return refused(t, request({.code = kFetchAdd, .stag = Stag{0x12345600}, .to = kBase}, 2)); }},
    {"atomic_mo_not_zero",
     [](Target& t) {
       return refused(t, send_segment(Bytes(48), {.mo = 4}, Opcode::kAtomicRequest, rdmap::kReadRequestQn));
     }},
    {"atomic_with_msn_of_read",
     [](Target& t) {
       return after(t, test::read_request_segment({Stag{1}, 0, 0, Stag{1}, 0}), some_request());
     }},
    {"atomic_repeated",
     [](Target& t) {
       Peer peer = knowing(t);
       const Region r = find_memory(t, peer, Memory::kOpen);
       for (int i = 0; i < 2; ++i) peer.ulpdu(request({.code = kFetchAdd, .stag = r.stag, .to = r.to}));
       return refusal(peer);
     }},
    {"more_atomics_than_ird", [](Target& t) { return overrun(t, false); }},
    {"more_atomics_and_reads_than_ird", [](Target& t) { return overrun(t, true); }},
    {"fetch_add_misaligned",
     [](Target& t) { return atomic_on(t, Memory::kShifted, [](const Region& r) { return r.to + 1; }); }},
    {"cmp_swap_misaligned",
     [](Target& t) {
       return atomic_on(
           t, Memory::kShifted, [](const Region& r) { return r.to + 2; }, kCmpSwap);
     }},
    {"atomic_at_misaligned_address", [](Target& t) { return atomic_on(t, Memory::kShifted, beginning); }},
    {"atomic_at_aligned_address",
     [](Target& t) { return odd_atomic(t, Memory::kShifted, 4, [](Bytes u, const Region&) { return u; }); }},
    {"atomic_on_stag_unknown", [](Target& t) { return refused(t, some_request()); }},
    {"atomic_on_revoked", [](Target& t) { return atomic_on(t, Memory::kRevoked, beginning); }},
    {"atomic_on_read_only", [](Target& t) { return atomic_on(t, Memory::kReadOnly, beginning); }},
    {"atomic_on_write_only", [](Target& t) { return atomic_on(t, Memory::kWriteOnly, beginning); }},
    {"atomic_on_other_domain", [](Target& t) { return atomic_on(t, Memory::kForeign, beginning); }},
    {"atomic_on_other_stream", [](Target& t) { return atomic_on(t, Memory::kOtherStream, beginning); }},
    {"atomic_below_buffer",
     [](Target& t) { return atomic_on(t, Memory::kOpen, [](const Region& r) { return r.to - 8; }); }},
    {"atomic_past_buffer",
     [](Target& t) { return atomic_on(t, Memory::kOpen, [](const Region& r) { return r.to + r.bytes - 4; }); }},
    {"atomic_behind_buffer",
     [](Target& t) {
       return atomic_on(
           t, Memory::kOpen, [](const Region& r) { return r.to + r.bytes; }, kCmpSwap);
     }},
    {"atomic_wraps",
     [](Target& t) { return atomic_on(t, Memory::kOpen, [](const Region&) { return ~std::uint64_t{0} - 3; }); }},
    // Atomic Responses.
    {"atomic_response_well", response_well},
    {"atomic_response_unasked",
     [](Target& t) {
       return refused(t, response({1, 0}));
     }},
    {"atomic_response_repeated", [](Target& t) { return bad_response(t, good_response, good_response); }},
    {"atomic_response_one_more",
     [](Target& t) {
       return bad_response(t, good_response, [](const AtomicRequest& r) { return response({r.id + 1, 0}, 2); });
     }},
    {"atomic_response_msn_skipped",
     [](Target& t) { return bad_response(t, [](const AtomicRequest& r) {
                       return response({r.id, 1}, 2);
                     }); }},
    {"atomic_response_to_other_request",
     [](Target& t) { return bad_response(t, [](const AtomicRequest& r) {
                       return response({r.id ^ 1, 1});
                     }); }},
    {"atomic_response_too_short",
     [](Target& t) {
       return bad_response(t, [](const AtomicRequest&) {
         return send_segment(Bytes(11), {}, Opcode::kAtomicResponse, rdmap::kAtomicResponseQn);
       });
     }},
    {"atomic_response_too_long",
     [](Target& t) {
       return bad_response(t, [](const AtomicRequest&) {
         return send_segment(Bytes(13), {}, Opcode::kAtomicResponse, rdmap::kAtomicResponseQn);
       });
     }},
};

}  // namespace

std::span<const Script> rfc7306_scripts() {
  return kScripts;
}

}  // namespace iwarp::hostile
