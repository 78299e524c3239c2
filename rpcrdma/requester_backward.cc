// Requester: Calls of the server (RFC 8167).
#include <algorithm>
#include <utility>

#include "iwarp/rpcrdma/requester.h"
#include "iwarp/rpcrdma/rpc_message.h"

namespace iwarp::rpcrdma {

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
  const bool in_line = h.proc == Proc::kMsg;
  if (h.has_chunks()) {
    // req: RFC8167-5.3-1 RFC8167-5.3-4 BIDIR-1.3.3-1 BIDIR-1.3.4-1
    if (!takes_chunks(h.version) || check_call(h)) return answer_err_chunk(h.xid, h.version);
  }
  if (in_line && !xid_matches(h, payload)) return answer_err_chunk(h.xid, h.version);  // req: RFC8167-5.1-4
  std::optional<CallPlan> plan;
  bool contradicts = false;
  if (!h.read_list.empty()) {
    auto planned = plan_call(h, payload.size(), options_.max_backward_call_bytes);
    if (auto* fine = std::get_if<CallPlan>(&planned)) plan = std::move(*fine);
    contradicts = !plan && std::get<PlanFault>(planned) == PlanFault::kBadPositions;
    const bool fits = plan && assembler_.max_reads() > 0 &&
                      pool_.can_hold(plan->total_bytes, BufferPool::Purpose::kBackward, kHeadroomBytes);
    if (!fits && !contradicts) return answer_err_chunk(h.xid, h.version);
  }
  slot->used = true;
  slot->xid = h.xid;
  slot->version = h.version;
  slot->offer = make_offer(h, {});
  const auto at = static_cast<std::uint32_t>(slot - peer_calls_.data());
  if (contradicts) return refuse_backward_arguments(at);
  if (plan) {
    ++stats_.backward_calls_by_read;
    return assembler_.add(at, std::move(*plan), std::move(message), parsed.payload_offset);
  }
  message.set_view(parsed.payload_offset, payload.size());
  deliver_backward(at, std::move(message));
}

void Requester::deliver_backward(std::uint32_t slot, Buffer message) {
  PeerCall& call = peer_calls_[slot];
  if (!call.offer.write_list.empty()) call.offer.binding = ResultBinding::for_call(message.bytes());
  ++stats_.backward_calls;
  events_.emplace_back(
      BackwardCall{{slot, call.generation}, call.xid, std::move(message)});  // req: RFC8167-2.2-1 RFC8267-6.5.2-1
}

void Requester::deliver_assembled(CallAssembler::Done done) {
  if ((done.owner & kFetchedReply) != 0) return on_reply_fetched(std::move(done));
  const PeerCall& call = peer_calls_[done.owner];
  const std::uint32_t xid = call.xid, version = call.version;
  const ConstBytes bytes = done.message.bytes();
  auto verdict = check_chunks(bytes, done.plan);
  if (rpc_xid(bytes) != xid || rpc_direction(bytes) != RpcDirection::kCall) verdict = ChunkVerdict::kNotEligible;
  switch (verdict) {
    case ChunkVerdict::kFine:
      return deliver_backward(done.owner, std::move(done.message));
    case ChunkVerdict::kWrongSize:
      return refuse_backward_arguments(done.owner);
    case ChunkVerdict::kNotEligible:
      break;
  }
  free_peer_call(done.owner);
  answer_err_chunk(xid, version);  // req: RFC8167-5.1-4
}

// The header was fine, but its chunks cannot belong to this Call.
void Requester::refuse_backward_arguments(std::uint32_t slot) {
  const PeerCall& call = peer_calls_[slot];
  const std::uint32_t xid = call.xid, version = call.version;
  const CallToken token{slot, call.generation};
  auto message = pool_.acquire(kErrorReplyBytes, BufferPool::Purpose::kBackward);
  if (!message) {
    free_peer_call(slot);
    return answer_err_chunk(xid, version);
  }
  const auto reply = make_error_reply(xid, AcceptStat::kGarbageArgs);  // req: RFC8166-4.5.2-5
  std::copy(reply.begin(), reply.end(), message->bytes().begin());
  ++stats_.garbage_args_sent;
  (void)reply_backward(token, std::move(*message));
}

void Requester::free_peer_call(std::uint32_t slot) {
  PeerCall& call = peer_calls_[slot];
  call.used = false;
  ++call.generation;
  call.offer = {};
}

