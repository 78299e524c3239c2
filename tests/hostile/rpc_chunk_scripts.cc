// Chunk lists of a client that cannot be what they say, or do not suit the Call.
#include "tests/hostile/rpc_talk.h"
#include "tests/hostile/script.h"

namespace iwarp::hostile {
namespace {

using rpcrdma::Header;
using rpcrdma::Proc;
using rpcrdma::Segment;
using rpcrdma::WriteChunk;
using samples::encode;
using samples::header;
using samples::words;

constexpr std::uint32_t kXid = 77;
// Enough for a victim that wants to react.
constexpr int kMomentMs = 2000;

// One message whose header `edit` made.
Reaction edited(Target& target, Proc proc, void (*edit)(Peer&, Header&), const Bytes& payload = {},
                Served served = Served::kNo) {
  Peer peer = open_rpc(target);
  Header h = header(kXid, proc);
  edit(peer, h);
  peer.send(encode(h, payload));
  return rpc_verdict(peer, kXid, served);
}

Reaction raw_lists(Target& target, std::initializer_list<std::uint32_t> after_credits) {
  Peer peer = open_rpc(target);
  peer.send(words({kXid, 1, 32}) | words(after_credits));
  return rpc_verdict(peer, kXid);
}

// A WRITE of 1000 octets whose data are `data`, read from position `offset` octets behind where they belong.
Reaction write_data(Target& target, const Bytes& data, std::uint32_t offset = 0, const Bytes& rest = {}) {
  Peer peer = open_rpc(target);
  const Bytes head = samples::write_call_head(kXid, 1000);
  Header h = header(kXid);
  h.read_list = {{static_cast<std::uint32_t>(head.size()) + offset, expose(peer, data)}};
  peer.send(encode(h, head | rest));
  return rpc_verdict(peer, kXid, Served::kMay);
}

// A WRITE of 1001 octets: three of padding may be in the chunk, or not.
Reaction padded_write(Target& target, std::size_t chunk_bytes, Served served) {
  Peer peer = open_rpc(target);
  const Bytes head = samples::write_call_head(kXid, 1001);
  Header h = header(kXid);
  h.read_list = {{static_cast<std::uint32_t>(head.size()), expose(peer, pattern(chunk_bytes))}};
  peer.send(encode(h, head));
  return rpc_verdict(peer, kXid, served);
}

// The file handle of a GETATTR, which must stay in line.
void reduce_handle(Peer& peer, Header& h) {
  h.read_list = {{44, expose(peer, pattern(32, 5))}};
}
Bytes handleless_getattr() {
  return samples::rpc_call(kXid, samples::kNfs, 3, 1, words({32}));
}

// An NFSACL GETACL, whose file handle is in a chunk.
Bytes handleless_getacl() {
  return samples::rpc_call(kXid, 100227, 3, 1, words({32}));
}

// RPCSEC_GSS with integrity: nothing may be reduced.
Bytes gss_write_head() {
  return words({kXid, 0, 2, samples::kNfs, 3, 7, 6, 20, 1, 0, 1, 2, 0, 0, 0, 1000});
}

Reaction gss(Target& target) {
  Peer peer = open_rpc(target);
  const Bytes head = gss_write_head();
  Header h = header(kXid);
  h.read_list = {{static_cast<std::uint32_t>(head.size()), expose(peer, pattern(1000))}};
  peer.send(encode(h, head));
  return rpc_verdict(peer, kXid, Served::kMay);
}

Reaction long_call(Target& target, std::uint32_t xid_inside, Served served) {
  Peer peer = open_rpc(target);
  Header h = header(kXid, Proc::kNomsg);
  h.read_list = {{0, expose(peer, samples::write_call(xid_inside, pattern(5000)))}};
  peer.send(encode(h));
  return rpc_verdict(peer, kXid, served);
}

// The victim reads a long Call; before it gets the octets, there comes a segment that `attack` makes, against the
// memory that it reads into.
Reaction against_sink(Target& target, Bytes (*attack)(const rdmap::ReadRequest&)) {
  Peer peer = open_rpc(target);
  Header h = header(kXid, Proc::kNomsg);
  h.read_list = {{0, expose(peer, samples::write_call(kXid, pattern(5000)))}};
  peer.send(encode(h));
  const Heard request = peer.hear();
  if (request.kind != Heard::Kind::kReadRequest) throw std::runtime_error("the victim did not read");
  peer.ulpdu(attack(request.read));
  const Heard heard = peer.hear(kMomentMs);
  if (heard.kind != Heard::Kind::kSilence && heard.kind != Heard::Kind::kReadResponse)
    return peer.ending(heard).value_or("a message");
  peer.respond(request.read);
  return rpc_verdict(peer, kXid, Served::kYes);
}

const Script kScripts[] = {
    {"read_from_sink",
     [](Target& t) {
       return against_sink(t, [](const rdmap::ReadRequest& r) {
         return test::read_request_segment({Stag{0x500}, 9, 4, r.sink_stag, r.sink_to});
       });
     }},
    {"write_into_sink",
     [](Target& t) {
       return against_sink(
           t, [](const rdmap::ReadRequest& r) { return test::write_segment(r.sink_stag, r.sink_to, pattern(4)); });
     }},
    {"nomsg_without_lists", [](Target& t) { return edited(t, Proc::kNomsg, [](Peer&, Header&) {}); }},
    {"nomsg_without_payload",
     [](Target& t) {
       return edited(t, Proc::kNomsg, [](Peer&, Header& h) { h.reply_chunk = WriteChunk{{room(100)}}; });
     }},
    {"payload_in_two_places",
     [](Target& t) {
       return edited(
           t, Proc::kMsg,
           [](Peer& p, Header& h) {
             h.read_list = {{0, expose(p, samples::null_call(kXid))}};
           },
           samples::null_call(kXid));
     }},
    {"position_not_multiple_of_4", [](Target& t) { return write_data(t, pattern(1000), 2); }},
    {"position_elsewhere", [](Target& t) { return write_data(t, pattern(1000), 4, Bytes(4)); }},
    {"position_behind_message", [](Target& t) { return write_data(t, pattern(1000), 4000); }},
    {"chunk_shorter_than_item", [](Target& t) { return write_data(t, pattern(996)); }},
    {"chunk_longer_than_item", [](Target& t) { return write_data(t, pattern(1004)); }},
    {"padding_in_chunk", [](Target& t) { return padded_write(t, 1004, Served::kYes); }},
    {"padding_left_out", [](Target& t) { return padded_write(t, 1001, Served::kYes); }},
    {"padding_of_wrong_length", [](Target& t) { return padded_write(t, 1003, Served::kMay); }},
    {"padding_left_in_line",
     [](Target& t) {
       Peer peer = open_rpc(t);
       const Bytes head = samples::write_call_head(kXid, 1001);
       Header h = header(kXid);
       h.read_list = {{static_cast<std::uint32_t>(head.size()), expose(peer, pattern(1001))}};
       peer.send(encode(h, head | Bytes(3)));
       return rpc_verdict(peer, kXid, Served::kMay);
     }},
    {"chunks_overlap",
     [](Target& t) {
       return edited(
           t, Proc::kMsg,
           [](Peer& p, Header& h) {
             h.read_list = {{40, expose(p, pattern(1000))}, {44, expose(p, pattern(8))}};
           },
           samples::write_call_head(kXid, 1000));
     }},
    {"item_not_eligible",
     [](Target& t) { return edited(t, Proc::kMsg, reduce_handle, handleless_getattr(), Served::kMay); }},
    {"item_of_nfsacl",
     [](Target& t) { return edited(t, Proc::kMsg, reduce_handle, handleless_getacl(), Served::kMay); }},
    {"item_under_gss_integrity", gss},
    {"long_call_of_other_xid", [](Target& t) { return long_call(t, kXid + 1, Served::kNo); }},
    {"long_call", [](Target& t) { return long_call(t, kXid, Served::kYes); }},
    {"position_zero_and_other_mixed",
     [](Target& t) {
       return edited(t, Proc::kNomsg, [](Peer& p, Header& h) {
         h.read_list = {{4, expose(p, pattern(64))}, {8, expose(p, pattern(64))}};
       });
     }},
    {"call_of_64_gib",
     [](Target& t) {
       return edited(t, Proc::kNomsg, [](Peer&, Header& h) {
         for (int i = 0; i < 16; ++i) h.read_list.push_back({0, {Stag{1}, 0xFFFFFFFF, 0}});
       });
     }},
    {"write_chunk_of_2_g_segments",
     [](Target& t) {
       return raw_lists(t, {0, 0, 1, 0x7FFFFFFF});
     }},
    {"reply_chunk_of_2_g_segments",
     [](Target& t) {
       return raw_lists(t, {0, 0, 0, 1, 0xFFFFFFFF});
     }},
    {"read_list_never_ends",
     [](Target& t) {
       return raw_lists(t, {0, 1, 4, 1, 100, 0, 0, 1});
     }},
    {"list_mark_is_2",
     [](Target& t) {
       return raw_lists(t, {0, 2, 0, 0, kXid, 0, 2});
     }},
    {"many_write_chunks",
     [](Target& t) {
       return edited(
           t, Proc::kMsg,
           [](Peer&, Header& h) {
             for (int i = 0; i < 17; ++i) h.write_list.push_back({{room(64)}});
           },
           samples::read_call(kXid, 64), Served::kMay);
     }},
    {"reply_without_room",
     [](Target& t) {
       return edited(
           t, Proc::kMsg, [](Peer&, Header&) {}, samples::read_call(kXid, 100000));
     }},
    {"reply_chunk_too_small",
     [](Target& t) {
       return edited(
           t, Proc::kMsg, [](Peer&, Header& h) { h.reply_chunk = WriteChunk{{room(5000)}}; },
           samples::read_call(kXid, 100000));
     }},
    {"write_chunks_overlap",
     [](Target& t) {
       return edited(
           t, Proc::kMsg,
           [](Peer&, Header& h) {
             h.write_list = {{{room(4096)}}, {{room(4096)}}};
           },
           samples::read_call(kXid, 3000), Served::kYes);
     }},
    {"write_chunk_and_reply_chunk_overlap",
     [](Target& t) {
       return edited(
           t, Proc::kMsg,
           [](Peer&, Header& h) {
             h.write_list = {{{room(4096), room(4096)}}};
             h.reply_chunk = WriteChunk{{room(4096)}};
           },
           samples::read_call(kXid, 8000), Served::kYes);
     }},
    {"read_chunk_and_write_chunk_overlap",
     [](Target& t) {
       return edited(
           t, Proc::kNomsg,
           [](Peer& p, Header& h) {
             const Segment both = expose(p, samples::read_call(kXid, 64));
             h.read_list = {{0, both}};
             h.write_list = {{{both}}};
           },
           {}, Served::kYes);
     }},
    {"write_chunk_too_small",
     [](Target& t) {
       return edited(
           t, Proc::kMsg, [](Peer&, Header& h) { h.write_list.push_back({{room(50)}}); }, samples::read_call(kXid, 51));
     }},
};

}  // namespace

std::span<const Script> rpc_chunk_scripts() {
  return kScripts;
}

}  // namespace iwarp::hostile
