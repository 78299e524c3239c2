// Messages of a server of the draft of 2005 that no requester which speaks it may believe: Replies in Read chunks that
// lie or were ruled out, CONFIG_RDMA without sense, RDMA_MSGP and RDMA_DONE where they do not belong.
#include "iwarp/rpcrdma/config_rdma.h"
#include "tests/hostile/rpc_talk.h"
#include "tests/hostile/script.h"

namespace iwarp::hostile {
namespace {

using rpcrdma::Header;
using rpcrdma::Proc;
using samples::Decoded;
using samples::encode;
using samples::header;
using samples::rpc_reply;
using samples::words;

// What the victim asks for before anything else.
struct Configuring {
  explicit Configuring(Target& target) : server(target, rpc_private_data(), Flavour::kDraft2005) {
    const Heard heard = server.peer.hear_message();
    if (heard.kind != Heard::Kind::kSend) throw std::runtime_error("no CONFIG_RDMA came");
    const Decoded call = samples::decode(heard.payload);
    const auto head = rpcrdma::RpcCall::parse(call.payload);
    if (!head || head->program != rpcrdma::kConfigProgram) throw std::runtime_error("another Call than CONFIG_RDMA");
    xid = call.header.xid;
  }
  void answer(const Bytes& results) { server.send(header(xid, Proc::kMsg, 1), rpc_reply(xid, results)); }

  RpcServer server;
  std::uint32_t xid = 0;
};

// Configured: Calls of 4096 octets, data aligned at 512, so many Reads.
RpcServer configured(Target& target, std::uint32_t reads = 8) {
  Configuring c(target);
  c.answer(words({4096, 512, reads}));
  return std::move(c.server);
}

Reaction config_answered(Target& target, const Bytes& results) {
  Configuring c(target);
  c.answer(results);
  const Heard heard = c.server.peer.hear_message();
  return c.server.peer.ending(heard).value_or("served on");
}

// It goes on as with any server of version 1.
Reaction config_err_chunk(Target& target) {
  Configuring c(target);
  c.server.send(rpcrdma::make_err_chunk(c.xid, 1, 1));
  return c.server.verdict(c.server.next_call(false));
}

std::uint32_t word(const Bytes& message, std::size_t i) {
  return message.size() < 4 * i + 4 ? 0 : load_be<std::uint32_t>(ConstBytes(message).subspan(4 * i));
}

// What the victim does about a Reply in a Read chunk that is no good: it has no more use for the memory, and goes on.
// `read`: it may have to read it to see that.
Reaction after_done(RpcServer& server, const Decoded& call, bool read) {
  const std::uint32_t xid = call.header.xid;
  const Heard done = read ? server.peer.hear_message() : server.peer.hear();
  if (done.kind == Heard::Kind::kReadRequest) return "it was read";
  if (const auto end = server.peer.ending(done)) return *end;
  if (done.payload.size() != 16 || word(done.payload, 0) != xid ||
      word(done.payload, 3) != static_cast<std::uint32_t>(Proc::kDone)) {
    return "no RDMA_DONE";
  }
  const Heard next = server.peer.hear_message();
  if (const auto end = server.peer.ending(next)) return *end;
  return word(next.payload, 0) == xid + 1 ? kIgnore : "another Call than expected";
}

// The data of a READ in a Read chunk of so many octets; their count says 100.
Reaction data_in_read_chunk(Target& target, std::size_t octets) {
  RpcServer server = configured(target);
  const Decoded call = server.next_read();
  const Bytes head = samples::read_reply_head(call.header.xid, 100);
  Header h = header(call.header.xid, Proc::kMsg, 1);
  h.read_list = {{static_cast<std::uint32_t>(head.size()), expose(server.peer, pattern(octets))}};
  server.send(h, head);
  return after_done(server, call, true);
}

Reaction long_reply(Target& target, std::uint32_t reads, std::uint32_t length, std::uint32_t xid_more) {
  RpcServer server = configured(target, reads);
  const Decoded call = server.next_call(false);
  Header h = header(call.header.xid, Proc::kNomsg, 1);
  h.read_list = {{0, expose(server.peer, rpc_reply(call.header.xid + xid_more))}};
  if (length > 0) h.read_list[0].target.length = length;
  server.send(h);
  return after_done(server, call, xid_more != 0);
}

// Instead of the Reply comes this message.
Reaction after(Target& target, const Header& h, const Bytes& payload = {}) {
  RpcServer server = configured(target);
  const Decoded call = server.next_call(false);
  Header sent = h;
  sent.xid = call.header.xid;
  sent.draft_2005 = true;
  server.send(sent, payload.empty() ? payload : rpc_reply(sent.xid) | payload);
  return server.verdict(call);
}

Header msgp(rpcrdma::Padding padding) {
  Header h = header(0, Proc::kMsgp, 1);
  h.padding = padding;
  return h;
}

const Script kScripts[] = {
    {"config_answer_cut_short",
     [](Target& t) {
       return config_answered(t, words({4096, 512}));
     }},
    {"config_answer_of_512",
     [](Target& t) {
       return config_answered(t, words({512, 0, 8}));
     }},
    {"config_err_chunk", config_err_chunk},
    {"read_chunk_longer_than_count", [](Target& t) { return data_in_read_chunk(t, 128); }},
    {"read_chunk_of_4_gib", [](Target& t) { return long_reply(t, 8, 0xFFFFFFFF, 0); }},
    {"read_chunk_of_other_xid", [](Target& t) { return long_reply(t, 8, 0, 1); }},
    {"read_chunk_after_0_reads", [](Target& t) { return long_reply(t, 0, 0, 0); }},
    {"reply_longer_than_configured", [](Target& t) { return after(t, header(0, Proc::kMsg, 1), Bytes(4096)); }},
    {"msgp_align_0",
     [](Target& t) {
       return after(t, msgp({0, 1024}), Bytes(4));
     }},
    {"done_to_a_client", [](Target& t) { return after(t, header(0, Proc::kDone, 1)); }},
};

}  // namespace

std::span<const Script> rpc_2005_requester_scripts() {
  return kScripts;
}

}  // namespace iwarp::hostile
