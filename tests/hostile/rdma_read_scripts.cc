// Read Requests that no source may serve, and Read Responses that no sink may take.
#include "tests/hostile/rdma_talk.h"
#include "tests/hostile/script.h"

namespace iwarp::hostile {
namespace {

using rdmap::Opcode;
using rdmap::ReadRequest;
using test::read_request_segment;
using test::send_segment;
using test::tagged_segment;

Reaction broken(Target& target, const Bytes& ulpdu) {
  Peer peer = open(target);
  peer.ulpdu(ulpdu);
  return verdict(peer);
}

Bytes read(Stag source, std::uint64_t to, std::uint32_t size, std::uint32_t msn = 1) {
  return read_request_segment({Stag{0x500}, 9, size, source, to}, msn);
}

// Reads memory that the victim has named, from the TO that `where` makes.
Reaction read_from(Target& target, Memory memory, std::uint64_t (*where)(const Region&), std::uint32_t size = 4) {
  Peer peer = open(target);
  const Region region = find_memory(target, peer, memory);
  peer.ulpdu(read(region.stag, where(region), size));
  return verdict(peer);
}
std::uint64_t beginning(const Region& region) {
  return region.to;
}

// A good Read: the Response must name the sink as the Request did, and hold no more and no less.
Reaction read_well(Target& target, std::uint32_t size) {
  Peer peer = open(target);
  const Region from = size == 0 ? Region{Stag{0xFFFFFFFF}, kBase} : find_memory(target, peer, Memory::kOpen);
  peer.ulpdu(read(from.stag, from.to, size));
  const Heard heard = peer.hear();
  if (heard.kind != Heard::Kind::kReadResponse || heard.payload.size() != size || heard.stag != Stag{0x500} ||
      heard.to != 9) {
    return peer.ending(heard).value_or("another answer to the Read");
  }
  return verdict(peer);
}

// Answers the victim's Read with something else.
Reaction bad_response(Target& target, Bytes (*response)(const ReadRequest&), std::uint32_t size = 64) {
  Peer peer = open(target);
  peer.ulpdu(response(provoke_read(peer, size)));
  return peer.ending(peer.hear_message()).value_or("served on");
}
Bytes respond(Stag stag, std::uint64_t to, std::size_t length, bool last = true) {
  return tagged_segment(Opcode::kReadResponse, stag, to, pattern(length), last);
}

Reaction overrun(Target& target) {
  Peer peer = open(target);
  peer.raw(read_burst(peer, 256));
  return peer.ending(peer.hear_message()).value_or("a message");
}

Reaction response_twice(Target& target) {
  Peer peer = open(target);
  const ReadRequest request = provoke_read(peer);
  peer.respond(request);
  peer.respond(request);
  return peer.ending(peer.hear_message()).value_or([&] {
    return peer.ending(peer.hear_message()).value_or("served on");
  }());
}

Reaction write_into_sink(Target& target) {
  Peer peer = open(target);
  const ReadRequest request = provoke_read(peer);
  peer.ulpdu(test::write_segment(request.sink_stag, request.sink_to, pattern(4)));
  peer.respond(request);
  return verdict(peer, true);
}

const Script kScripts[] = {
    {"read_request_on_send_queue",
     [](Target& t) {
       const Bytes body = test::header_bytes(ReadRequest{Stag{1}, 0, 4, Stag{1}, 0});
       return broken(t, send_segment(body, {}, Opcode::kReadRequest, 0));
     }},
    {"read_request_on_unknown_queue",
     [](Target& t) {
       const Bytes body = test::header_bytes(ReadRequest{Stag{1}, 0, 4, Stag{1}, 0});
       return broken(t, send_segment(body, {}, Opcode::kReadRequest, 9));
     }},
    {"read_request_too_long", [](Target& t) { return broken(t, read(Stag{1}, 0, 4) | Bytes(1)); }},
    {"read_request_too_short",
     [](Target& t) { return broken(t, send_segment(pattern(20), {}, Opcode::kReadRequest, 1)); }},
    {"read_request_msn", [](Target& t) { return broken(t, read(Stag{1}, 0, 0, 2)); }},
    {"read_from_stag_unknown", [](Target& t) { return broken(t, read(Stag{0x12345600}, kBase, 4)); }},
    {"read_from_revoked", [](Target& t) { return read_from(t, Memory::kRevoked, beginning); }},
    {"read_from_write_only", [](Target& t) { return read_from(t, Memory::kWriteOnly, beginning); }},
    {"read_from_other_domain", [](Target& t) { return read_from(t, Memory::kForeign, beginning); }},
    {"read_from_other_stream", [](Target& t) { return read_from(t, Memory::kOtherStream, beginning); }},
    {"read_below_buffer",
     [](Target& t) { return read_from(t, Memory::kOpen, [](const Region& r) { return r.to - 1; }); }},
    {"read_past_buffer",
     [](Target& t) { return read_from(t, Memory::kOpen, [](const Region& r) { return r.to + r.bytes - 3; }); }},
    {"read_4_gib", [](Target& t) { return read_from(t, Memory::kOpen, beginning, 0xFFFFFFFF); }},
    {"read_wraps",
     [](Target& t) { return read_from(t, Memory::kOpen, [](const Region&) { return ~std::uint64_t{0} - 1; }); }},
    {"read_well", [](Target& t) { return read_well(t, 60); }},
    {"read_nothing_from_nowhere", [](Target& t) { return read_well(t, 0); }},
    {"more_reads_than_ird", overrun},
    {"unasked_response", [](Target& t) { return broken(t, respond(Stag{1}, kBase, 4)); }},
    {"response_twice", response_twice},
    {"response_to_other_stag",
     [](Target& t) {
       return bad_response(t,
                           [](const ReadRequest& r) { return respond(Stag{raw(r.sink_stag) ^ 1}, r.sink_to, r.size); });
     }},
    {"response_to_other_to",
     [](Target& t) {
       return bad_response(t, [](const ReadRequest& r) { return respond(r.sink_stag, r.sink_to + 4, r.size); });
     }},
    {"response_too_long",
     [](Target& t) {
       return bad_response(t, [](const ReadRequest& r) { return respond(r.sink_stag, r.sink_to, r.size + 1); });
     }},
    {"response_too_short",
     [](Target& t) {
       return bad_response(t, [](const ReadRequest& r) { return respond(r.sink_stag, r.sink_to, r.size - 1); });
     }},
    {"response_never_last",
     [](Target& t) {
       return bad_response(t, [](const ReadRequest& r) { return respond(r.sink_stag, r.sink_to, r.size + 4, false); });
     }},
    {"untagged_response",
     [](Target& t) {
       return bad_response(
           t, [](const ReadRequest& r) { return send_segment(pattern(r.size), {}, Opcode::kReadResponse); });
     }},
    {"write_into_sink", write_into_sink},
};

}  // namespace

std::span<const Script> rdma_read_scripts() {
  return kScripts;
}

}  // namespace iwarp::hostile
