// Requester: what arrives.
#include <algorithm>
#include <utility>

#include "iwarp/rpcrdma/reply_assembly.h"
#include "iwarp/rpcrdma/requester.h"
#include "iwarp/rpcrdma/rpc_message.h"

namespace iwarp::rpcrdma {

void Requester::on_message(Buffer message) {
  ParseResult result = Header::parse(message.bytes(), options_.header_limits);
  auto* parsed = std::get_if<ParsedHeader>(&result);
  if (parsed == nullptr) {
    const auto& error = std::get<ParseError>(result);
    if (error.option) return answer_err_chunk(error.xid, error.version);  // req: V2-4.2-10
    if (!error.done) return lose_reply();                                 // req: RFC8166-4.6.1-3 RFC8166-4.2.4-11
    ++stats_.dropped_messages;                                            // no Reply. req: RFC8166-4.6.2-2
    return;
  }
  const Header& h = parsed->header;
  if (h.proc == Proc::kError) return on_error_message(h);
  if (h.proc == Proc::kOptional) return on_option(std::move(message), *parsed);
  if (h.proc == Proc::kDone) {  // is for servers
    ++stats_.dropped_messages;
    return;
  }
  // Padding is behind the head, which says the direction.
  const bool backward = rpc_direction(message.bytes().subspan(parsed->payload_offset)) == RpcDirection::kCall;
  if (h.proc == Proc::kMsgp && !take_padding_out(message, *parsed)) {
    // A draft without backward Calls does not say how to pad one. A Call of the same xid goes on. req: RFC8167-5.1-4
    if (backward) return answer_err_chunk(h.xid, h.version);
    Call* call = find(h.xid);  // whose Reply it is, the header says
    if (call == nullptr || call->fetching) return lose_reply();
    return fail_call(*call, Failure::kBadReply, {});
  }
  if (h.proc == Proc::kNomsg) {
    // With a Read list it can only be a long backward Call, unless it is a broken Reply.
    const bool answers = options_.draft_2005.enabled && find(h.xid) != nullptr;
    const bool calls = !h.read_list.empty() && !answers && (takes_chunks(h.version) || find(h.xid) == nullptr);
    if (calls) return on_backward_call(std::move(message), *parsed);
    return on_reply(std::move(message), *parsed);
  }
  const ConstBytes payload = ConstBytes(message.bytes()).subspan(parsed->payload_offset);
  const auto direction = rpc_direction(payload);  // req: BIDIR-1.3.4-2
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

// An unused Reply chunk that was not echoed does no harm: Linux takes such Replies as well. Nor does a missing Write
// list: nothing was written then.
bool Requester::chunks_acceptable(const Call& call, const Header& h) const {
  if (check_reply(h, options_.header_limits.dialect)) return false;
  const auto fits = [](const WriteChunk& chunk, const Offered& offered) {
    if (offered.room.length == 0) return chunk.is_empty();
    if (chunk.segments.size() != 1) return false;  // req: RFC8166-3.4.6-4 RFC8166-6.1-10 RFC8166-4.3.3-4
    const Segment& s = chunk.segments[0];
    return s.handle == offered.memory->handle && s.offset == offered.memory->offset && s.length <= offered.room.length;
  };
  if (!h.write_list.empty() && h.write_list.size() != call.write_chunks.size()) return false;
  for (std::size_t i = 0; i < h.write_list.size(); ++i) {
    if (!fits(h.write_list[i], call.write_chunks[i])) return false;
  }
  const bool elsewhere = h.proc == Proc::kMsg || !h.read_list.empty();
  if (elsewhere) return !h.reply_chunk || h.reply_chunk->length() == 0;
  return call.reply_chunk && fits(*h.reply_chunk, *call.reply_chunk);
}

void Requester::on_reply(Buffer message, const ParsedHeader& parsed) {
  const Header& h = parsed.header;
  Call* call = find(h.xid);
  if (call == nullptr || call->fetching) {
    ++stats_.unknown_xids;  // req: RFC8167-2.4-4
    return;
  }
  const ConstBytes payload = ConstBytes(message.bytes()).subspan(parsed.payload_offset);
  if (h.proc == Proc::kMsg && !xid_matches(h, payload)) return lose_reply();  // whose Reply it is cannot be told
  // Nothing goes back to the server, but the RPC ends: its client would wait for ever, as its retransmissions would.
  if (!versions_.on_reply(h.version) || !chunks_acceptable(*call, h)) {
    return fail_call(*call, Failure::kBadReply, {});
  }
  window_.on_grant(h.credits);  // req: RFC8166-3.3.1-4 RFC8166-3.3.1-6
  // Nothing of the Reply is looked at while the server can still change it. req: RFC8166-4.4.1-1 RFC8166-8.1.3-2
  // req: RFC5042-6.2.2-1 RFC5042-6.3.3-1
  // req: D2005-3.6-3
  if (!fence(*call)) return;  // req: RFC8166-4.4.1-2
  if (call->configuration) return on_configured(*call, payload);
  // req: D2005-5.2-5
  if (!h.read_list.empty()) return fetch_reply(*call, parsed, std::move(message));
  if (call->cancelled) return finish(*call);
  auto reply = take_reply(*call, parsed, std::move(message));
  if (!reply || rpc_xid(reply->message.bytes()) != h.xid ||
      rpc_direction(reply->message.bytes()) != RpcDirection::kReply) {
    return fail_call(*call, Failure::kBadReply, {});
  }
  complete(*call, std::move(*reply));
}

std::optional<Requester::ReplyReceived> Requester::take_reply(Call& call, const ParsedHeader& parsed, Buffer message) {
  const Header& h = parsed.header;
  const bool in_reply_chunk = h.proc == Proc::kNomsg;
  message.set_view(parsed.payload_offset, in_reply_chunk ? 0 : message.size() - parsed.payload_offset);
  ReplyReceived out;
  std::size_t in_write_chunks = 0;
  SmallVector<WrittenChunk, 1> chunks;
  for (std::size_t i = 0; i < call.write_chunks.size(); ++i) {
    // What lies in it beyond is never looked at. req: RFC8166-4.3.2.2-5
    const ByteRange room = call.write_chunks[i].room;
    const bool empty = room.length == 0;
    const std::uint32_t written = !empty && i < h.write_list.size() ? h.write_list[i].segments[0].length : 0;
    chunks.push_back({room, written, empty});
    in_write_chunks += written;
  }
  // The returned length is the true one. req: RFC8166-4.3.3-5
  ByteRange whole{};
  if (in_reply_chunk) whole = {call.reply_chunk->room.offset, h.reply_chunk->segments[0].length};
  out.written = whole.length + in_write_chunks;
  stats_.reply_chunk_bytes += whole.length;
  stats_.write_chunk_bytes += in_write_chunks;
  stats_.receive_payload_bytes += message.size();
  if (in_reply_chunk) ++stats_.replies_in_reply_chunk;
  if (in_write_chunks > 0) {
    ++stats_.replies_reduced;
  } else if (!in_reply_chunk) {
    ++stats_.replies_in_line;
  }
  if (!chunks.empty()) {
    const MutBytes memory = call.reply.bytes();
    const ConstBytes rest = in_reply_chunk ? ConstBytes(memory).subspan(whole.offset, whole.length) : message.bytes();
    const auto joined =
        join_reply(memory.first(in_reply_chunk ? whole.offset : memory.size()), chunks, call.results, rest);
    if (!joined) return std::nullopt;
    whole = *joined;
  } else if (!in_reply_chunk) {
    out.message = std::move(message);
    return out;
  }
  out.message = std::move(call.reply);
  out.message.set_view(out.message.headroom() + whole.offset, whole.length);
  out.in_reply_chunk = in_reply_chunk;
  return out;
}

void Requester::complete(Call& call, ReplyReceived reply) {
  reply.xid = call.asked_xid;
  reply.larger_chunk = call.xid != call.asked_xid;
  if (reply.larger_chunk) store_be<std::uint32_t>(reply.message.bytes(), call.asked_xid);
  if (call.results.creates_session()) sessions_.learn(reply.message.bytes());
  reply.since = call.since;
  reply.tag = call.tag;
  reply.read_bytes = call.read_bytes;
  events_.emplace_back(std::move(reply));
  finish(call);
}

void Requester::on_error_message(const Header& header) {
  Call* call = find(header.xid);
  if (call == nullptr && options_known_.on_error(header)) return;
  if (call == nullptr || call->fetching) {
    ++stats_.unknown_xids;
    return;
  }
  if (header.error.code == HeaderError::kVers &&
      versions_.on_err_vers(header.error.version_low, header.error.version_high)) {
    return send_again(*call);  // req: V2-5.2-2
  }
  if (header.error.code != HeaderError::kVers && versions_.on_other_error(header.version)) return send_again(*call);
  if (!versions_.alone()) window_.on_grant(header.credits);  // req: V2-5-2
  if (header.error.code == HeaderError::kChunk && call->guessed && !call->cancelled)
    return send_with_larger_chunk(*call);  // req: RFC8267-3.1-2
  // Permanent: the RPC ends here. req: RFC8166-4.5-9
  // req: RFC8267-3.1-2 RFC8267-6.4.2-7 RFC8267-6.4.2-8 RFC8267-6.6-2 RFC8267-6.7.2-3
  fail_call(*call, header.error.code == HeaderError::kVers ? Failure::kErrVers : Failure::kErrChunk, header.error);
}

void Requester::fail_call(Call& call, Failure why, const ErrorBody& error) {
  if (!fence(call)) return;  // req: RFC8166-8.1.3-3
  if (call.configuration) config_.on_refused();
  if (!call.cancelled && !call.configuration) {
    ++stats_.failed_calls;
    events_.emplace_back(CallFailed{call.asked_xid, why, error.version_low, error.version_high, call.tag});
  }
  finish(call);
}

bool Requester::fence(Call& call) {
  const auto end = [this](std::optional<ExposedMemory>& exposed) {
    if (!exposed) return true;
    if (auto done = endpoint_.invalidate(exposed->handle); !done) {
      fail(done.error());  // closing the connection ends the access. req: RFC8166-4.5.4-2
      return false;
    }
    exposed.reset();
    return true;
  };
  if (!end(call.call_memory)) return false;
  for (Offered& o : call.write_chunks) {
    if (!end(o.memory)) return false;
  }
  return !call.reply_chunk || end(call.reply_chunk->memory);
}

void Requester::finish(Call& call) {
  dones_.on_reply(call.done_mark);
  call = Call{};  // and with it what was unused of its chunks. req: RFC8166-4.3.2.2-4
  ++calls_ended_;
  window_.on_call_done();  // req: RFC8166-2.2.2-3
}

}  // namespace iwarp::rpcrdma
