// RDMA messages that contradict Figure 4 of RFC 5040 or its rules for Send, Terminate and invalidation.
#include "tests/hostile/rdma_talk.h"
#include "tests/hostile/script.h"

namespace iwarp::hostile {
namespace {

using rdmap::Opcode;
using test::send_segment;
using test::tagged_segment;
using test::write_segment;

Reaction broken(Target& target, const Bytes& ulpdu) {
  Peer peer = open(target);
  peer.ulpdu(ulpdu);
  return verdict(peer);
}

Reaction odd_announcement(Target& target, const Bytes& ulpdu) {
  Peer peer = open(target);
  (void)peer.take_msn();
  peer.ulpdu(ulpdu);
  return verdict(peer, true);
}

Bytes control(Bytes ulpdu, unsigned octet) {
  return altered(std::move(ulpdu), {{1, octet}});
}

// An announcement with Invalidate of memory that the victim has named.
Reaction invalidate(Target& target, Memory memory, Opcode op = Opcode::kSendInvalidate) {
  Peer peer = open(target);
  const Region region = find_memory(target, peer, memory);
  peer.send(info(), op, raw(region.stag));
  return verdict(peer, true);
}

// Memory that took a Write, and was then invalidated as its owner allows: `access` is one too many.
Reaction after_invalidation(Target& target, Bytes (*access)(const Region&)) {
  Peer peer = open(target);
  const Region region = find_memory(target, peer, Memory::kInvalidable);
  peer.ulpdu(write_segment(region.stag, region.to, pattern(4)));
  peer.send(info(), Opcode::kSendInvalidate, raw(region.stag));
  if (const Reaction before = verdict(peer, true); before != kIgnore) return before;
  peer.ulpdu(access(region));
  return verdict(peer);
}

// What is no Terminate that can be read still ends the stream; so does a good one. The victim says nothing any more.
Reaction terminated(Target& target, const Bytes& body) {
  Peer peer = open(target);
  peer.ulpdu(test::terminate_segment(body));
  return peer.ending(peer.hear_message()).value_or("a message");
}

const Script kScripts[] = {
    {"rdmap_version_2", [](Target& t) { return broken(t, control(send_segment(info()), 0x83)); }},
    {"rdmap_version_3", [](Target& t) { return broken(t, control(send_segment(info()), 0xC3)); }},
    {"rdmap_version_2_tagged", [](Target& t) { return broken(t, control(write_segment(Stag{1}, 0, {}), 0x80)); }},
    {"rdmap_version_2_read_request",
     [](Target& t) {
       return broken(t, control(test::read_request_segment({Stag{1}, 0, 0, Stag{1}, 0}), 0x81));
     }},
    {"rdmap_version_0", [](Target& t) { return odd_announcement(t, control(send_segment(info()), 0x03)); }},
    {"opcode_8", [](Target& t) { return broken(t, control(send_segment(info()), 0x48)); }},
    {"opcode_15_tagged", [](Target& t) { return broken(t, control(write_segment(Stag{1}, 0, {}), 0x4F)); }},
    {"rdmap_reserved_bits", [](Target& t) { return odd_announcement(t, control(send_segment(info()), 0x73)); }},
    {"invalidate_field_in_send",
     [](Target& t) { return odd_announcement(t, send_segment(info(), {.tail = 0x12345600})); }},
    {"untagged_write", [](Target& t) { return broken(t, send_segment(pattern(4), {}, Opcode::kWrite)); }},
    {"untagged_read_response",
     [](Target& t) { return broken(t, send_segment(pattern(4), {}, Opcode::kReadResponse)); }},
    {"tagged_send", [](Target& t) { return broken(t, tagged_segment(Opcode::kSend, Stag{1}, 0, pattern(4))); }},
    {"tagged_send_invalidate",
     [](Target& t) { return broken(t, tagged_segment(Opcode::kSendInvalidate, Stag{1}, 0, pattern(4))); }},
    {"tagged_send_solicited",
     [](Target& t) { return broken(t, tagged_segment(Opcode::kSendSolicited, Stag{1}, 0, pattern(4))); }},
    {"tagged_send_solicited_invalidate",
     [](Target& t) { return broken(t, tagged_segment(Opcode::kSendSolicitedInvalidate, Stag{1}, 0, pattern(4))); }},
    {"tagged_read_request",
     [](Target& t) {
       const Bytes body = test::header_bytes(rdmap::ReadRequest{Stag{1}, 0, 4, Stag{1}, 0});
       return broken(t, tagged_segment(Opcode::kReadRequest, Stag{1}, 0, body));
     }},
    {"tagged_terminate",
     [](Target& t) { return broken(t, tagged_segment(Opcode::kTerminate, Stag{1}, 0, hex("20020000"))); }},
    {"send_on_read_queue", [](Target& t) { return broken(t, send_segment(info(), {}, Opcode::kSend, 1)); }},
    {"send_on_terminate_queue", [](Target& t) { return broken(t, send_segment(info(), {}, Opcode::kSend, 2)); }},
    {"send_on_unknown_queue", [](Target& t) { return broken(t, send_segment(info(), {}, Opcode::kSend, 7)); }},
    {"terminate_on_send_queue",
     [](Target& t) { return broken(t, send_segment(hex("20020000"), {}, Opcode::kTerminate, 0)); }},
    {"empty_send_without_receive",
     [](Target& t) {
       Peer peer = open(t);
       (void)provoke_read(peer);
       for (std::size_t i = 0; i < 4 * kReceives; ++i) peer.send({});
       return peer.ending(peer.hear_message()).value_or("a message");
     }},
    {"empty_send",
     [](Target& t) {
       Peer peer = open(t);
       peer.send({});
       return verdict(peer);
     }},
    {"invalidate_unknown",
     [](Target& t) { return broken(t, send_segment({}, {.tail = 0x12345600}, Opcode::kSendInvalidate)); }},
    {"invalidate_unknown_solicited",
     [](Target& t) { return broken(t, send_segment({}, {.tail = 0x12345600}, Opcode::kSendSolicitedInvalidate)); }},
    {"invalidate_without_right", [](Target& t) { return invalidate(t, Memory::kOpen); }},
    {"invalidate_other_stream", [](Target& t) { return invalidate(t, Memory::kOtherStream); }},
    {"invalidate_other_domain", [](Target& t) { return invalidate(t, Memory::kForeign); }},
    {"invalidate_other_stream_solicited",
     [](Target& t) { return invalidate(t, Memory::kOtherStream, Opcode::kSendSolicitedInvalidate); }},
    {"write_to_invalidated",
     [](Target& t) {
       return after_invalidation(t, [](const Region& r) { return write_segment(r.stag, r.to, pattern(4)); });
     }},
    {"read_from_invalidated",
     [](Target& t) {
       return after_invalidation(t, [](const Region& r) {
         return test::read_request_segment({Stag{1}, 0, 4, r.stag, r.to});
       });
     }},
    {"terminate_cut_short", [](Target& t) { return terminated(t, hex("2002")); }},
    {"terminate_empty", [](Target& t) { return terminated(t, {}); }},
    {"terminate_reserved_bits", [](Target& t) { return terminated(t, hex("20021fff")); }},
    {"terminate_too_long",
     [](Target& t) { return terminated(t, hex("20020000") | Bytes(rdmap::TerminateMessage::kMaxSize)); }},
    {"terminate_twice",
     [](Target& t) {
       Peer peer = open(t);
       peer.raw(test::fpdu(test::terminate_segment(hex("20020000")), peer.crc) |
                test::fpdu(send_segment(hex("20020000"), {.msn = 2}, Opcode::kTerminate, 2), peer.crc));
       return peer.ending(peer.hear_message()).value_or("a message");
     }},
};

}  // namespace

std::span<const Script> rdmap_scripts() {
  return kScripts;
}

}  // namespace iwarp::hostile
