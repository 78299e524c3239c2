// Responder: what arrives.
#include <algorithm>
#include <utility>

#include "iwarp/rpcrdma/responder.h"
#include "iwarp/rpcrdma/rpc_message.h"

namespace iwarp::rpcrdma {

void Responder::on_message(Buffer message) {
  ParseResult result = Header::parse(message.bytes(), options_.header_limits);  // req: RFC8166-4.5-1
  if (const auto* error = std::get_if<ParseError>(&result)) {
    if (error->answer != ParseError::Answer::kDrop && overrun()) return;
    // req: D2005-5.3-1 D2005-5.3-2
    return answer_error(*error);  // req: RFC8166-4.5-3
  }
  auto& parsed = std::get<ParsedHeader>(result);
  if (parsed.header.proc == Proc::kError) return on_error_message(parsed.header);
  if (parsed.header.proc == Proc::kOptional) return on_option(std::move(message), parsed);
  if (parsed.header.proc == Proc::kDone) return on_done(parsed.header);
  const bool replies = rpc_direction(message.bytes().subspan(parsed.payload_offset)) == RpcDirection::kReply;
  if (parsed.header.proc == Proc::kMsgp && !take_padding_out(message, parsed)) {
    if (replies) {  // a Reply is never answered. req: RFC8166-4.5-4
      ++stats_.dropped_messages;
      return;
    }
    if (!overrun()) answer_err_chunk(parsed.header.xid, parsed.header.version);  // req: D2005-5.3-5
    return;
  }
  const ConstBytes payload = ConstBytes(message.bytes()).subspan(parsed.payload_offset);
  stats_.receive_payload_bytes += parsed.header.proc == Proc::kMsg ? payload.size() : 0;
  // req: RFC8167-2.4-1 RFC8166-2.2.2-1 RFC8167-2.3-1 RFC8167-2.4.1-1
  if (parsed.header.proc == Proc::kMsg && rpc_direction(payload) == RpcDirection::kReply) {
    return on_backward_reply(std::move(message), parsed);
  }
  // No Call is without Read list then: the Reply to a backward Call with a Reply chunk. req: RFC8167-5.3-1
  if (parsed.header.proc == Proc::kNomsg && parsed.header.read_list.empty() && find_backward(parsed.header.xid)) {
    return on_backward_reply(std::move(message), parsed);
  }
  on_call(std::move(message), parsed);
}

void Responder::on_option(Buffer message, const ParsedHeader& parsed) {
  const Header& h = parsed.header;
  if (overrun()) return;
  switch (options_known_.on_message(parsed, message)) {
    case OptionExchange::Verdict::kTaken:
      return;
    case OptionExchange::Verdict::kUnknown: {
      ++stats_.inval_option_sent;
      OutgoingMessage out;
      out.header = make_inval_option(h.xid, grant());
      return transmit_.send(std::move(out));
    }
    case OptionExchange::Verdict::kMalformed:
      return answer_err_chunk(h.xid, h.version);
    case OptionExchange::Verdict::kTooMany:
      return fail(make_error(Errc::kUntaggedNoBuffer, "peer sent more options than were taken"));
  }
}

Result<void> Responder::send_option(std::uint32_t xid, OptionBody option, Buffer&& message) {
  if (dead_) return make_error(Errc::kNotConnected);
  if (!answered_in_2_) return make_error(Errc::kInvalidArgument, "version 2 is not settled");
  auto out = options_known_.make(xid, std::move(option), message, grant(),
                                 inline_bytes(kVersion2, limits_.reply_inline_bytes));
  if (!out) return out.error();
  transmit_.send(std::move(*out));
  pump();
  return {};
}

// Whether the peer has more unanswered Calls than it was granted. What waits to be sent counts: a peer that does not
// receive must not make us collect answers for it.
bool Responder::overrun() {
  const std::size_t most = std::max<std::size_t>({options_.credits, old_credits_, 1}) + options_.backward_credits;
  if (outstanding_ + transmit_.backlog() < most) return false;
  fail(make_error(Errc::kUntaggedNoBuffer, "peer sent more Calls than it has credits"));  // req: RFC8166-2.3.2-5
  return true;
}

void Responder::on_call(Buffer message, ParsedHeader& parsed) {
  const Header& h = parsed.header;
  if (overrun()) return;
  if (const auto error = check_call(h)) return answer_error(*error);
  const ConstBytes payload = ConstBytes(message.bytes()).subspan(parsed.payload_offset);
  if (h.proc == Proc::kMsg && (!xid_matches(h, payload) || rpc_direction(payload) != RpcDirection::kCall)) {
    return answer_err_chunk(h.xid, h.version);  // by the header's xid. req: RFC8166-4.5.2-3 D2005-4.1-2
  }
  if (is_outstanding(h.xid)) {
    ++stats_.duplicate_xids;
    events_.emplace_back(CallRepeated{h.xid});
    return;
  }
  std::optional<CallPlan> plan;
  if (!h.read_list.empty()) {  // req: RFC8166-4.2.4-6
    auto planned = plan_call(h, payload.size(), options_.max_call_bytes);
    if (const auto* fault = std::get_if<PlanFault>(&planned); fault != nullptr && *fault == PlanFault::kTooLong) {
      return answer_err_chunk(h.xid, h.version);
    }
    if (auto* fine = std::get_if<CallPlan>(&planned)) {
      const bool unreadable = !fine->reads.empty() && assembler_.max_reads() == 0;
      if (unreadable || !pool_.can_hold(fine->total_bytes, BufferPool::Purpose::kCall, kHeadroomBytes)) {
        return answer_err_chunk(h.xid, h.version);
      }
      plan = std::move(*fine);
    }
  }

  if (free_calls_.empty()) {  // as many as were ever outstanding at a time
    free_calls_.push_back(static_cast<std::uint32_t>(calls_.size()));
    calls_.emplace_back();
  }
  const std::uint32_t slot = free_calls_.back();
  free_calls_.pop_back();
  Call& call = calls_[slot];
  call.used = true;
  call.delivered = false;
  call.xid = h.xid;
  call.version = client_version_ = h.version;
  call.offer = make_offer(h, {});
  call.read_chunk_bytes = 0;
  ++outstanding_;
  if (h.read_list.empty()) {
    message.set_view(parsed.payload_offset, payload.size());
    return deliver(slot, std::move(message));
  }
  ++stats_.calls_with_read_chunks;
  if (!plan) return refuse_arguments(slot);
  for (const RemoteRead& r : plan->reads) call.read_chunk_bytes += r.length;
  assembler_.add(slot, std::move(*plan), std::move(message), parsed.payload_offset);
  if (auto posted = assembler_.pump(); !posted) return fail(posted.error());
  if (assembler_.waits_for_memory()) ++stats_.delayed_calls;
}

void Responder::deliver_assembled(CallAssembler::Done done) {
  const Call& call = calls_[done.owner];
  const ConstBytes bytes = done.message.bytes();
  stats_.rdma_read_bytes += call.read_chunk_bytes;
  if (rpc_xid(bytes) != call.xid || rpc_direction(bytes) != RpcDirection::kCall) {
    const std::uint32_t xid = call.xid, version = call.version;
    free_call(done.owner);
    return answer_err_chunk(xid, version);  // req: RFC8166-4.2.1-1
  }
  if (options_.enforce_binding) {
    switch (check_chunks(bytes, done.plan, options_.declared.get())) {
      case ChunkVerdict::kFine:
        break;
      case ChunkVerdict::kNotEligible: {
        const std::uint32_t xid = call.xid, version = call.version;
        free_call(done.owner);
        return answer_err_chunk(xid, version);  // req: RFC8166-6.1-8 RFC8166-6.1-9
      }
      case ChunkVerdict::kWrongSize:
        return refuse_arguments(done.owner);  // req: RFC8166-4.5.2-5
    }
  }
  // req: D2005-3.8-3
  deliver(done.owner, std::move(done.message));
}

void Responder::deliver(std::uint32_t slot, Buffer message) {
  if (configures() && answer_configuration(slot, message.bytes())) return;
  Call& call = calls_[slot];
  if (!call.offer.write_list.empty() || options_.draft_2005.enabled) {
    call.offer.binding = ResultBinding::for_call(message.bytes(), options_.declared.get());
  }
  call.delivered = true;
  ++stats_.calls;
  CallReceived event;
  event.token = {slot, call.generation};
  event.xid = call.xid;
  event.message = std::move(message);
  event.read_chunk_bytes = call.read_chunk_bytes;
  for (const WriteChunk& c : call.offer.write_list) event.write_chunk_bytes += c.length();
  if (call.offer.reply_chunk) event.reply_chunk_bytes = call.offer.reply_chunk->length();
  events_.emplace_back(std::move(event));
}

// The header was fine, but its chunks cannot belong to this Call: the RPC layer's answer is GARBAGE_ARGS.
void Responder::refuse_arguments(std::uint32_t slot) {
  const std::uint32_t xid = calls_[slot].xid, version = calls_[slot].version;
  auto message = pool_.acquire(kErrorReplyBytes, BufferPool::Purpose::kReply);
  if (!message) {
    free_call(slot);
    return answer_err_chunk(xid, version);
  }
  const auto reply = make_error_reply(xid, AcceptStat::kGarbageArgs);
  std::copy(reply.begin(), reply.end(), message->bytes().begin());
  ++stats_.garbage_args_sent;
  send_reply(slot, std::move(*message), TimePoint::max());
}

bool Responder::is_outstanding(std::uint32_t xid) const {
  for (const Call& c : calls_) {
    if (c.used && c.xid == xid) return true;
  }
  return false;
}

void Responder::free_call(std::uint32_t slot) {
  Call& call = calls_[slot];
  call.used = false;
  ++call.generation;
  free_calls_.push_back(slot);
  --outstanding_;
}

}  // namespace iwarp::rpcrdma
