// Segments that the DDP checks of RFC 5041 s7.1 must catch, and odd ones that they must not.
#include "tests/hostile/rdma_talk.h"
#include "tests/hostile/script.h"

namespace iwarp::hostile {
namespace {

using rdmap::Opcode;
using test::send_segment;
using test::write_segment;

// One ULPDU that breaks the rule, on a fresh connection where MSN 1 is due everywhere.
Reaction broken(Target& target, const Bytes& ulpdu) {
  Peer peer = open(target);
  peer.ulpdu(ulpdu);
  return verdict(peer);
}

// A Write to memory that the victim has named; `where` makes its TO.
Reaction write_to(Target& target, Memory memory, std::uint64_t (*where)(const Region&), std::size_t length = 4) {
  Peer peer = open(target);
  const Region region = find_memory(target, peer, memory);
  peer.ulpdu(write_segment(region.stag, where(region), pattern(length)));
  return verdict(peer);
}
Reaction write_to(Target& target, Memory memory) {
  return write_to(target, memory, [](const Region& r) { return r.to; });
}

Reaction long_write(Target& target) {
  Peer peer = open(target);
  const Region region = find_memory(target, peer, Memory::kOpen);
  peer.ulpdu(write_segment(region.stag, region.to, pattern(region.bytes + 1)));
  return verdict(peer);
}

Reaction mistyped_key(Target& target) {
  Peer peer = open(target);
  const Region region = find_memory(target, peer, Memory::kOpen);
  peer.ulpdu(write_segment(Stag{raw(region.stag) ^ 0x5A}, region.to, pattern(4)));
  return verdict(peer);
}

// The announcing Send is itself odd, but good.
Reaction odd_announcement(Target& target, Bytes (*make)(Bytes)) {
  Peer peer = open(target);
  peer.ulpdu(make(send_segment(info(), {.msn = peer.take_msn()})));
  return verdict(peer, true);
}

// A Send in two segments; `second` makes the latter.
Reaction two_segments(Target& target, const Bytes& second) {
  Peer peer = open(target);
  const Bytes whole = info();
  peer.ulpdu(send_segment(Bytes(whole.begin(), whole.begin() + 8), {.msn = peer.take_msn(), .last = false}));
  peer.ulpdu(second);
  return verdict(peer, true);
}
Bytes second_half() {
  const Bytes whole = info();
  return {whole.begin() + 8, whole.end()};
}

// The victim waits for its Read; all its receives get used up.
Reaction use_up_receives(Target& target, Flavour flavour) {
  Peer peer = open(target, flavour);
  (void)provoke_read(peer);
  for (std::size_t i = 0; i < 4 * kReceives; ++i) peer.send(info());
  return peer.ending(peer.hear_message()).value_or("a message");
}

Reaction first_segment_last(Target& target) {
  Peer peer = open(target);
  const std::uint32_t msn = peer.take_msn();
  peer.ulpdu(send_segment(second_half(), {.msn = msn, .mo = 8}));
  peer.ulpdu(send_segment(second_half(), {.msn = msn, .mo = 0, .last = false}));
  return verdict(peer, true);
}

const Script kScripts[] = {
    {"ddp_version_untagged",
     [](Target& t) {
       return broken(t, altered(send_segment(info()), {{0, 0x42}}));
     }},
    {"ddp_version_0",
     [](Target& t) {
       return broken(t, altered(send_segment(info()), {{0, 0x40}}));
     }},
    {"ddp_version_tagged",
     [](Target& t) {
       return broken(t, altered(write_segment(Stag{1}, 0, {}), {{0, 0xC0}}));
     }},
    {"ddp_version_changes",
     [](Target& t) {
       Peer peer = open(t);
       if (const Reaction before = verdict(peer); before != kIgnore) return before;
       peer.ulpdu(altered(send_segment(info(), {.msn = peer.take_msn()}), {{0, 0x42}}));
       return verdict(peer);
     }},
    {"ddp_version_changes_tagged",
     [](Target& t) {
       Peer peer = open(t);
       if (const Reaction before = verdict(peer); before != kIgnore) return before;
       peer.ulpdu(altered(write_segment(Stag{1}, 0, {}), {{0, 0xC0}}));
       return verdict(peer);
     }},
    {"ddp_reserved_bits",
     [](Target& t) { return odd_announcement(t, [](Bytes u) {
                       return altered(u, {{0, 0x7D}, {1, 0x73}});
                     }); }},
    {"queue_unknown", [](Target& t) { return broken(t, send_segment(info(), {}, Opcode::kSend, 3)); }},
    {"queue_changes_within_message",
     [](Target& t) { return two_segments(t, send_segment(second_half(), {.mo = 8}, Opcode::kSend, 3)); }},
    {"msn_zero", [](Target& t) { return broken(t, send_segment(info(), {.msn = 0})); }},
    {"msn_skipped", [](Target& t) { return broken(t, send_segment(info(), {.msn = 2})); }},
    {"msn_far_ahead", [](Target& t) { return broken(t, send_segment(info(), {.msn = 0x80000000})); }},
    {"msn_repeated",
     [](Target& t) {
       Peer peer = open(t);
       if (const Reaction before = verdict(peer); before != kIgnore) return before;
       peer.ulpdu(send_segment(info(), {.msn = 1}));
       return verdict(peer);
     }},
    {"msn_changes_within_message",
     [](Target& t) { return two_segments(t, send_segment(second_half(), {.msn = 2, .mo = 8})); }},
    {"mo_not_zero_first", [](Target& t) { return broken(t, send_segment(info(), {.mo = 4})); }},
    {"mo_outside_buffer", [](Target& t) { return broken(t, send_segment(info(), {.mo = 0x10000})); }},
    {"mo_gap", [](Target& t) { return two_segments(t, send_segment(second_half(), {.mo = 12})); }},
    {"mo_overlaps", [](Target& t) { return two_segments(t, send_segment(second_half(), {.mo = 4})); }},
    {"segments_in_wrong_order", first_segment_last},
    {"rsvd_ulp_changes_within_message",
     [](Target& t) {
       return two_segments(t, altered(send_segment(second_half(), {.mo = 8}), {{1, 0x73}}));
     }},
    {"send_too_long", [](Target& t) { return broken(t, send_segment(pattern(kSlotBytes + 1))); }},
    {"send_of_16_kib", [](Target& t) { return broken(t, send_segment(pattern(16384))); }},
    {"more_sends_than_receives", [](Target& t) { return use_up_receives(t, Flavour::kDefault); }},
    {"more_sends_than_shared_receives", [](Target& t) { return use_up_receives(t, Flavour::kSharedReceives); }},
    {"write_to_stag_unknown", [](Target& t) { return broken(t, write_segment(Stag{0x12345600}, kBase, pattern(4))); }},
    {"write_to_stag_zero", [](Target& t) { return broken(t, write_segment(Stag{0}, kBase, pattern(4))); }},
    {"write_with_wrong_key", mistyped_key},
    {"write_to_revoked", [](Target& t) { return write_to(t, Memory::kRevoked); }},
    {"write_to_read_only", [](Target& t) { return write_to(t, Memory::kReadOnly); }},
    {"write_to_other_domain", [](Target& t) { return write_to(t, Memory::kForeign); }},
    {"write_to_other_stream", [](Target& t) { return write_to(t, Memory::kOtherStream); }},
    {"write_below_buffer",
     [](Target& t) { return write_to(t, Memory::kOpen, [](const Region& r) { return r.to - 1; }); }},
    {"write_past_buffer",
     [](Target& t) { return write_to(t, Memory::kOpen, [](const Region& r) { return r.to + r.bytes - 3; }); }},
    {"write_behind_buffer",
     [](Target& t) { return write_to(t, Memory::kOpen, [](const Region& r) { return r.to + r.bytes; }); }},
    {"write_wraps",
     [](Target& t) { return write_to(t, Memory::kOpen, [](const Region&) { return ~std::uint64_t{0} - 1; }); }},
    {"long_write_past_buffer", long_write},
    {"write_inside_buffer",
     [](Target& t) { return write_to(t, Memory::kOpen, [](const Region& r) { return r.to + r.bytes - 4; }); }},
    {"empty_write_to_nowhere",
     [](Target& t) { return broken(t, write_segment(Stag{0xFFFFFFFF}, ~std::uint64_t{0}, {})); }},
    {"write_segments_differ_in_rsvd_ulp",
     [](Target& t) {
       Peer peer = open(t);
       const Region r = find_memory(t, peer, Memory::kOpen);
       peer.ulpdu(altered(write_segment(r.stag, r.to, pattern(8), false), {{1, 0x70}}));
       peer.ulpdu(write_segment(r.stag, r.to + 8, pattern(8)));
       return verdict(peer);
     }},
    {"write_segments_in_wrong_order",
     [](Target& t) {
       Peer peer = open(t);
       const Region r = find_memory(t, peer, Memory::kOpen);
       peer.ulpdu(write_segment(r.stag, r.to + 8, pattern(8), false));
       peer.ulpdu(write_segment(r.stag, r.to, pattern(8)));
       return verdict(peer);
     }},
    {"write_segment_after_send_began",
     [](Target& t) {
       Peer peer = open(t);
       const std::uint32_t msn = peer.take_msn();
       const Bytes whole = info();
       peer.ulpdu(send_segment(Bytes(whole.begin(), whole.begin() + 8), {.msn = msn, .last = false}));
       peer.ulpdu(write_segment(Stag{0x12345600}, kBase, pattern(4)));
       return verdict(peer);
     }},
};

}  // namespace

std::span<const Script> ddp_scripts() {
  return kScripts;
}

}  // namespace iwarp::hostile
