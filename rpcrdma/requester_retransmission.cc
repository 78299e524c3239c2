// Requester: Calls that go again, in another version or on another connection.
#include <algorithm>
#include <utility>

#include "iwarp/base/wire.h"
#include "iwarp/rpcrdma/requester.h"
#include "iwarp/rpcrdma/rpc_message.h"

namespace iwarp::rpcrdma {

// In the version that the server has named, before any other.
void Requester::send_again(Call& call) {
  if (!fence(call)) return;
  if (call.cancelled) return finish(call);
  queued_.push_front({call.xid, std::move(call.message), call.since, call.tag, call.times_sent, std::move(call.copy),
                      false, call.max_reply, call.asked_xid, call.tell_left});
  finish(call);
}

// Short Reply chunk retry (RFC 8267 s3.1): as a new RPC, so that the server does not answer from what it remembers.
void Requester::send_with_larger_chunk(Call& call) {
  if (!fence(call)) return;
  std::uint32_t xid = call.xid ^ 0x80000000u;  // clients count theirs up: none comes near. req: RFC8267-3.1-3
  while (outstanding_since(xid)) --xid;
  Queued larger{xid,   std::move(call.message), call.since,     call.tag,      call.times_sent, std::move(call.copy),
                false, call.max_reply,          call.asked_xid, call.tell_left};
  store_be<std::uint32_t>(larger.message ? larger.message.bytes() : MutBytes(larger.copy), xid);
  queued_.push_front(std::move(larger));
  finish(call);
}

std::optional<bool> Requester::have_message(Queued& queued) {
  if (queued.message) return true;
  // What fits into a Receive is not taken from the memory for Calls, which those behind it in the queue may hold
  // entirely.
  const std::size_t size = queued.copy.size();
  const bool small = size <= std::max(options_.inline_bytes, kDefaultInlineBytes2);
  const auto purpose = small ? BufferPool::Purpose::kControl : BufferPool::Purpose::kCall;
  auto room = pool_.acquire(size, purpose);
  if (!room) return pool_.can_hold(size, purpose) ? std::optional(false) : std::nullopt;
  std::copy(queued.copy.begin(), queued.copy.end(), room->bytes().begin());
  queued.message = std::move(*room);
  return true;
}

std::optional<bool> Requester::take_back(Call& call, Queued& queued, bool in_line) {
  const bool may_go_without = !call.write_chunks.empty() && !queued.no_write_chunks;
  const auto exposes = [](const auto& chunk) { return chunk.memory.has_value(); };
  const bool others_expose = std::any_of(calls_.begin(), calls_.end(), [&](const Call& c) {
    if (!c.used || &c == &call) return false;
    return c.call_memory || (c.reply_chunk && exposes(*c.reply_chunk)) ||
           std::any_of(c.write_chunks.begin(), c.write_chunks.end(), exposes);
  });
  // Of Replies, too, that their owners have still.
  const bool others_use =
      others_expose || pool_.in_use_bytes(BufferPool::Purpose::kReply) > call.reply.storage().size();
  const bool trims = !may_go_without && !queued.trimmed && pool_.idle_bytes() > 0;
  if (!(may_go_without || trims || others_use) || !fence(call)) return std::nullopt;
  if (!in_line) queued.message = std::move(call.message);
  call = Call{};
  window_.on_call_done();
  if (trims) pool_.trim();
  queued.trimmed |= trims;
  queued.no_write_chunks |= may_go_without;
  if (may_go_without || trims) return true;
  queued.trimmed = queued.no_write_chunks = false;
  held_at_ = HeldAt{calls_ended_, pool_.in_use_bytes(BufferPool::Purpose::kReply)};
  return false;
}

std::vector<OutstandingCall> Requester::take_outstanding() {
  std::vector<const Call*> sent;
  for (const Call& c : calls_) {
    if (c.used && !c.cancelled && !c.configuration && (c.message || !c.copy.empty())) sent.push_back(&c);
  }
  std::sort(sent.begin(), sent.end(), [](const Call* a, const Call* b) { return a->order < b->order; });
  std::vector<OutstandingCall> out;
  const auto add = [&out](const auto& from, std::uint32_t times_sent) {
    out.push_back({from.asked_xid, from.tag, from.since, times_sent, from.copy, from.max_reply});
    if (from.message) out.back().message.assign(from.message.bytes().begin(), from.message.bytes().end());
    store_be<std::uint32_t>(out.back().message, from.asked_xid);
  };
  // req: D2005-8-1
  for (const Call* c : sent) add(*c, c->times_sent);  // req: RFC8167-5.4-1 RFC8166-4.5.5-1
  for (const Queued& q : queued_) add(q, q.times_sent);
  for (Call& c : calls_) c.cancelled = true;  // what they hold stays until the connection is gone
  queued_.clear();
  return out;
}

Result<void> Requester::call_again(OutstandingCall&& call) {
  if (dead_) return make_error(Errc::kNotConnected);
  if (rpc_xid(call.message) != call.xid || rpc_direction(call.message) != RpcDirection::kCall) {
    return make_error(Errc::kInvalidArgument, "not the RPC Call of that xid");
  }
  if (outstanding_since(call.xid)) return make_error(Errc::kInvalidArgument, "xid is outstanding");
  queued_.push_back(
      {call.xid, {}, call.since, call.tag, call.times_sent, std::move(call.message), false, call.max_reply, call.xid});
  pump();
  return {};
}

}  // namespace iwarp::rpcrdma
