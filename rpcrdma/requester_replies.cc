// Requester: what arrives.
#include <algorithm>
#include <utility>

#include "iwarp/rpcrdma/requester.h"
#include "iwarp/rpcrdma/rpc_message.h"

namespace iwarp::rpcrdma {

void Requester::on_message(Buffer message) {
  const ParseResult result = Header::parse(message.bytes(), options_.header_limits);
  const auto* parsed = std::get_if<ParsedHeader>(&result);
  if (parsed == nullptr) {
    if (!std::get<ParseError>(result).done) return lose_reply();  // req: RFC8166-4.6.1-3 RFC8166-4.2.4-11
    ++stats_.dropped_messages;                                    // no Reply. req: RFC8166-4.6.2-2
    return;
  }
  const Header& h = parsed->header;
  if (h.proc == Proc::kError) return on_error_message(h);
  // No type is known. req: V2-3.1-1 V2-3.1-5
  if (h.proc == Proc::kOptional) {
    const auto granted = std::max<std::uint32_t>(options_.backward_credits, 1);
    return answer(make_inval_option(h.xid, granted), stats_.inval_option_sent);
  }
  if (h.proc == Proc::kNomsg) {
    // With a Read list it can only be a long backward Call, unless it is a broken Reply. req: RFC8167-5.3-4
    if (!h.read_list.empty() && find(h.xid) == nullptr) return answer_err_chunk(h);
    return on_reply(std::move(message), *parsed);
  }
  const ConstBytes payload = ConstBytes(message.bytes()).subspan(parsed->payload_offset);
  const auto direction = rpc_direction(payload);
  if (!direction) {
    lose_reply();                                  // its credits mean nothing either. req: RFC8167-4.1-6
  } else if (*direction == RpcDirection::kCall) {  // req: RFC8167-2.4-1 RFC8167-2.3-1 RFC8167-2.4.1-1
    on_backward_call(std::move(message), *parsed);
  } else {
    on_reply(std::move(message), *parsed);
  }
}

// Most likely a Reply, and whose is not known. It is dropped, never answered; but its Call would wait for ever, as the
// client's repetitions would, and its credit would be lost: only another connection helps. req: RFC8166-4.5-4
void Requester::lose_reply() {
  ++stats_.dropped_messages;
  fail(make_error(Errc::kMalformedRpc, "the server sent a message that cannot be read"));
}

namespace {

// Whether a Reply's chunk lists are what we offered, filled in. `offered`: our Reply chunk, if any. An unused Reply
// chunk that was not echoed does no harm: Linux takes such Replies as well.
bool chunks_acceptable(const Header& h, const std::optional<ExposedMemory>& offered, std::size_t offered_bytes) {
  if (check_reply(h)) return false;
  if (!h.write_list.empty()) return false;  // we offered none. req: RFC8166-3.4.6-4 RFC8166-6.1-10
  if (h.proc == Proc::kMsg) return !h.reply_chunk || h.reply_chunk->length() == 0;
  if (!offered || h.reply_chunk->segments.size() != 1) return false;  // req: RFC8166-4.3.3-4
  const Segment& s = h.reply_chunk->segments[0];
  return s.handle == offered->handle && s.offset == offered->offset && s.length <= offered_bytes;
}

}  // namespace

void Requester::on_reply(Buffer message, const ParsedHeader& parsed) {
  const Header& h = parsed.header;
  Call* call = find(h.xid);
  if (call == nullptr) {
    ++stats_.unknown_xids;  // req: RFC8167-2.4-4
    return;
  }
  const ConstBytes payload = ConstBytes(message.bytes()).subspan(parsed.payload_offset);
  if (h.proc == Proc::kMsg && !xid_matches(h, payload)) return lose_reply();  // whose Reply it is cannot be told
  // Nothing goes back to the server, but the RPC ends: its client would wait for ever, as its retransmissions would.
  if (!chunks_acceptable(h, call->reply_memory, call->reply.size()) || !versions_.on_reply(h.version)) {
    return fail_call(*call, Failure::kBadReply, {});
  }
  window_.on_grant(h.credits);  // req: RFC8166-3.3.1-4 RFC8166-3.3.1-6
  // Nothing of the Reply is looked at while the server can still change it. req: RFC8166-4.4.1-1 RFC8166-8.1.3-2
  // req: RFC5042-6.2.2-1 RFC5042-6.3.3-1
  if (!fence(*call)) return;  // req: RFC8166-4.4.1-2
  if (call->cancelled) return finish(*call);
  if (h.proc == Proc::kMsg) {
    message.set_view(parsed.payload_offset, payload.size());
    stats_.receive_payload_bytes += payload.size();
    ++stats_.replies_in_line;
    return complete(*call, std::move(message), false);
  }
  Buffer reply = std::move(call->reply);
  const std::uint32_t length = h.reply_chunk->segments[0].length;
  reply.set_view(reply.headroom(), length);  // the returned length is the true one. req: RFC8166-4.3.3-5
  if (rpc_xid(reply.bytes()) != h.xid || rpc_direction(reply.bytes()) != RpcDirection::kReply) {
    return fail_call(*call, Failure::kBadReply, {});
  }
  stats_.reply_chunk_bytes += length;
  ++stats_.replies_in_reply_chunk;
  complete(*call, std::move(reply), true);
}

void Requester::complete(Call& call, Buffer message, bool in_reply_chunk) {
  events_.emplace_back(
      ReplyReceived{call.xid, std::move(message), in_reply_chunk, call.since, call.tag, call.message.size()});
  finish(call);
}

void Requester::on_error_message(const Header& header) {
  Call* call = find(header.xid);
  if (call == nullptr) {
    ++stats_.unknown_xids;
    return;
  }
  if (header.error.code == HeaderError::kVers &&
      versions_.on_err_vers(header.error.version_low, header.error.version_high)) {
    return send_again(*call);  // req: V2-5.2-2
  }
  if (!versions_.alone()) window_.on_grant(header.credits);  // req: V2-5-2
  // Permanent: the RPC ends here. req: RFC8166-4.5-9
  // req: RFC8267-3.1-2 RFC8267-6.4.2-7 RFC8267-6.4.2-8 RFC8267-6.6-2 RFC8267-6.7.2-3
  fail_call(*call, header.error.code == HeaderError::kVers ? Failure::kErrVers : Failure::kErrChunk, header.error);
}

void Requester::fail_call(Call& call, Failure why, const ErrorBody& error) {
  if (!fence(call)) return;  // req: RFC8166-8.1.3-3
  if (!call.cancelled) {
    ++stats_.failed_calls;
    events_.emplace_back(CallFailed{call.xid, why, error.version_low, error.version_high, call.tag});
  }
  finish(call);
}

bool Requester::fence(Call& call) {
  for (std::optional<ExposedMemory>* exposed : {&call.call_memory, &call.reply_memory}) {
    if (!*exposed) continue;
    if (auto done = endpoint_.invalidate((*exposed)->handle); !done) {
      fail(done.error());  // closing the connection ends the access. req: RFC8166-4.5.4-2
      return false;
    }
    exposed->reset();
  }
  return true;
}

void Requester::finish(Call& call) {
  call = Call{};
  ++calls_ended_;
  window_.on_call_done();  // req: RFC8166-2.2.2-3
}

// --- backward direction: Calls of the server

void Requester::on_backward_call(Buffer message, const ParsedHeader& parsed) {
  const Header& h = parsed.header;
  const ConstBytes payload = ConstBytes(message.bytes()).subspan(parsed.payload_offset);
  // A server that does not receive must not make us collect answers for it.
  std::size_t serving = transmit_.backlog();
  PeerCall* slot = nullptr;
  for (PeerCall& c : peer_calls_) {
    if (!c.used) {
      slot = &c;
    } else if (c.xid == h.xid) {
      ++stats_.dropped_messages;
      return;
    } else {
      ++serving;
    }
  }
  if (slot == nullptr || serving >= peer_calls_.size() + window_.requested()) {
    return fail(make_error(Errc::kUntaggedNoBuffer, "peer sent more backward Calls than it has credits"));
  }
  // req: RFC8167-5.3-1
  if (h.has_chunks() || !xid_matches(h, payload)) return answer_err_chunk(h);  // req: RFC8167-5.3-4 RFC8167-5.1-4
  slot->used = true;
  slot->xid = h.xid;
  slot->version = h.version;
  ++stats_.backward_calls;
  message.set_view(parsed.payload_offset, payload.size());
  const CallToken token{static_cast<std::uint32_t>(slot - peer_calls_.data()), slot->generation};
  events_.emplace_back(BackwardCall{token, h.xid, std::move(message)});  // req: RFC8167-2.2-1 RFC8267-6.5.2-1
}

void Requester::answer_err_chunk(const Header& to) {
  const auto granted = std::max<std::uint32_t>(options_.backward_credits, 1);
  answer(make_err_chunk(to.xid, to.version, granted), stats_.err_chunk_sent);
}

void Requester::answer(const Header& header, std::uint64_t& count) {
  if (transmit_.backlog() >= peer_calls_.size() + window_.requested()) {
    return fail(make_error(Errc::kUntaggedNoBuffer, "peer sent more backward Calls than it has credits"));
  }
  ++count;
  OutgoingMessage out;
  out.header = header;
  transmit_.send(std::move(out));
}

std::uint32_t Requester::max_backward_bytes() const {
  // Thresholds swap: a backward Reply travels like a forward Call. req: RFC8167-4.2-1
  return versions_.inline_bytes(std::min(limits_.call_inline_bytes, limits_.reply_inline_bytes)) -
         std::uint32_t{kMinHeaderBytes};
}

Result<void> Requester::reply_backward(CallToken token, Buffer&& message) {
  if (dead_) return make_error(Errc::kNotConnected);
  PeerCall* call = find_peer_call(token);
  if (call == nullptr) return make_error(Errc::kInvalidArgument, "unknown backward Call");
  // req: RFC8167-5.2-1 RFC8167-5.2-4 RFC8167-5.2-5
  if (rpc_xid(message.bytes()) != call->xid || rpc_direction(message.bytes()) != RpcDirection::kReply) {
    return make_error(Errc::kInvalidArgument, "not the Reply to this backward Call");
  }
  if (message.size() > max_backward_bytes()) {  // req: RFC8167-5.3-2 RFC8167-5.3-3
    return make_error(Errc::kInvalidArgument, "backward Reply exceeds the inline threshold");
  }
  OutgoingMessage out;
  // req: RFC8167-1-1 RFC8167-5-1 RFC8167-2.4-3
  out.header.xid = call->xid;
  out.header.version = call->version;              // req: RFC8167-5.2-2
  out.header.credits = options_.backward_credits;  // req: RFC8167-5.2-3 RFC8167-4.1-3
  out.in_line.push_back({0, message.size()});
  stats_.send_payload_bytes += message.size();
  out.payload = std::move(message);
  transmit_.send(std::move(out));
  ++stats_.backward_replies;
  abandon_backward(token);
  pump();
  return {};
}

void Requester::abandon_backward(CallToken token) {
  if (PeerCall* call = find_peer_call(token)) {
    call->used = false;
    ++call->generation;
  }
}

Requester::PeerCall* Requester::find_peer_call(CallToken token) {
  if (token.slot >= peer_calls_.size()) return nullptr;
  PeerCall& call = peer_calls_[token.slot];
  return call.used && call.generation == token.generation ? &call : nullptr;
}

}  // namespace iwarp::rpcrdma
