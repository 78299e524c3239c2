// Messages of a server that no RPC-over-RDMA requester may take for a Reply: what cannot be read ends the connection,
// what is to no Call of ours is dropped, and a Reply with the wrong chunks ends its RPC with an error.
#include "tests/hostile/rpc_talk.h"
#include "tests/hostile/script.h"

namespace iwarp::hostile {
namespace {

using rpcrdma::Header;
using rpcrdma::Proc;
using rpcrdma::WriteChunk;
using samples::Decoded;
using samples::encode;
using samples::header;
using samples::rpc_reply;
using samples::words;

// Instead of the Reply to a Call of that kind comes what `edit` makes of a Reply's header.
Reaction edited(Target& target, bool with_reply_chunk, void (*edit)(Header&, const Decoded&), bool in_line = true) {
  RpcServer server(target);
  const Decoded call = server.next_call(with_reply_chunk);
  Header h = header(call.header.xid, Proc::kMsg, 1);
  edit(h, call);
  server.send(h, in_line ? rpc_reply(call.header.xid) : Bytes{});
  return server.verdict(call);
}

Reaction after(Target& target, Bytes (*message)(std::uint32_t xid)) {
  RpcServer server(target);
  const Decoded call = server.next_call(false);
  server.peer.send(message(call.header.xid));
  return server.verdict(call);
}

// The Reply chunk with other lengths.
WriteChunk filled(const Decoded& call, std::uint32_t length) {
  WriteChunk chunk = *call.header.reply_chunk;
  chunk.segments[0].length = length;
  return chunk;
}

Reaction backward(Target& target, void (*edit)(Header&), const Bytes& rpc, Flavour flavour = Flavour::kDefault) {
  RpcServer server(target, rpc_private_data(), flavour);
  const Decoded call = server.next_call(false);
  Header h = header(0xBAC, Proc::kMsg, 2);
  edit(h);
  server.send(h, rpc);
  return server.verdict(call);
}

// A backward Call whose message is in a Read chunk, and is of another xid. Who takes chunks has to read it first.
Reaction backward_chunk_of_other_xid(Target& target) {
  RpcServer server(target, rpc_private_data(), Flavour::kBackwardChunks);
  const Decoded call = server.next_call(false);
  Header h = header(0xBAC, Proc::kNomsg, 2);
  h.read_list = {{0, expose(server.peer, samples::rpc_call(0xBAD, 0x40000000, 1, 1))}};
  server.send(h);
  const Heard heard = server.peer.hear_message();
  if (const auto end = server.peer.ending(heard)) return *end;
  const Header answer = samples::decode(heard.payload).header;
  const bool refused = answer.proc == Proc::kError && answer.error.code == rpcrdma::HeaderError::kChunk;
  if (answer.xid != 0xBAC || !refused) return "an answer that is no ERR_CHUNK";
  const Reaction after = server.verdict(call);
  return after == kIgnore ? kErrChunk : after;
}

// More backward Calls in Read chunks than there are credits, all there before the first can be read.
Reaction flood_of_backward_chunks(Target& target) {
  RpcServer server(target, rpc_private_data(), Flavour::kBackwardChunks);
  (void)server.next_call(false);
  Peer& peer = server.peer;
  const rpcrdma::Segment chunk = expose(peer, samples::rpc_call(0xBAD0, 0x40000000, 1, 1));
  Bytes burst;
  for (std::uint32_t i = 0; i < 200; ++i) {
    Header h = header(0xBAD0 + i, Proc::kNomsg, 2);
    h.read_list = {{0, chunk}};
    burst = std::move(burst) | test::fpdu(test::send_segment(encode(h), {.msn = peer.take_msn()}), peer.crc);
  }
  peer.raw(burst);
  for (int i = 0; i < 256; ++i) {
    if (const auto end = peer.ending(peer.hear_message())) return *end;
  }
  return "served on";
}

Reaction reply_too_long(Target& target) {
  RpcServer server(target);
  const Decoded call = server.next_call(false);
  server.send(header(call.header.xid, Proc::kMsg, 1), rpc_reply(call.header.xid) | Bytes(4096));
  return server.verdict(call);
}

// More messages than it can have receives for, all there before the first can be looked at.
Reaction more_than_receives(Target& target) {
  RpcServer server(target);
  (void)server.next_call(false);
  Bytes burst;
  for (std::uint32_t i = 0; i < 200; ++i) {
    const Bytes message = encode(header(0xBAD0 + i, Proc::kMsg, 1), rpc_reply(0xBAD0 + i));
    burst =
        std::move(burst) | test::fpdu(test::send_segment(message, {.msn = server.peer.take_msn()}), server.peer.crc);
  }
  server.peer.raw(burst);
  for (int i = 0; i < 4; ++i) {
    if (const auto end = server.peer.ending(server.peer.hear_message())) return *end;
  }
  return "served on";
}

// A server that has version 2 has a Call of it before it. `settled`: and has answered one.
struct Negotiating {
  explicit Negotiating(Target& target, bool settled) : server(target, rpc_private_data(), Flavour::kVersion2) {
    call = server.next_call(false);
    if (!settled) return;
    server.answer(call);
    call = server.next_call(false);  // the one after the next, which it answers too
  }
  void refuse(std::uint32_t xid) { server.send(rpcrdma::make_err_vers(xid, 2, 1)); }

