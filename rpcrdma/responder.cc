#include "iwarp/rpcrdma/responder.h"

#include <algorithm>
#include <utility>

#include "iwarp/rpcrdma/rpc_message.h"

namespace iwarp::rpcrdma {

PrivateData private_data(const ResponderOptions& options) {
  const std::uint32_t send_bytes = options.send_bytes == 0 ? options.inline_bytes : options.send_bytes;
  return {options.remote_invalidation, send_bytes, options.inline_bytes};
}

namespace {

// req: V2-2.3-1 V2-2.1-1
std::uint32_t receive_bytes(const ResponderOptions& options) {
  return options.highest_version == kVersion1 ? options.inline_bytes
                                              : std::max(options.inline_bytes, kDefaultInlineBytes2);
}

ConfigLimits config_limits(Endpoint& endpoint, const ResponderOptions& options) {
  ConfigLimits out;
  out.call_bytes = config_announced_bytes(options.inline_bytes);
  out.reply_bytes = options.send_bytes == 0 ? options.inline_bytes : options.send_bytes;
  out.incoming_reads = options.draft_2005.incoming_reads;
  out.outgoing_reads =
      static_cast<std::uint32_t>(std::min<std::size_t>(endpoint.limits().max_outstanding_reads, UINT32_MAX));
  out.align = options.draft_2005.align;
  return out;
}

}  // namespace

BufferPool::Options pool_options(const ResponderOptions& options) {
  constexpr std::size_t kHeadersInFlight = 128;
  const std::size_t receives = std::size_t{options.credits} + 2 * std::size_t{options.backward_credits};
  BufferPool::Options out;
  out.control_bytes = 2 * receives * BufferPool::charged_bytes(receive_bytes(options)) +
                      kHeadersInFlight * BufferPool::charged_bytes(kDefaultInlineBytes);
  return out;
}

Responder::Responder(Endpoint& endpoint, BufferPool& pool, const ConnectionLimits& limits,
                     const ResponderOptions& options, ReceiveRing* shared)
    : endpoint_(endpoint),
      pool_(pool),
      limits_(limits),  // req: RFC8166-3.3.2-2
      options_(options),
      // One for every Call granted, one for the Reply to every backward Call. req: RFC8167-4.3.2-1 RFC8167-4.3.2-2
      own_receives_(endpoint, pool,
                    shared != nullptr ? 0 : std::max<std::size_t>(options.credits, 1) + options.backward_credits,
                    receive_bytes(options)),
      receives_(shared != nullptr ? *shared : own_receives_),
      shares_(shared != nullptr),
      transmit_(endpoint, pool),
      assembler_(endpoint, pool, transmit_),
      backward_window_(options.backward_credits),  // req: RFC8167-4.1-4
      options_known_(options.extensions, std::max<std::size_t>(options.credits, 1)),
      config_(config_limits(endpoint, options), options.draft_2005.config_program),
      kept_(options.draft_2005.done) {
  options_.header_limits.dialect = {.version_2 = options.highest_version == kVersion2,
                                    .draft_2005 = options.draft_2005.enabled};
}

Result<void> Responder::start() {
  if (options_.highest_version < kVersion1 || options_.highest_version > kVersion2) {
    return make_error(Errc::kInvalidArgument, "no such version of RPC-over-RDMA");
  }
  if (options_.backward_chunks &&
      !pool_.can_hold(options_.max_backward_reply_bytes, BufferPool::Purpose::kBackward, kHeadroomBytes)) {
    return make_error(Errc::kInvalidArgument, "pool too small for a backward Reply");
  }
  if (auto posted = receives_.fill(); !posted) return posted;  // req: RFC8167-4.3-1 RFC8167-4.3.2-3
  if (receives_.missing() > 0) return make_error(Errc::kResource, "pool too small for the Receives");
  return {};
}

void Responder::on_completion(const Completion& completion) {
  const bool ok = completion.status == OpStatus::kOk;
  switch (work_owner(completion.id)) {
    case WorkOwner::kReceive: {
      Buffer message = receives_.take(completion);
      if (dead_ || !ok) break;
      // req: D2005-3.8-9 D2005-6-1
      // Posted again whatever this message is, and before anything that grants a credit for it leaves.
      // req: RFC8166-3.3.1-7
      if (auto posted = receives_.fill(); !posted) return fail(posted.error());
      if (message) on_message(std::move(message));
      if (old_calls_ > 0 && --old_calls_ == 0) {
        old_credits_ = 0;
        if (!shares_) receives_.resize(std::size_t{options_.credits} + options_.backward_credits);
      }
      break;
    }
    case WorkOwner::kTransmit:
      transmit_.on_completion(completion);
      break;
    case WorkOwner::kAssembly:
      assembler_.on_completion(completion);
      break;
  }
  if (!ok) {
    // req: RFC8166-4.5.3-1
    return fail(completion.status == OpStatus::kFlushed ? make_error(Errc::kFlushed)
                                                        : make_error(Errc::kConnectionLost, "RDMA operation failed"));
  }
  pump();
}

std::optional<Responder::Event> Responder::poll_event() {
  if (events_.empty()) return std::nullopt;
  Event out = std::move(events_.front());
  events_.pop_front();
  return out;
}

Result<void> Responder::reply(CallToken token, Buffer&& message, TimePoint now) {
  if (dead_) return make_error(Errc::kNotConnected);
  // req: RFC8166-3.3.1-9 RFC8167-2-1
  if (!names_delivered_call(token)) return make_error(Errc::kInvalidArgument, "unknown Call");
  // req: RFC8166-2.2.2-2 RFC8167-2.1-1
  if (rpc_xid(message.bytes()) != calls_[token.slot].xid || rpc_direction(message.bytes()) != RpcDirection::kReply) {
    return make_error(Errc::kInvalidArgument, "not the Reply to this Call");
  }
  send_reply(token.slot, std::move(message), now);
  pump();
  return {};
}

bool Responder::names_delivered_call(CallToken token) const {
  if (token.slot >= calls_.size()) return false;
  const Call& call = calls_[token.slot];
  return call.used && call.delivered && call.generation == token.generation;
}

void Responder::abandon(CallToken token) {
  if (names_delivered_call(token)) free_call(token.slot);
}

void Responder::send_reply(std::uint32_t slot, Buffer message, TimePoint now) {
  Call& call = calls_[slot];
  const std::uint32_t xid = call.xid, version = call.version;
  ReplyPlan plan = plan_reply(xid, call.offer, message.bytes(), grant(), inline_bytes(version, reply_inline_bytes()));
  const std::optional<Stag> sole = call.offer.sole_handle;
  const ReplyOffer offer = plan.error || options_.draft_2005.enabled ? std::move(call.offer) : ReplyOffer{};
  free_call(slot);
  if (plan.error && version == kVersion1 && offer_reply(xid, offer, message, now)) return;
  if (plan.error) {
    // req: D2005-3.4-8
    ++stats_.replies_as_err_chunk;
    return answer_err_chunk(xid, version);
  }
  plan.header.version = version;  // req: V2-5.3-1 V2-5.1-1
  answered_in_2_ |= version == kVersion2;

  stats_.rdma_write_bytes += plan.reduced_bytes + plan.reply_chunk_bytes;
  for (const ByteRange& r : plan.in_line) stats_.send_payload_bytes += r.length;
  if (plan.header.proc == Proc::kNomsg) {
    ++stats_.replies_in_reply_chunk;
  } else if (plan.reduced_bytes == 0) {
    ++stats_.replies_in_line;
  }
  if (plan.reduced_bytes > 0) ++stats_.replies_reduced;

  OutgoingMessage out;
  out.header = std::move(plan.header);
  out.payload = std::move(message);
  out.in_line = std::move(plan.in_line);
  out.writes = std::move(plan.writes);
  if (out.header.proc == Proc::kMsg && version == kVersion1 && plan.reduced_bytes == 0) pad_reply(out, offer.binding);
  // Only when both sides allow it, and only a tag that came with this very Call; and only when there is no choice, so
  // that the peer need not guess which. req: RFC8797-4.1-1 RFC8797-4.1-2 RFC8797-4.1-3 RFC8797-3.2-2 RFC8797-3.2-3
  if (limits_.remote_invalidation) out.invalidate = sole;
  // However few Receives for Calls there are: the client has one for each Reply. req: D2005-3.3-1
  transmit_.send(std::move(out));
}

void Responder::answer_error(const ParseError& error) {
  const auto header = make_answer(error, grant(), options_.header_limits.dialect);
  if (!header) {
    ++stats_.dropped_messages;
    return;
  }
  ++(error.answer == ParseError::Answer::kErrVers ? stats_.err_vers_sent : stats_.err_chunk_sent);
  OutgoingMessage out;
  out.header = *header;  // never with invalidation
  transmit_.send(std::move(out));
}

void Responder::answer_err_chunk(std::uint32_t xid, std::uint32_t version) {
  answer_error({ParseError::Answer::kErrChunk, xid, version, "chunks unusable"});
}

std::uint32_t Responder::inline_bytes(std::uint32_t version, std::uint32_t agreed) const {
  if (version != kVersion2) return agreed;
  // The answer that tells the client which version this is finds Receives of any size. req: V2-5.1-2 V2-5-4 V2-2.3-2
  return answered_in_2_ ? std::max(agreed, kDefaultInlineBytes2) : std::min(agreed, kDefaultInlineBytes);
}

void Responder::pump() {
  if (dead_) return;
  if (auto posted = receives_.fill(); !posted) return fail(posted.error());
  pump_backward();
  bool more = true;
  while (more) {
    more = false;
    // Replies before Reads: they give memory back.
    if (auto posted = transmit_.pump(); !posted) return fail(posted.error());  // req: RFC8166-4.5.4-3
    if (auto posted = assembler_.pump(); !posted) return fail(posted.error());
    while (auto done = assembler_.take_finished()) {
      deliver_assembled(std::move(*done));
      more = true;
    }
  }
}

void Responder::progress() {
  pump();
}

void Responder::on_disconnect() {
  dead_ = true;
  release_all();
  transmit_.stop();
  assembler_.stop();
}

void Responder::fail(Error error) {
  if (dead_) return;
  on_disconnect();
  events_.emplace_back(MustClose{error});
}

bool Responder::idle() const {
  const auto wanted = [](const BackwardCall& b) { return !b.cancelled; };
  return outstanding_ == 0 && kept_.replies() == 0 &&
         std::none_of(backward_calls_.begin(), backward_calls_.end(), wanted) && all_sent();
}

std::uint32_t Responder::grant() const {
  if (configures() && config_.terms().alone) return 1;  // req: D2005-6.1-2
  // req: D2005-3.3-3
  // Never 0, and never more than there are Receives for. req: RFC8166-3.3.1-3 RFC8167-4.3.2-1 RFC8167-4.1-2
  if (shares_) return std::max<std::uint32_t>(options_.credits, 1);
  const std::size_t posted = receives_.posted() - std::min<std::size_t>(receives_.posted(), options_.backward_credits);
  return std::max<std::uint32_t>(static_cast<std::uint32_t>(std::min<std::size_t>(options_.credits, posted)), 1);
}

Result<void> Responder::set_credits(std::uint32_t credits) {
  if (dead_) return make_error(Errc::kNotConnected);
  credits = std::max<std::uint32_t>(credits, 1);
  const std::size_t receives = std::size_t{credits} + options_.backward_credits;
  if (receives > endpoint_.limits().receive_queue_depth) {
    return make_error(Errc::kInvalidArgument, "more credits than the receive queue has entries");
  }
  const std::uint32_t now = std::max<std::uint32_t>(options_.credits, 1), before = std::max(now, old_credits_);
  if (credits > before && !shares_) {
    if (!receives_.can_hold(receives)) return make_error(Errc::kResource, "pool too small for the Receives");
    receives_.resize(receives);  // req: RFC8166-3.3.1-7
    if (auto posted = receives_.fill(); !posted) {
      fail(posted.error());
      return posted;
    }
  }
  // Until it hears of the fewer, the client has as many Calls unanswered as it was granted before at most: so many come
  // at most, whatever it is sent meanwhile. req: RFC8166-3.3.1-6
  old_credits_ = credits < before ? before : 0;
  old_calls_ = old_credits_;
  options_.credits = credits;
  return {};
}

}  // namespace iwarp::rpcrdma
