// Messages of a client that no RPC-over-RDMA responder may serve as they are, and odd ones that it must.
#include "tests/hostile/rpc_talk.h"
#include "tests/hostile/script.h"

namespace iwarp::hostile {
namespace {

using rpcrdma::Header;
using rpcrdma::Proc;
using samples::encode;
using samples::header;
using samples::null_call;
using samples::words;

constexpr std::uint32_t kXid = 77;

Reaction after(Target& target, const Bytes& message, Served served = Served::kNo) {
  Peer peer = open_rpc(target);
  peer.send(message);
  return rpc_verdict(peer, kXid, served);
}

Bytes versioned(std::uint32_t version) {
  Header h = header(kXid);
  h.version = version;
  return encode(h, null_call(kXid));
}

Reaction announced(Target& target, const Bytes& private_data, const Bytes& call) {
  Peer peer = open_rpc(target, private_data);
  peer.send(encode(header(kXid), call));
  return rpc_verdict(peer, kXid, Served::kYes);
}

// With thresholds of 1024 octets a READ of 2000 does not fit in line; with those announced it would.
Reaction defaults_apply(Target& target, const Bytes& private_data) {
  Peer peer = open_rpc(target, private_data);
  peer.send(encode(header(kXid), samples::read_call(kXid, 2000)));
  return rpc_verdict(peer, kXid);
}

// More Calls than were ever granted, all there before the first can be answered.
Reaction beyond_credits(Target& target) {
  Peer peer = open_rpc(target);
  Bytes burst;
  for (std::uint32_t i = 0; i < 200; ++i) {
    const Bytes message = encode(header(kXid + i), null_call(kXid + i));
    burst = std::move(burst) | test::fpdu(test::send_segment(message, {.msn = peer.take_msn()}), peer.crc);
  }
  peer.raw(burst);
  for (;;) {
    if (const auto end = peer.ending(peer.hear_message())) return *end;
  }
}

// Options of no known type, all there before the first can be answered, of a client that has settled on version 2.
Reaction flood_of_options(Target& target) {
  Peer peer = open_rpc(target, rpc_private_data(), Flavour::kVersion2);
  Header h = header(kXid);
  h.version = 2;
  peer.send(encode(h, null_call(kXid)));
  if (const auto end = peer.ending(peer.hear_message())) return *end;
  h.proc = Proc::kOptional;
  h.option = {99, Bytes(8)};
  Bytes burst;
  for (std::uint32_t i = 0; i < 200; ++i) {
    h.xid = kXid + i;
    burst = std::move(burst) | test::fpdu(test::send_segment(encode(h), {.msn = peer.take_msn()}), peer.crc);
  }
  peer.raw(burst);
  for (int i = 0; i < 256; ++i) {
    if (const auto end = peer.ending(peer.hear_message())) return *end;
  }
  return "served on";
}

Reaction backward_reply(Target& target) {
  return after(target, encode(header(kXid), samples::rpc_reply(kXid)));
}

// The same Call once more, after its Reply: it is another one.
Reaction replayed(Target& target) {
  Peer peer = open_rpc(target);
  const Bytes call = encode(header(kXid), samples::read_call(kXid, 64));
  peer.send(call);
  if (const auto end = peer.ending(peer.hear_message())) return *end;
  peer.send(call);
  return rpc_verdict(peer, kXid, Served::kYes);
}

// Another Call of the xid of one that the victim is still reading.
Reaction xid_taken(Target& target) {
  Peer peer = open_rpc(target);
  Header h = header(kXid, Proc::kNomsg);
  h.read_list = {{0, expose(peer, samples::write_call(kXid, pattern(5000)))}};
  peer.send(encode(h));
  const Heard request = peer.hear();
  if (request.kind != Heard::Kind::kReadRequest) throw std::runtime_error("the victim did not read");
  peer.send(encode(header(kXid), null_call(kXid)));
  // What is read and what is received completes in any order: it has seen the Call before the octets come.
  if (const Reaction early = rpc_verdict(peer, kXid); early != kIgnore) return early + ", before it has read";
  peer.respond(request.read);
  return rpc_verdict(peer, kXid, Served::kYes);
}

const Script kScripts[] = {
    {"version_2", [](Target& t) { return after(t, versioned(2)); }},
    {"version_0", [](Target& t) { return after(t, versioned(0)); }},
    {"version_of_other_octet_order", [](Target& t) { return after(t, versioned(0x01000000)); }},
    {"little_endian",
     [](Target& t) {
       // Words 3 to 6, the procedure and three absent lists; the last holds a 1, so that the order shows.
       return after(t, words({kXid, 1, 32, 0, 0, 0, 0x01000000}) | null_call(kXid));
     }},
    {"three_octets", [](Target& t) { return after(t, Bytes(3)); }},
    {"nothing", [](Target& t) { return after(t, {}); }},
    {"27_octets",
     [](Target& t) {
       const Bytes call = encode(header(kXid), null_call(kXid));
       return after(t, Bytes(call.begin(), call.begin() + 27));
     }},
    {"proc_5",
     [](Target& t) {
       return after(t, words({kXid, 1, 32, 5, 0, 0, 0}));
     }},
    {"rdma_msgp",
     [](Target& t) {
       return after(t, words({kXid, 1, 32, 2, 0, 0, 0, 0, 0}));
     }},
    {"rdma_done",
     [](Target& t) {
       return after(t, words({kXid, 1, 32, 3, 0, 0, 0}));
     }},
    {"rdma_error", [](Target& t) { return after(t, encode(rpcrdma::make_err_chunk(kXid, 1, 32))); }},
    {"rdma_error_undecodable",
     [](Target& t) {
       return after(t, words({kXid, 1, 32, 4, 9, 9, 9, 9}));
     }},
    {"rdma_error_cut_short",
     [](Target& t) {
       return after(t, words({kXid, 1, 32, 4, 1, 1}));
     }},
    {"other_xid_inside", [](Target& t) { return after(t, encode(header(kXid), null_call(kXid + 1))); }},
    {"no_rpc_message", [](Target& t) { return after(t, encode(header(kXid))); }},
    {"neither_call_nor_reply",
     [](Target& t) {
       return after(t, encode(header(kXid), words({kXid, 2, 2})));
     }},
    {"backward_reply_to_nothing", backward_reply},
    {"send_too_long", [](Target& t) { return after(t, encode(header(kXid), null_call(kXid)) | Bytes(4096)); }},
    {"beyond_credits", beyond_credits},
    {"flood_of_options", flood_of_options},
    {"zero_credits_wanted",
     [](Target& t) { return after(t, encode(header(kXid, Proc::kMsg, 0), null_call(kXid)), Served::kYes); }},
    {"all_credits_wanted",
     [](Target& t) { return after(t, encode(header(kXid, Proc::kMsg, 0xFFFFFFFF), null_call(kXid)), Served::kYes); }},
    {"xid_replayed", replayed},
    {"xid_of_another_call", xid_taken},
    {"private_data_absent", [](Target& t) { return defaults_apply(t, {}); }},
    {"private_data_other_identifier", [](Target& t) { return defaults_apply(t, hex("f6ab0e19 0101 0303")); }},
    {"private_data_version_2", [](Target& t) { return defaults_apply(t, hex("f6ab0e18 0201 0303")); }},
    {"private_data_cut_short", [](Target& t) { return defaults_apply(t, hex("f6ab0e18 0101 03")); }},
    {"private_data_reserved_bits",
     [](Target& t) { return announced(t, hex("f6ab0e18 01ff 0303"), samples::read_call(kXid, 2000)); }},
    {"private_data_absent_is_served", [](Target& t) { return announced(t, {}, null_call(kXid)); }},
};

}  // namespace

std::span<const Script> rpc_responder_scripts() {
  return kScripts;
}

}  // namespace iwarp::hostile