  RpcServer server;
  Decoded call;
};

// The Call comes again in version 1, which is refused as well: it fails, and the next one comes.
Reaction refused_twice(Target& target) {
  Negotiating n(target, false);
  for (int i = 0; i < 2; ++i) {
    n.refuse(n.call.header.xid);
    n.call = n.server.next_call(i == 1);
    if (n.call.header.version != 1) return "still version 2";
  }
  return n.server.verdict(n.call);
}

Reaction refused_when_settled(Target& target) {
  Negotiating n(target, true);
  n.refuse(n.call.header.xid);
  n.call = n.server.next_call(true);
  return n.call.header.version == 2 ? n.server.verdict(n.call) : "another version than agreed";
}

Reaction refused_of_another_xid(Target& target) {
  Negotiating n(target, false);
  n.refuse(n.call.header.xid + 99);
  return n.server.verdict(n.call);
}

// Options of no known type, all there before the first can be answered.
Reaction flood_of_options(Target& target) {
  Negotiating n(target, true);
  Peer& peer = n.server.peer;
  Header option = header(0, Proc::kOptional, 1);
  option.version = 2;
  option.option = {99, Bytes(8)};
  Bytes burst;
  for (std::uint32_t i = 0; i < 200; ++i) {
    option.xid = 0xBAD0 + i;
    burst = std::move(burst) | test::fpdu(test::send_segment(encode(option), {.msn = peer.take_msn()}), peer.crc);
  }
  peer.raw(burst);
  for (int i = 0; i < 256; ++i) {
    if (const auto end = peer.ending(peer.hear_message())) return *end;
  }
  return "served on";
}

const Script kScripts[] = {
    {"version_2", [](Target& t) { return edited(t, false, [](Header& h, const Decoded&) { h.version = 2; }); }},
    {"proc_5", [](Target& t) { return after(t, [](std::uint32_t xid) {
                                 return words({xid, 1, 1, 5, 0, 0, 0});
                               }); }},
    {"rdma_msgp",
     [](Target& t) { return after(t, [](std::uint32_t xid) {
                       return words({xid, 1, 1, 2, 0, 0, 0, 0, 0});
                     }); }},
    {"rdma_done", [](Target& t) { return after(t, [](std::uint32_t xid) {
                                    return words({xid, 1, 1, 3, 0, 0, 0});
                                  }); }},
    {"short_message",
     [](Target& t) { return after(t, [](std::uint32_t xid) {
                       return words({xid, 1, 1, 0, 0, 0});
                     }); }},
    {"header_cut_short",
     [](Target& t) { return after(t, [](std::uint32_t xid) {
                       return words({xid, 1, 1, 0, 0, 1, 5, 0x100});
                     }); }},
    {"rdma_error_undecodable",
     [](Target& t) { return after(t, [](std::uint32_t xid) {
                       return words({xid, 1, 1, 4, 9, 9, 9, 9});
                     }); }},
    {"rdma_error_vers_cut_short",
     [](Target& t) { return after(t, [](std::uint32_t xid) {
                       return words({xid, 1, 1, 4, 1, 1});
                     }); }},
    {"rdma_error_chunk",
     [](Target& t) { return after(t, [](std::uint32_t xid) { return encode(rpcrdma::make_err_chunk(xid, 1, 1)); }); }},
    {"rdma_error_unknown_xid",
     [](Target& t) {
       return after(t, [](std::uint32_t xid) { return encode(rpcrdma::make_err_chunk(xid + 99, 1, 1)); });
     }},
    {"reply_unknown_xid",
     [](Target& t) {
       return after(t, [](std::uint32_t xid) { return encode(header(xid + 99, Proc::kMsg, 1), rpc_reply(xid + 99)); });
     }},
    {"other_xid_inside",
     [](Target& t) {
       return after(t, [](std::uint32_t xid) { return encode(header(xid, Proc::kMsg, 1), rpc_reply(xid + 1)); });
     }},
    {"neither_call_nor_reply",
     [](Target& t) {
       return after(t, [](std::uint32_t xid) { return encode(header(xid, Proc::kMsg, 1), words({xid, 7, 7})); });
     }},
    {"read_list_in_reply",
     [](Target& t) {
       return edited(t, false, [](Header& h, const Decoded&) { h.read_list = {{4, {Stag{1}, 4, 0}}}; });
     }},
    {"write_chunk_unasked",
     [](Target& t) {
       return edited(t, false, [](Header& h, const Decoded&) { h.write_list.push_back({{room(64)}}); });
     }},
    {"reply_chunk_unasked",
     [](Target& t) {
       return edited(t, false, [](Header& h, const Decoded&) { h.reply_chunk = WriteChunk{{room(0)}}; });
     }},
    {"nomsg_without_lists",
     [](Target& t) {
       return edited(
           t, true, [](Header& h, const Decoded&) { h.proc = Proc::kNomsg; }, false);
     }},
    {"nomsg_with_unused_reply_chunk",
     [](Target& t) {
       return edited(
           t, true,
           [](Header& h, const Decoded& c) {
             h.proc = Proc::kNomsg;
             h.reply_chunk = filled(c, 0);
           },
           false);
     }},
    {"reply_chunk_not_repeated", [](Target& t) { return edited(t, true, [](Header&, const Decoded&) {}); }},
    {"reply_chunk_grown",
     [](Target& t) {
       return edited(
           t, true,
           [](Header& h, const Decoded& c) {
             h.proc = Proc::kNomsg;
             h.reply_chunk = filled(c, c.header.reply_chunk->segments[0].length + 1);
           },
           false);
     }},
    {"reply_chunk_of_other_handle",
     [](Target& t) {
       return edited(
           t, true,
           [](Header& h, const Decoded& c) {
             h.proc = Proc::kNomsg;
             h.reply_chunk = filled(c, 24);
             h.reply_chunk->segments[0].handle = Stag{0x777};
           },
           false);
     }},
    {"reply_chunk_with_more_segments",
     [](Target& t) {
       return edited(t, true, [](Header& h, const Decoded& c) {
         h.reply_chunk = filled(c, 0);
         h.reply_chunk->segments.push_back(room(0));
       });
     }},
    {"reply_chunk_holds_no_reply",
     [](Target& t) {
       return edited(
           t, true,
           [](Header& h, const Decoded& c) {
             h.proc = Proc::kNomsg;
             h.reply_chunk = filled(c, 24);
           },
           false);
     }},
    {"invalidates_foreign_tag",
     [](Target& t) {
       RpcServer server(t);
       const Decoded call = server.next_call(false);
       server.peer.send(encode(header(call.header.xid, Proc::kMsg, 1), rpc_reply(call.header.xid)),
                        rdmap::Opcode::kSendInvalidate, 0x12345600);
       return server.verdict(call);
     }},
    {"grant_of_0", [](Target& t) { return edited(t, false, [](Header& h, const Decoded&) { h.credits = 0; }); }},
    {"grant_of_all",
     [](Target& t) { return edited(t, false, [](Header& h, const Decoded&) { h.credits = 0xFFFFFFFF; }); }},
    {"err_vers_twice", refused_twice},
    {"err_vers_when_settled", refused_when_settled},
    {"err_vers_of_other_xid", refused_of_another_xid},
    {"flood_of_options", flood_of_options},
    {"reply_too_long", reply_too_long},
    {"more_messages_than_receives", more_than_receives},
    {"backward_call_with_chunk",
     [](Target& t) {
       return backward(
           t,
           [](Header& h) {
             h.read_list = {{40, {Stag{1}, 64, 0}}};
           },
           samples::rpc_call(0xBAC, 0x40000000, 1, 1));
     }},
    {"backward_call_unannounced",
     [](Target& t) {
       return backward(
           t, [](Header&) {}, samples::rpc_call(0xBAC, 0x40000000, 1, 1));
     }},
    {"backward_call_nomsg",
     [](Target& t) {
       return backward(t,
                       [](Header& h) {
                         h.proc = Proc::kNomsg;
                         h.read_list = {{0, {Stag{1}, 64, 0}}};
                       },
                       {});
     }},
    {"backward_chunk_too_long",
     [](Target& t) {
       return backward(
           t,
           [](Header& h) {
             h.proc = Proc::kNomsg;
             h.read_list = {{0, {Stag{1}, 0x7FFFFFFF, 0}}};
           },
           {}, Flavour::kBackwardChunks);
     }},
    {"backward_reply_chunk_wraps",
     [](Target& t) {
       return backward(
           t,
           [](Header& h) {
             h.reply_chunk = WriteChunk{{{Stag{1}, 4096, UINT64_MAX - 8}}};
           },
           samples::rpc_call(0xBAC, 0x40000000, 1, 1), Flavour::kBackwardChunks);
     }},
    {"backward_chunk_of_other_xid", backward_chunk_of_other_xid},
    {"flood_of_backward_chunks", flood_of_backward_chunks},
};

}  // namespace

std::span<const Script> rpc_requester_scripts() {
  return kScripts;
}

}  // namespace iwarp::hostile
