#include "iwarp/rpcrdma/requester.h"

#include <algorithm>
#include <utility>

#include "iwarp/rpcrdma/offer_plan.h"
#include "iwarp/rpcrdma/rpc_message.h"
#include "iwarp/rpcrdma/xdr_padding.h"

namespace iwarp::rpcrdma {

PrivateData private_data(const RequesterOptions& options) {
  const std::uint32_t send_bytes = options.send_bytes == 0 ? options.inline_bytes : options.send_bytes;
  return {options.remote_invalidation, send_bytes, options.inline_bytes};
}

namespace {

// req: V2-2.3-1 V2-2.1-1
std::uint32_t receive_bytes(const RequesterOptions& options) {
  return options.highest_version == kVersion1 ? options.inline_bytes
                                              : std::max(options.inline_bytes, kDefaultInlineBytes2);
}

ConfigLimits config_limits_of_client(Endpoint& endpoint, const RequesterOptions& options) {
  ConfigLimits out;
  out.call_bytes = options.send_bytes == 0 ? options.inline_bytes : options.send_bytes;
  out.reply_bytes = config_announced_bytes(options.inline_bytes);
  out.incoming_reads = options.draft_2005.incoming_reads;
  out.outgoing_reads =
      static_cast<std::uint32_t>(std::min<std::size_t>(endpoint.limits().max_outstanding_reads, UINT32_MAX));
  return out;
}

}  // namespace

BufferPool::Options pool_options(const RequesterOptions& options) {
  constexpr std::size_t kHeadersInFlight = 128;
  const std::size_t receives = std::size_t{options.credits} + options.backward_credits;
  BufferPool::Options out;
  // Besides what is received, what goes in line beside Read chunks.
  const std::uint32_t sends = std::max(receive_bytes(options), options.send_bytes);
  out.control_bytes = 2 * receives * BufferPool::charged_bytes(receive_bytes(options)) +
                      options.credits * BufferPool::charged_bytes(sends) +
                      kHeadersInFlight * BufferPool::charged_bytes(kDefaultInlineBytes);
  return out;
}

Requester::Requester(Endpoint& endpoint, BufferPool& pool, const ConnectionLimits& limits,
                     const RequesterOptions& options, ReceiveRing* shared)
    : endpoint_(endpoint),
      pool_(pool),
      limits_(limits),  // req: RFC8166-3.3.2-2
      options_(options),
      // One for the Reply to every Call, one for every backward Call granted.
      // req: RFC8166-3.3.1-8 RFC8167-4.3.1-1 RFC8167-4.3.1-2 BIDIR-1.3.2-1
      own_receives_(endpoint, pool,
                    shared != nullptr ? 0 : std::max<std::size_t>(options.credits, 1) + options.backward_credits,
                    receive_bytes(options)),
      receives_(shared != nullptr ? *shared : own_receives_),
      shares_(shared != nullptr),
      transmit_(endpoint, pool),
      assembler_(endpoint, pool, transmit_,
                 options.draft_2005.enabled ? BufferPool::Purpose::kReply : BufferPool::Purpose::kBackward),
      window_(options.credits),
      versions_(options.highest_version, options.lowest_version),
      options_known_(options.extensions, std::max<std::size_t>(options.backward_credits, 1)),
      config_(config_limits_of_client(endpoint, options), options.draft_2005.config_program),
      peer_calls_(options.backward_credits) {
  options_.header_limits.dialect = {.version_2 = options.highest_version == kVersion2,
                                    .draft_2005 = options.draft_2005.enabled};
}

Result<void> Requester::start() {
  if (options_.lowest_version < kVersion1 || options_.lowest_version > options_.highest_version ||
      options_.highest_version > kVersion2) {
    return make_error(Errc::kInvalidArgument, "no such versions of RPC-over-RDMA");
  }
  if (options_.draft_2005.enabled && options_.highest_version != kVersion1) {
    return make_error(Errc::kInvalidArgument, "the draft of 2005 has version 1 only");
  }
  if (auto posted = receives_.fill(); !posted) return posted;  // req: RFC8167-4.3-1 RFC8167-4.3.1-3
  if (receives_.missing() > 0) return make_error(Errc::kResource, "pool too small for the Receives");
  return {};
}

void Requester::on_completion(const Completion& completion) {
  const bool ok = completion.status == OpStatus::kOk;
  switch (work_owner(completion.id)) {
    case WorkOwner::kReceive: {
      Buffer message = receives_.take(completion);
      if (dead_ || !ok) break;
      if (auto posted = receives_.fill(); !posted) return fail(posted.error());
      // `invalidated` needs no look: invalidate() succeeds for what the peer has taken away already.
      if (message) on_message(std::move(message));
      break;
    }
    case WorkOwner::kTransmit:
      transmit_.on_completion(completion);
      if (ok) tell_left();
      break;
    case WorkOwner::kAssembly:
      assembler_.on_completion(completion);
      break;
  }
  if (!ok) {
    // req: RFC8267-6.7.2-4
    return fail(completion.status == OpStatus::kFlushed ? make_error(Errc::kFlushed)
                                                        : make_error(Errc::kConnectionLost, "RDMA operation failed"));
  }
  pump();
}

std::optional<Requester::Event> Requester::poll_event() {
  if (events_.empty()) return std::nullopt;
  Event out = std::move(events_.front());
  events_.pop_front();
  return out;
}

void Requester::tell_left() {
  for (; !dead_ && !leaving_.empty() && leaving_.front().mark <= transmit_.finished(); leaving_.pop_front()) {
    Call* call = find(leaving_.front().xid);
    if (call == nullptr || call->cancelled || call->left_mark != leaving_.front().mark) continue;  // such as answered
    if (std::exchange(call->tell_left, false)) events_.emplace_back(CallLeft{call->asked_xid, call->tag});
  }
}

Result<void> Requester::call(Buffer&& message, TimePoint now, std::uint32_t tag, std::size_t max_reply,
                             bool tell_left) {
  if (dead_) return make_error(Errc::kNotConnected);
  const auto xid = rpc_xid(message.bytes());
  if (!xid || rpc_direction(message.bytes()) != RpcDirection::kCall) {
    return make_error(Errc::kInvalidArgument, "not an RPC Call");
  }
  if (outstanding_since(*xid)) return make_error(Errc::kInvalidArgument, "xid is outstanding");  // req: RFC8167-2.4-2
  if (!can_take_call()) return make_error(Errc::kQueueFull);
  queued_.push_back({*xid, std::move(message), now, tag, 0, {}, false, max_reply, *xid, tell_left});
  pump();
  return {};
}

void Requester::pump() {
  if (dead_) return;
  // One for each Reply that is due, also where more Calls are out than may be now. req: RFC8166-3.3.1-8
  if (!shares_) {
    receives_.resize(std::max<std::size_t>(window_.requested(), window_.in_flight()) + options_.backward_credits);
  }
  if (auto posted = receives_.fill(); !posted) return fail(posted.error());
  // The Reply must find a Receive, beside those for backward Calls. req: RFC8166-3.3.1-8 RFC8166-6.2-1
  // req: RFC8166-3.3-1 RFC8166-8.1.4-3 RFC8167-4-1
  while (!dead_ && !queued_.empty() && window_.available() > 0 && has_receive() && !is_held_back()) {
    if (versions_.alone() && window_.in_flight() > 0) break;  // req: V2-5-2
    if (!admits_call()) break;
    if (!try_send(queued_.front())) {
      if (!dead_) queued_.front().trimmed = false;  // there may be idle memory again
      break;
    }
    queued_.pop_front();
    held_at_.reset();
  }
  bool more = true;
  while (more) {
    more = false;
    if (auto posted = transmit_.pump(); !posted) return fail(posted.error());
    if (auto posted = assembler_.pump(); !posted) return fail(posted.error());
    while (auto done = assembler_.take_finished()) {
      deliver_assembled(std::move(*done));
      more = true;
    }
  }
}

std::optional<bool> Requester::acquire_reply_memory(const OfferPlan& plan, Call& call) {
  // The chunks in order, and room around them for what comes in line: the Reply is put together there.
  constexpr std::size_t kAlign = 64;
  const std::size_t gap = plan.write_chunks.empty() ? 0 : (plan.reply_rest + kAlign - 1) / kAlign * kAlign;
  std::size_t size = 0;
  for (const std::uint32_t octets : plan.write_chunks) {
    if (octets > 0) size += gap;
    // req: RFC8166-3.4.6-2 RFC8166-3.4.6.2-1 RFC8166-4.3.2.1-3
    call.write_chunks.push_back({{size, octets}, std::nullopt});
    size += static_cast<std::size_t>(padded(octets));
  }
  size += gap;
  if (plan.reply_chunk > 0) {
    call.reply_chunk = Offered{{size, plan.reply_chunk}, std::nullopt};
    size += plan.reply_chunk;
  }
  if (size == 0) return true;
  auto memory = pool_.acquire(size, BufferPool::Purpose::kReply, kHeadroomBytes);
  if (!memory) {
    if (pool_.can_hold(size, BufferPool::Purpose::kReply, kHeadroomBytes)) return false;
    return std::nullopt;
  }
  call.reply = std::move(*memory);
  return true;
}

bool Requester::copy_rest(const OfferPlan& plan, ConstBytes message, Buffer& out) {
  std::size_t octets = 0;
  for (const ByteRange& r : plan.rest) octets += r.length;
  auto room = pool_.acquire(octets, BufferPool::Purpose::kControl);
  if (!room) return false;
  std::size_t at = 0;
  for (const ByteRange& r : plan.rest) {
    const ConstBytes part = message.subspan(r.offset, r.length);
    std::copy(part.begin(), part.end(), room->bytes().begin() + static_cast<std::ptrdiff_t>(at));
    at += r.length;
  }
  out = std::move(*room);
  return true;
}

bool Requester::expose(const OfferPlan& plan, ConstBytes message, Call& call, Header& h) {
  // req: D2005-7-1
  // Fresh handles for every Call, exposed no earlier than now. req: RFC8166-8.1.2-1 RFC8166-8.1.3-1 RFC8166-3.4.5-6
  const auto exposed = [this](MutBytes memory, RemoteAccess access, std::optional<ExposedMemory>& out) {
    // req: RFC8797-3.2-4
    auto done = endpoint_.register_memory(memory, access, options_.remote_invalidation);
    if (done) out = *done;
    return done.ok();
  };
  const auto offer = [&](Offered& o, WriteChunk& chunk) {
    if (o.room.length == 0) return true;  // an empty chunk
    const MutBytes memory = call.reply.bytes().subspan(o.room.offset, o.room.length);
    if (!exposed(memory, RemoteAccess::kWrite, o.memory)) return false;
    // req: RFC8267-6.4.2-1
    chunk.segments.push_back({o.memory->handle, static_cast<std::uint32_t>(o.room.length), o.memory->offset});
    return true;
  };
  for (Offered& o : call.write_chunks) {
    h.write_list.push_back({});
    if (!offer(o, h.write_list[h.write_list.size() - 1])) return false;
  }
  if (call.reply_chunk && !offer(*call.reply_chunk, h.reply_chunk.emplace())) return false;
  if (!call.message) return true;

  // One registration, of no more than travels in chunks. req: RFC5042-6.3.2-1 RFC5042-6.3.4-1
  const bool one_item = plan.in_line && plan.data.size() == 1;
  const ByteRange range = one_item ? ByteRange{plan.data[0].offset, plan.data[0].length} : ByteRange{0, message.size()};
  const MutBytes memory = call.message.bytes().subspan(range.offset, range.length);
  if (!exposed(memory, RemoteAccess::kRead, call.call_memory)) return false;
  const auto add = [&](std::uint64_t position, std::size_t offset, std::size_t length) {
    // req: D2005-3.4-2
    // req: RFC8166-3.4.5-1 RFC8166-3.5.3-9
    h.read_list.push_back({static_cast<std::uint32_t>(position),
                           {call.call_memory->handle, static_cast<std::uint32_t>(length),
                            call.call_memory->offset + (offset - range.offset)}});
    call.read_bytes += length;
  };
  if (!plan.in_line) {
    // req: D2005-4-2 D2005-5.1-1
    h.proc = Proc::kNomsg;  // req: RFC8166-3.5.3-2 RFC8166-3.5.3-3 RFC8166-3.5.3-10
    for (const ByteRange& r : plan.rest) add(0, r.offset, r.length);
  }
  for (const DdpItem& d : plan.data) add(d.position, d.offset, d.length);  // req: RFC8166-3.4.5-2 RFC8166-3.4.5.2-4
  return true;
}

bool Requester::try_send(Queued& queued) {
  OutgoingMessage out;
  Header& h = out.header;  // req: RFC8166-4.3.2-2 RFC8166-4.3.2.3-1
  h.xid = queued.xid;      // that of the message. req: D2005-4.1-2
  // req: D2005-3.3-2 D2005-4.1-4
  h.credits = window_.requested();  // req: RFC8166-3.3.1-1 RFC8166-4.2.3-1
  h.version = versions_.version();  // req: V2-5-3

  const auto fail_queued = [&] {
    events_.emplace_back(CallFailed{queued.asked_xid, Failure::kLocal, 0, 0, queued.tag});
    return true;
  };
  const auto ready = have_message(queued);
  if (!ready) return fail_queued();
  if (!*ready) return false;
  const ConstBytes message = queued.message.bytes();
  Call fresh;
  fresh.used = true;
  fresh.xid = queued.xid;
  fresh.asked_xid = queued.asked_xid;
  fresh.since = queued.since;
  fresh.tag = queued.tag;
  fresh.times_sent = queued.times_sent + 1;
  fresh.order = calls_sent_++;
  fresh.max_reply = queued.max_reply;
  fresh.tell_left = queued.tell_left;
  fresh.results = ResultBinding::for_call(message, options_.declared.get());
  OfferPolicy policy = options_.offers;
  if (queued.no_write_chunks) policy.write_chunks = 0;
  const bool no_memory = options_.draft_2005.enabled && !options_.draft_2005.offer_reply_memory;
  if (no_memory) policy.write_chunks = 0;
  policy.guess_replies = policy.guess_replies && queued.xid == queued.asked_xid;  // once. req: RFC8267-3.1-4
  OfferPlan plan =
      plan_offer(message, fresh.results, policy, versions_.inline_bytes(call_inline_bytes()),
                 versions_.inline_bytes(reply_inline_bytes()), std::min(options_.max_reply_bytes, queued.max_reply),
                 options_.declared.get(), sessions_.limit(message));
  if (no_memory) plan.reply_chunk = 0;
  fresh.guessed = plan.guessed && !no_memory;
  const auto memory = acquire_reply_memory(plan, fresh);
  if (!memory && !plan.write_chunks.empty()) {  // a Reply chunk needs no gaps
    queued.no_write_chunks = true;
    return try_send(queued);
  }
  if (!memory) return fail_queued();
  const bool whole_in_line = plan.in_line && plan.data.empty();
  if (!whole_in_line && !may_offer_read_chunks()) return fail_queued();  // req: D2005-6.2-8
  fresh.done_mark = dones_.mark();
  // The server reads from the message as it is: what goes in line beside Read chunks is copied.
  if (!*memory || (plan.in_line && !whole_in_line && !copy_rest(plan, message, out.payload))) return false;
  if (!whole_in_line) fresh.message = std::move(queued.message);

  auto unused = std::find_if(calls_.begin(), calls_.end(), [](const Call& c) { return !c.used; });
  if (unused == calls_.end()) unused = calls_.emplace(unused);  // as many as were ever outstanding at a time
  *unused = std::move(fresh);
  Call& call = *unused;
  window_.on_call_sent();
  if (!expose(plan, message, call, h)) {
    if (const auto again = take_back(call, queued, whole_in_line)) return *again && try_send(queued);
    if (!dead_) fail_call(call, Failure::kLocal, {});  // req: RFC8166-4.5.4-1
    return !dead_ || !whole_in_line;                   // what would have gone in line is in the queue still
  }

  if (queued.xid != queued.asked_xid) {
    ++stats_.calls_larger;
  } else if (queued.times_sent > 0) {
    ++stats_.calls_again;
  } else {
    stats_.write_chunks_offered += call.write_chunks.size();
    stats_.reply_chunks_offered += call.reply_chunk ? 1 : 0;
    stats_.read_chunk_bytes += call.read_bytes;
    ++(plan.in_line ? stats_.calls_in_line : stats_.calls_in_read_chunk);
    stats_.calls_reduced += plan.data.empty() ? 0 : 1;
  }
  if (whole_in_line) {
    if (versions_.alone() || options_.retransmission || call.guessed) {
      call.copy = std::move(queued.copy);
      call.copy.assign(message.begin(), message.end());
    }
    out.payload = std::move(queued.message);
    pad_call(out);
  }
  if (out.payload) {
    out.in_line.push_back({0, out.payload.size()});  // octet for octet. req: D2005-4-1
    stats_.send_payload_bytes += out.payload.size();
  }
  const bool asks = versions_.alone();  // and may have to go again
  versions_.on_call_sent();
  transmit_.send(std::move(out));
  if (whole_in_line && !asks) {
    call.left_mark = transmit_.taken();
    leaving_.push_back({call.xid, call.left_mark});
  }
  return true;
}

bool Requester::cancel(std::uint32_t xid) {
  const auto waits = std::find_if(queued_.begin(), queued_.end(), [&](const Queued& q) { return q.asked_xid == xid; });
  if (waits != queued_.end()) {
    if (waits == queued_.begin()) held_at_.reset();
    queued_.erase(waits);
    return true;
  }
  const auto call =
      std::find_if(calls_.begin(), calls_.end(), [&](const Call& c) { return c.used && c.asked_xid == xid; });
  if (call == calls_.end() || call->cancelled) return false;
  // Its memory stays exposed, and ours to keep, until the Reply: taking it away now would make the server's next RDMA
  // operation end the connection, and all other RPCs with it. req: RFC8166-4.4.1-3
  call->cancelled = true;
  return true;
}

bool Requester::want_again(std::uint32_t xid, bool tell_left) {
  const auto call = std::find_if(calls_.begin(), calls_.end(),
                                 [&](const Call& c) { return c.used && c.cancelled && c.asked_xid == xid; });
  if (call == calls_.end()) return false;
  call->cancelled = false;
  const bool left = call->left_mark != 0 && call->left_mark <= transmit_.finished();
  call->tell_left = tell_left && !left;
  if (tell_left && left && !dead_) events_.emplace_back(CallLeft{call->asked_xid, call->tag});
  return true;
}

std::optional<TimePoint> Requester::outstanding_since(std::uint32_t xid) const {
  const auto is = [xid](const auto& c) { return c.xid == xid || c.asked_xid == xid; };
  const auto sent = std::find_if(calls_.begin(), calls_.end(), [&](const Call& c) { return c.used && is(c); });
  if (sent != calls_.end()) return sent->since;
  const auto waits = std::find_if(queued_.begin(), queued_.end(), is);
  return waits != queued_.end() ? std::optional(waits->since) : std::nullopt;
}

Requester::Call* Requester::find(std::uint32_t xid) {
  for (Call& c : calls_) {
    if (c.used && c.xid == xid) return &c;
  }
  return nullptr;
}

Result<void> Requester::set_credits(std::uint32_t credits) {
  if (dead_) return make_error(Errc::kNotConnected);
  credits = std::max<std::uint32_t>(credits, 1);
  const std::size_t receives = std::size_t{credits} + options_.backward_credits;
  if (receives > endpoint_.limits().receive_queue_depth) {
    return make_error(Errc::kInvalidArgument, "more credits than the receive queue has entries");
  }
  if (!shares_ && credits > window_.requested()) {  // the Receives come first. req: RFC8166-3.3.1-8
    if (!receives_.can_hold(receives)) return make_error(Errc::kResource, "pool too small for the Receives");
    receives_.resize(receives);
    if (auto posted = receives_.fill(); !posted) {
      fail(posted.error());
      return posted;
    }
  }
  window_.request(credits);
  pump();
  return {};
}

void Requester::progress() {
  pump();
}

void Requester::on_disconnect() {
  dead_ = true;
  transmit_.stop();
  assembler_.stop();
}

void Requester::fail(Error error) {
  if (dead_) return;
  on_disconnect();
  events_.emplace_back(MustClose{error});
}

bool Requester::idle() const {
  const auto serving = [](const PeerCall& c) { return c.used; };
  return outstanding_calls() == 0 && std::none_of(peer_calls_.begin(), peer_calls_.end(), serving) &&
         transmit_.backlog() == 0 && transmit_.posted() == 0;
}

}  // namespace iwarp::rpcrdma
