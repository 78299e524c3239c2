// Messages of a client of the draft of 2005 that a responder which speaks it may not serve as they are: RDMA_MSGP that
// lies, RDMA_DONE of nothing or not at all, CONFIG_RDMA out of order; and odd ones that it must.
#include <chrono>
#include <thread>

#include "iwarp/rpcrdma/config_rdma.h"
#include "tests/hostile/rpc_talk.h"
#include "tests/hostile/script.h"

namespace iwarp::hostile {
namespace {

using rpcrdma::Header;
using rpcrdma::Padding;
using rpcrdma::Proc;
using samples::encode;
using samples::header;
using samples::null_call;
using samples::words;

constexpr std::uint32_t kXid = 77;
// Of a READ whose data fit nowhere but into a Read chunk.
constexpr std::uint32_t kLong = 5000;
// Longer than a victim of flavour kImpatient2005 waits for RDMA_DONE.
constexpr std::chrono::milliseconds kTooLate{500};

Peer open_2005(Target& target, Flavour flavour = Flavour::kDraft2005) {
  return open_rpc(target, rpc_private_data(), flavour);
}

Reaction padded(Target& target, Padding padding, const Bytes& call, Served served = Served::kNo) {
  Peer peer = open_2005(target);
  Header h = header(kXid, Proc::kMsgp);
  h.draft_2005 = true;
  h.padding = padding;
  peer.send(encode(h, call));
  return rpc_verdict(peer, kXid, served);
}

void say_done(Peer& peer, std::uint32_t xid) {
  Header h = header(xid, Proc::kDone);
  h.draft_2005 = true;
  peer.send(encode(h));
}

// What the victim offers for reading in answer to a READ: the data, or the whole Reply. Throws when that is not what it
// does.
rpcrdma::Segment offered_reply(Peer& peer, std::uint32_t xid) {
  peer.send(encode(header(xid), samples::read_call(xid, kLong)));
  const Heard heard = peer.hear_message();
  if (heard.kind != Heard::Kind::kSend) throw std::runtime_error("no Reply");
  const Header h = samples::decode(heard.payload, {.dialect = {.draft_2005 = true}}).header;
  if (h.xid != xid || h.read_list.size() != 1) throw std::runtime_error("no Read chunk");
  return h.read_list[0].target;
}

// Two messages that the victim serves, so that it has done with those before them.
void settle(Peer& peer) {
  if (rpc_verdict(peer, 0) != kIgnore) throw std::runtime_error("the victim does not go on");
}

// Reads what was offered once.
Reaction read(Peer& peer, const rpcrdma::Segment& segment) {
  peer.ulpdu(test::read_request_segment({Stag{0x500}, 0, segment.length, segment.handle, segment.offset}));
  const Heard heard = peer.hear();
  return peer.ending(heard).value_or("the victim was read");
}

Reaction done_twice(Target& target) {
  Peer peer = open_2005(target);
  (void)offered_reply(peer, kXid);
  say_done(peer, kXid);
  say_done(peer, kXid);
  return rpc_verdict(peer, kXid);
}

Reaction read_after_done(Target& target) {
  Peer peer = open_2005(target);
  const rpcrdma::Segment segment = offered_reply(peer, kXid);
  say_done(peer, kXid);
  settle(peer);
  return read(peer, segment);
}

Reaction read_after_the_time(Target& target) {
  Peer peer = open_2005(target, Flavour::kImpatient2005);
  const rpcrdma::Segment segment = offered_reply(peer, kXid);
  std::this_thread::sleep_for(kTooLate);
  settle(peer);
  return read(peer, segment);
}

Reaction done_left_out(Target& target) {
  Peer peer = open_2005(target, Flavour::kImpatient2005);
  (void)offered_reply(peer, kXid);
  std::this_thread::sleep_for(kTooLate);
  return rpc_verdict(peer, kXid);
}

// As many Replies as a victim keeps, and one.
Reaction nothing_is_done(Target& target) {
  constexpr std::uint32_t kKept = 16;
  Peer peer = open_2005(target);
  for (std::uint32_t i = 1; i <= kKept; ++i) (void)offered_reply(peer, kXid + i);
  peer.send(encode(header(kXid), samples::read_call(kXid, kLong)));
  return rpc_verdict(peer, kXid);
}

Bytes config_call(std::uint32_t xid, const Bytes& arguments) {
  return samples::rpc_call(xid, rpcrdma::kConfigProgram, 1, 1, arguments);
}

// The first message of a connection.
Reaction configured(Target& target, const Bytes& arguments) {
  Peer peer = open_2005(target);
  peer.send(encode(header(kXid), config_call(kXid, arguments)));
  return rpc_verdict(peer, kXid);
}

// A connection with these limits of the client.
Peer open_configured(Target& target, std::initializer_list<std::uint32_t> limits) {
  Peer peer = open_2005(target);
  peer.send(encode(header(kXid - 1), config_call(kXid - 1, words(limits))));
  const Heard heard = peer.hear_message();
  if (heard.kind != Heard::Kind::kSend) throw std::runtime_error("no answer to CONFIG_RDMA");
  const auto reply = rpcrdma::RpcReply::parse(samples::decode(heard.payload).payload);
  if (!reply || !reply->success()) throw std::runtime_error("CONFIG_RDMA was refused");
  return peer;
}

// What was agreed stays: the answer is an error of RPC.
Reaction config_too_late(Target& target) {
  Peer peer = open_2005(target);
  settle(peer);
  peer.send(encode(header(kXid), config_call(kXid, words({4096, 4096, 8}))));
  return rpc_verdict(peer, kXid, Served::kYes);
}

Reaction call_longer_than_configured(Target& target) {
  Peer peer = open_configured(target, {4096, 4096, 8});
  peer.send(encode(header(kXid), null_call(kXid)) | Bytes(4096));
  return rpc_verdict(peer, kXid);
}

// Who takes no Reads offers a Read chunk.
Reaction read_chunk_after_0_reads(Target& target) {
  Peer peer = open_configured(target, {4096, 4096, 0});
  Header h = header(kXid, Proc::kNomsg);
  h.read_list = {{0, expose(peer, samples::write_call(kXid, pattern(5000)))}};
  peer.send(encode(h));
  return rpc_verdict(peer, kXid);
}

Reaction version_2(Target& target) {
  Peer peer = open_2005(target);
  Header h = header(kXid);
  h.version = 2;
  peer.send(encode(h, null_call(kXid)));
  return rpc_verdict(peer, kXid);
}

const Script kScripts[] = {
    {"msgp_align_0",
     [](Target& t) {
       return padded(t, {0, 1024}, null_call(kXid));
     }},
    {"msgp_align_6",
     [](Target& t) {
       return padded(t, {6, 1024}, null_call(kXid));
     }},
    {"msgp_threshold_4",
     [](Target& t) {
       return padded(t, {512, 4}, null_call(kXid));
     }},
    {"msgp_data_beyond_its_end",
     [](Target& t) {
       return padded(t, {512, 1024}, samples::write_call_head(kXid, 0xFFFFFFFF) | Bytes(2000));
     }},
    {"msgp_padding_beyond_its_end",
     [](Target& t) {
       return padded(t, {65536, 1024}, samples::write_call_head(kXid, 1500) | Bytes(1500));
     }},
    {"msgp_of_another_program",
     [](Target& t) {
       return padded(t, {512, 1024}, samples::rpc_call(kXid, 400'000, 1, 1, samples::opaque(pattern(2000))));
     }},
    {"msgp_of_other_xid",
     [](Target& t) {
       return padded(t, {512, 1024}, null_call(kXid + 1));
     }},
    {"msgp_without_data",
     [](Target& t) {
       return padded(t, {512, 1024}, null_call(kXid), Served::kYes);
     }},
    {"done_of_nothing",
     [](Target& t) {
       Peer peer = open_2005(t);
       say_done(peer, kXid);
       return rpc_verdict(peer, kXid);
     }},
    {"done_twice", done_twice},
    {"done_left_out", done_left_out},
    {"nothing_is_done", nothing_is_done},
    {"read_after_done", read_after_done},
    {"read_after_the_time", read_after_the_time},
    {"config_cut_short",
     [](Target& t) {
       return configured(t, words({4096, 4096}));
     }},
    {"config_of_100_octets",
     [](Target& t) {
       return configured(t, words({4096, 100, 8}));
     }},
    {"config_too_late", config_too_late},
    {"call_longer_than_configured", call_longer_than_configured},
    {"read_chunk_after_0_reads", read_chunk_after_0_reads},
    {"version_2_of_2005", version_2},
};

}  // namespace

std::span<const Script> rpc_2005_responder_scripts() {
  return kScripts;
}

}  // namespace iwarp::hostile