void Requester::answer_err_chunk(std::uint32_t xid, std::uint32_t version) {
  const auto granted = std::max<std::uint32_t>(options_.backward_credits, 1);
  answer(make_err_chunk(xid, version, granted), stats_.err_chunk_sent);
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

void Requester::on_option(Buffer message, const ParsedHeader& parsed) {
  const Header& h = parsed.header;
  switch (options_known_.on_message(parsed, message)) {
    case OptionExchange::Verdict::kTaken:
      return;
    case OptionExchange::Verdict::kUnknown:
      return answer(make_inval_option(h.xid, std::max<std::uint32_t>(options_.backward_credits, 1)),
                    stats_.inval_option_sent);
    case OptionExchange::Verdict::kMalformed:
      return answer_err_chunk(h.xid, h.version);
    case OptionExchange::Verdict::kTooMany:
      return fail(make_error(Errc::kUntaggedNoBuffer, "peer sent more options than were taken"));
  }
}

Result<void> Requester::send_option(std::uint32_t xid, OptionBody option, Buffer&& message) {
  if (dead_) return make_error(Errc::kNotConnected);
  if (versions_.alone() || versions_.version() != kVersion2 || outstanding_since(xid)) {
    return make_error(Errc::kInvalidArgument, "version 2 is not settled, or that xid is outstanding");
  }
  if (window_.available() == 0) return make_error(Errc::kQueueFull);
  auto out = options_known_.make(xid, std::move(option), message, window_.requested(),
                                 versions_.inline_bytes(limits_.call_inline_bytes));
  if (!out) return out.error();
  transmit_.send(std::move(*out));
  pump();
  return {};
}

std::uint32_t Requester::max_backward_bytes() const {
  return max_backward_bytes(versions_.version());
}

std::uint32_t Requester::max_backward_bytes(std::uint32_t version) const {
  // Thresholds swap: a backward Reply travels like a forward Call. req: RFC8167-4.2-1
  const std::uint32_t agreed = std::min(limits_.call_inline_bytes, limits_.reply_inline_bytes);
  const std::uint32_t now = versions_.inline_bytes(agreed);
  return (version == kVersion1 ? std::min(agreed, now) : now) - std::uint32_t{kMinHeaderBytes};
}

Result<void> Requester::reply_backward(CallToken token, Buffer&& message) {
  if (dead_) return make_error(Errc::kNotConnected);
  PeerCall* call = find_peer_call(token);
  if (call == nullptr) return make_error(Errc::kInvalidArgument, "unknown backward Call");
  // req: RFC8167-5.2-1 RFC8167-5.2-4 RFC8167-5.2-5
  if (rpc_xid(message.bytes()) != call->xid || rpc_direction(message.bytes()) != RpcDirection::kReply) {
    return make_error(Errc::kInvalidArgument, "not the Reply to this backward Call");
  }
  ReplyPlan plan = plan_reply(call->xid, call->offer, message.bytes(), options_.backward_credits,
                              max_backward_bytes(call->version) + std::uint32_t{kMinHeaderBytes});
  if (plan.error) {  // req: RFC8167-5.3-2 RFC8167-5.3-3
    return make_error(Errc::kInvalidArgument, "backward Reply exceeds the inline threshold");
  }
  OutgoingMessage out;
  // Its xid is that of the Call, its credits are not 0, for a Call was granted. req: RFC8167-1-1 RFC8167-5-1
  // RFC8167-2.4-3 req: RFC8167-5.2-3 RFC8167-4.1-3 BIDIR-2.1.2-1 BIDIR-2.6-1 BIDIR-2.6-2 BIDIR-2.6-3
  out.header = std::move(plan.header);
  out.header.version = call->version;  // req: RFC8167-5.2-2
  out.in_line = std::move(plan.in_line);
  out.writes = std::move(plan.writes);
  for (const ByteRange& r : out.in_line) stats_.send_payload_bytes += r.length;
  out.payload = std::move(message);
  transmit_.send(std::move(out));
  ++stats_.backward_replies;
  abandon_backward(token);
  pump();
  return {};
}

void Requester::abandon_backward(CallToken token) {
  if (find_peer_call(token) != nullptr) free_peer_call(token.slot);
}

Requester::PeerCall* Requester::find_peer_call(CallToken token) {
  if (token.slot >= peer_calls_.size()) return nullptr;
  PeerCall& call = peer_calls_[token.slot];
  return call.used && call.generation == token.generation ? &call : nullptr;
}

}  // namespace iwarp::rpcrdma
