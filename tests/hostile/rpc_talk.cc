#include "tests/hostile/rpc_talk.h"

#include "iwarp/rpcrdma/private_data.h"

namespace iwarp::hostile {
namespace {

using rpcrdma::Proc;
using samples::header;

constexpr std::uint32_t kProof = 0xA11CE;
// What others answer may exceed our own limits.
constexpr rpcrdma::Limits kGenerous = {1024, 1024, 1024, {.version_2 = true}};

// The word for an answer to a message that was not in order.
Reaction answer_word(const Bytes& message, Served served) {
  if (message.size() < 20) return "an answer of " + std::to_string(message.size()) + " octets";
  const auto word = [&](std::size_t i) { return load_be<std::uint32_t>(ConstBytes(message).subspan(4 * i)); };
  if (word(3) == static_cast<std::uint32_t>(Proc::kError)) {
    return word(4) == 1 ? kErrVers : word(4) == 2 ? kErrChunk : "an RDMA_ERROR of another kind";
  }
  const samples::Decoded d = samples::decode(message, kGenerous);
  if (d.header.proc == Proc::kMsg) {
    const auto reply = rpcrdma::RpcReply::parse(d.payload);
    if (!reply) return "an answer that is no RPC Reply";
    if (reply->accepted && reply->accept_stat == rpcrdma::AcceptStat::kGarbageArgs) return kGarbageArgs;
  }
  return served != Served::kNo ? kIgnore : "a Reply as if nothing were wrong";
}

mpa::StartupFrame with(mpa::StartupFrame frame, const Bytes& private_data) {
  frame.private_data = private_data;
  return frame;
}

}  // namespace

Bytes rpc_private_data() {
  const auto encoded = rpcrdma::PrivateData{true, 4096, 4096}.encode();
  return {encoded.begin(), encoded.end()};
}

Peer open_rpc(Target& target, const Bytes& private_data, Flavour flavour) {
  return open(target, flavour, with(polite_request(), private_data));
}

rpcrdma::Segment expose(Peer& peer, const Bytes& content) {
  const Stag stag{0x5000 + static_cast<std::uint32_t>(peer.exposed.size()) * 0x100};
  peer.exposed[stag] = content;
  return {stag, static_cast<std::uint32_t>(content.size()), 0};
}

rpcrdma::Segment room(std::uint32_t bytes) {
  return {Stag{0x900}, bytes, 0};
}

Reaction rpc_verdict(Peer& peer, std::uint32_t xid, Served served) {
  Reaction seen;
  for (std::uint32_t proof = kProof; proof < kProof + 2;) {
    peer.send(samples::encode(header(proof), samples::null_call(proof)));
    for (;;) {
      const Heard heard = peer.hear_message();
      if (const auto end = peer.ending(heard)) return seen.empty() ? *end : seen + ", then " + *end;
      const auto got = heard.payload.size() < 4 ? 0 : load_be<std::uint32_t>(heard.payload);
      if (got == proof) break;
      if (!seen.empty()) return "an answer too many";
      seen = answer_word(heard.payload, served) + (got == xid ? "" : ", of another xid");
    }
    ++proof;
  }
  if (seen.empty()) {  // a victim of several threads may answer the proofs first
    const Heard late = peer.hear_message(peer.settle_ms);
    if (late.kind == Heard::Kind::kSend) seen = answer_word(late.payload, served);
  }
  return seen.empty() && served == Served::kYes ? "no answer" : seen.empty() ? kIgnore : seen;
}

RpcServer::RpcServer(Target& target, const Bytes& private_data, Flavour flavour)
    : peer(lure(target, flavour, with(polite_reply(), private_data))) {}

Bytes requester_call(std::uint32_t xid) {
  if (xid % 2 == 0) return samples::readdir_call(xid);
  return xid % 4 == 3 ? samples::read_call(xid, 60'000) : samples::null_call(xid);
}

template <class Wanted>
samples::Decoded RpcServer::next(Wanted wanted) {
  for (int i = 0; i < 6; ++i) {
    const Heard heard = peer.hear_message();
    if (heard.kind != Heard::Kind::kSend) throw std::runtime_error("no Call came");
    samples::Decoded call = samples::decode(heard.payload, kGenerous);
    if (wanted(call.header)) return call;
    answer(call);
  }
  throw std::runtime_error("no Call of that kind came");
}

samples::Decoded RpcServer::next_call(bool with_reply_chunk) {
  return next(
      [&](const rpcrdma::Header& h) { return h.write_list.empty() && h.reply_chunk.has_value() == with_reply_chunk; });
}

samples::Decoded RpcServer::next_read() {
  return next([](const rpcrdma::Header& h) { return !h.write_list.empty(); });
}

void RpcServer::answer(const samples::Decoded& call) {
  rpcrdma::Header h = header(call.header.xid, Proc::kMsg, 1);
  h.version = call.header.version;
  h.reply_chunk = call.header.reply_chunk;
  if (h.reply_chunk) {
    for (auto& segment : h.reply_chunk->segments) segment.length = 0;
  }
  h.write_list = call.header.write_list;
  for (auto& chunk : h.write_list) {
    for (auto& segment : chunk.segments) segment.length = 0;
  }
  const bool reading = !h.write_list.empty();
  send(h, reading ? samples::read_error(call.header.xid) : samples::rpc_reply(call.header.xid));
}

HonestServer::HonestServer(Target& target) : server_(target), call_(server_.next_call(false)) {}

Reaction HonestServer::serve() {
  for (int i = 0; i < 2; ++i) {
    server_.answer(call_);
    const Heard heard = server_.peer.hear_message();
    if (const auto end = server_.peer.ending(heard)) return *end;
    const std::uint32_t due = call_.header.xid + 1;
    call_ = samples::decode(heard.payload);
    if (call_.header.xid != due) return "another Call than expected";
  }
  return kIgnore;
}

Reaction RpcServer::verdict(const samples::Decoded& call) {
  answer(call);
  const Heard heard = peer.hear_message();
  if (const auto end = peer.ending(heard)) return *end;
  const samples::Decoded next = samples::decode(heard.payload, kGenerous);
  if (next.header.proc == Proc::kError) {
    return next.header.error.code == rpcrdma::HeaderError::kChunk ? kErrChunk : kErrVers;
  }
  return next.header.xid == call.header.xid + 1 ? kIgnore : "another Call than expected";
}

}  // namespace iwarp::hostile
