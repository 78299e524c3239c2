// Responder: Calls in the backward direction (RFC 8167).
#include <algorithm>
#include <utility>

#include "iwarp/rpcrdma/responder.h"
#include "iwarp/rpcrdma/rpc_message.h"

namespace iwarp::rpcrdma {
namespace {
constexpr std::size_t kWaitingBackwardCalls = 16;
}

std::uint32_t Responder::max_backward_bytes() const {
  // Thresholds swap: a backward Call travels like a forward Reply. req: RFC8167-4.2-1
  return inline_bytes(client_version_, std::min(limits_.reply_inline_bytes, limits_.call_inline_bytes)) -
         std::uint32_t{kMinHeaderBytes};
}

Result<void> Responder::send_backward_call(Buffer&& message, TimePoint now) {
  return queue_backward(message, now, now, 0);
}

Result<void> Responder::queue_backward(Buffer& message, TimePoint since, TimePoint now, std::uint32_t times_sent) {
  if (dead_) return make_error(Errc::kNotConnected);
  const auto xid = rpc_xid(message.bytes());
  if (!xid || rpc_direction(message.bytes()) != RpcDirection::kCall) {  // req: RFC8167-5.1-5 RFC8167-5.1-4
    return make_error(Errc::kInvalidArgument, "not an RPC Call");
  }
  if (options_.backward_credits == 0) return make_error(Errc::kInvalidArgument, "backward direction is switched off");
  // req: RFC8167-5.3-2 RFC8167-5.3-3 RFC8267-6.5.2-5 BIDIR-2.4-1
  if (message.size() > max_backward_bytes() && !sends_chunks(client_version_)) {
    return make_error(Errc::kInvalidArgument, "backward Call exceeds the inline threshold");
  }
  const auto same_xid = [&](const BackwardCall& b) { return b.xid == *xid; };
  if (std::any_of(backward_calls_.begin(), backward_calls_.end(), same_xid)) {  // req: RFC8167-2.4-2
    return make_error(Errc::kInvalidArgument, "xid of backward Call is outstanding");
  }
  if (backward_calls_.size() >= kWaitingBackwardCalls + options_.backward_credits) return make_error(Errc::kQueueFull);
  // req: RFC8167-2.2-1 RFC8267-6.5.2-1
  BackwardCall& call = backward_calls_.emplace_back();
  call.xid = *xid;
  call.message = std::move(message);
  call.expires = now + options_.backward_timeout;
  call.version = client_version_;
  call.since = since;
  call.times_sent = times_sent;
  pump();
  return {};
}

std::vector<OutstandingCall> Responder::take_outstanding_backward() {
  std::vector<OutstandingCall> out;
  if (!options_.backward_retransmission) return out;
  for (BackwardCall& b : backward_calls_) {  // req: RFC8167-5.4-1 RFC8167-5.4-2 BIDIR-2.3-1
    if (b.cancelled) continue;
    if (b.message) b.copy.assign(b.message.bytes().begin(), b.message.bytes().end());
    out.push_back({b.xid, 0, b.since, b.times_sent, std::move(b.copy), SIZE_MAX});
    b.cancelled = true;
  }
  return out;
}

Result<void> Responder::send_backward_again(OutstandingCall&& call, TimePoint now) {
  if (rpc_xid(call.message) != call.xid) return make_error(Errc::kInvalidArgument, "not the RPC Call of that xid");
  auto message = pool_.acquire(call.message.size(), BufferPool::Purpose::kBackward);
  if (!message) return make_error(Errc::kQueueFull);
  std::copy(call.message.begin(), call.message.end(), message->bytes().begin());
  // Its time begins anew: what it waited for the client is with its owner, who may have given it up. req: RFC8167-5.4-3
  return queue_backward(*message, call.since, now, call.times_sent);
}

void Responder::pump_backward() {
  for (std::size_t i = 0; i < backward_calls_.size(); ++i) {
    BackwardCall& b = backward_calls_[i];
    if (b.sent) continue;
    // The Reply needs a Receive. req: RFC8167-4.1-1 RFC8167-4.3.2-2 RFC8167-4-1 BIDIR-2.1.2-2
    if (backward_window_.available() == 0 || !has_receive()) return;
    OutgoingMessage out;
    // req: RFC8167-1-1 RFC8167-5-1 RFC8167-5.1-1
    out.header.xid = b.xid;
    out.header.version = b.version;                     // req: RFC8167-5.1-2 V2-4.2-17
    out.header.credits = backward_window_.requested();  // req: RFC8167-5.1-3 BIDIR-2.1.2-1
    const auto made = make_backward(b, out);
    if (!made) {
      if (!fence(b)) return;
      events_.emplace_back(BackwardFailed{b.xid, false});
      backward_calls_.erase(backward_calls_.begin() + static_cast<std::ptrdiff_t>(i--));
      continue;
    }
    if (!*made) return;
    transmit_.send(std::move(out));
    backward_window_.on_call_sent();
    b.sent = true;
    ++b.times_sent;
    ++stats_.backward_calls;
  }
}

std::optional<bool> Responder::make_backward(BackwardCall& b, OutgoingMessage& out) {
  const std::size_t most = max_backward_bytes();
  std::size_t header = 0;                                                     // beyond the least there is
  if (sends_chunks(b.version) && options_.max_backward_reply_bytes > most) {  // req: RFC8167-5.3-1
    auto room = pool_.acquire(options_.max_backward_reply_bytes, BufferPool::Purpose::kBackward, kHeadroomBytes);
    if (!room) return false;
    b.reply = std::move(*room);
    auto exposed = endpoint_.register_memory(b.reply.bytes(), RemoteAccess::kWrite, false);
    if (!exposed) return std::nullopt;
    b.reply_memory = *exposed;
    const auto length = static_cast<std::uint32_t>(b.reply.size());
    out.header.reply_chunk = WriteChunk{{{exposed->handle, length, exposed->offset}}};
    header += 4 + Segment::kSize;
  }
  if (header + b.message.size() <= most || !sends_chunks(b.version)) {
    // In line, as everything without `backward_chunks`. req: BIDIR-1.3.3-1 BIDIR-2.5-1 BIDIR-2.5-2 BIDIR-2.5-3
    out.in_line.push_back({0, b.message.size()});
    stats_.send_payload_bytes += b.message.size();
    if (options_.backward_retransmission) b.copy.assign(b.message.bytes().begin(), b.message.bytes().end());
    out.payload = std::move(b.message);
    return true;
  }
  auto exposed = endpoint_.register_memory(b.message.bytes(), RemoteAccess::kRead, false);
  if (!exposed) return std::nullopt;
  b.call_memory = *exposed;
  out.header.proc = Proc::kNomsg;
  const auto length = static_cast<std::uint32_t>(b.message.size());
  out.header.read_list.push_back({0, {exposed->handle, length, exposed->offset}});
  return true;
}

bool Responder::fence(BackwardCall& call) {
  for (auto* exposed : {&call.call_memory, &call.reply_memory}) {
    if (!*exposed) continue;
    if (auto done = endpoint_.invalidate((*exposed)->handle); !done) {
      fail(done.error());
      return false;
    }
    exposed->reset();
  }
  return true;
}

bool Responder::cancel_backward_call(std::uint32_t xid) {
  const auto it = std::find_if(backward_calls_.begin(), backward_calls_.end(),
                               [&](const BackwardCall& b) { return b.xid == xid && !b.cancelled; });
  if (it == backward_calls_.end()) return false;
  if (it->sent) {
    it->cancelled = true;  // its credit comes back with the Reply
  } else {
    backward_calls_.erase(it);
  }
  return true;
}

std::optional<TimePoint> Responder::deadline() const {
  // All have the same time to live, and they are in the order in which they came.
  const auto live =
      std::find_if(backward_calls_.begin(), backward_calls_.end(), [](const BackwardCall& b) { return !b.cancelled; });
  if (dead_) return std::nullopt;
  const auto done = kept_.deadline();
  if (live == backward_calls_.end()) return done;
  return done ? std::min(*done, live->expires) : live->expires;
}

void Responder::on_deadline(TimePoint now) {
  on_done_deadline(now);
  while (!dead_) {
    const auto live = std::find_if(backward_calls_.begin(), backward_calls_.end(),
                                   [](const BackwardCall& b) { return !b.cancelled; });
    if (live == backward_calls_.end() || live->expires > now) return;
    // The first one alive was not sent: all before it are unanswered. req: RFC8166-3.3.1-2
    const bool starved = !live->sent && live != backward_calls_.begin();
    ++stats_.backward_timeouts;
    events_.emplace_back(BackwardFailed{live->xid, true});
    (void)cancel_backward_call(live->xid);
    if (starved) return fail(make_error(Errc::kTimeout, "the client answers no backward Calls"));
  }
}

Responder::BackwardCall* Responder::find_backward(std::uint32_t xid) {
  const auto it = std::find_if(backward_calls_.begin(), backward_calls_.end(),
                               [&](const BackwardCall& b) { return b.xid == xid && b.sent; });
  return it == backward_calls_.end() ? nullptr : &*it;
}

void Responder::end_backward_call(const BackwardCall& call) {
  const auto it =
      std::find_if(backward_calls_.begin(), backward_calls_.end(), [&](const BackwardCall& b) { return &b == &call; });
  backward_calls_.erase(it);
  backward_window_.on_call_done();
}

bool Responder::chunks_acceptable(const BackwardCall& call, const Header& h) {
  if (!call.reply_memory) return !h.has_chunks();
  if (check_reply(h) || !h.write_list.empty()) return false;
  if (h.proc == Proc::kMsg && !h.reply_chunk) return true;
  const auto& segments = h.reply_chunk->segments;
  if (segments.size() != 1) return false;
  const Segment& s = segments[0];
  const bool ours = s.handle == call.reply_memory->handle && s.offset == call.reply_memory->offset;
  return ours && (h.proc == Proc::kMsg ? s.length == 0 : s.length <= call.reply.size());
}

void Responder::on_backward_reply(Buffer message, const ParsedHeader& parsed) {
  const Header& h = parsed.header;
  const ConstBytes payload = ConstBytes(message.bytes()).subspan(parsed.payload_offset);
  const bool in_line = h.proc == Proc::kMsg;
  // Errors in Replies are never answered. req: RFC8166-4.5-4 RFC8167-2.4-4
  BackwardCall* call = find_backward(h.xid);
  const bool usable = call != nullptr && call->version == h.version && chunks_acceptable(*call, h) &&
                      (!in_line || xid_matches(h, payload));
  if (!usable) {
    ++stats_.dropped_messages;
    return;
  }
  backward_window_.on_grant(h.credits);  // req: RFC8167-4.1-5
  if (!fence(*call)) return;             // before anything of the Reply is looked at
  const bool wanted = !call->cancelled;
  if (in_line) {
    message.set_view(parsed.payload_offset, payload.size());
  } else {
    message = std::move(call->reply);
    message.set_view(message.headroom(), h.reply_chunk->segments[0].length);
  }
  end_backward_call(*call);
  if (!wanted) {
    ++stats_.late_backward_replies;
    return;
  }
  if (rpc_xid(message.bytes()) != h.xid || rpc_direction(message.bytes()) != RpcDirection::kReply) {
    ++stats_.dropped_messages;
    events_.emplace_back(BackwardFailed{h.xid, false});
    return;
  }
  ++stats_.backward_replies;
  events_.emplace_back(BackwardReply{h.xid, std::move(message)});
}

void Responder::on_error_message(const Header& header) {
  // Either the end of a backward Call, or nothing to us: a Responder never answers it. req: RFC8166-4.2.4-12
  BackwardCall* call = find_backward(header.xid);
  if (call == nullptr && options_known_.on_error(header)) return;
  if (call == nullptr) {
    ++stats_.dropped_messages;
    return;
  }
  if (!fence(*call)) return;
  const bool wanted = !call->cancelled;
  end_backward_call(*call);
  if (wanted) {
    events_.emplace_back(BackwardFailed{header.xid, false});  // req: RFC8166-4.5-9
  } else {
    ++stats_.late_backward_replies;
  }
}

}  // namespace iwarp::rpcrdma
