// Requester: what the draft of 2005 has beyond version 1.
#include <algorithm>
#include <utility>

#include "iwarp/rpcrdma/padding.h"
#include "iwarp/rpcrdma/requester.h"
#include "iwarp/rpcrdma/rpc_message.h"

namespace iwarp::rpcrdma {
namespace {

// Whether each item that came as a chunk is as long as its count word says. req: D2005-3.4-10
bool counts_agree(const ResultBinding& results, ConstBytes reply, const CallPlan& plan) {
  ResultWalker walker(results, reply);
  while (const auto item = walker.next()) {
    for (const PlacedChunk& chunk : plan.chunks) {
      const bool same = chunk.length == item->length || chunk.length == item->padded_length();
      if (chunk.position == item->position && !same) return false;
    }
  }
  return true;
}

}  // namespace

std::uint32_t Requester::call_inline_bytes() const {
  // req: D2005-6.2-3 D2005-6.2-4
  return config_.state() == ConfigClient::State::kConfigured ? config_.terms().call_bytes : limits_.call_inline_bytes;
}

std::uint32_t Requester::reply_inline_bytes() const {
  return config_.state() == ConfigClient::State::kConfigured ? config_.terms().reply_bytes : limits_.reply_inline_bytes;
}

bool Requester::may_offer_read_chunks() const {
  if (!options_.draft_2005.enabled) return true;
  if (config_.state() == ConfigClient::State::kConfigured) return config_.terms().read_chunks;
  return options_.draft_2005.incoming_reads > 0;
}

bool Requester::admits_call() {
  if (!options_.draft_2005.enabled) return true;
  if (configures() && !config_.ready()) {  // req: D2005-6.1-1 D2005-6.1-2
    if (config_.state() == ConfigClient::State::kUnasked) ask_configuration();
    return false;
  }
  return dones_.admits_call(window_.available(), window_.in_flight());
}

void Requester::ask_configuration() {
  auto room = pool_.acquire(ConfigMessage::kCapacity, BufferPool::Purpose::kControl);
  if (!room) return;  // with progress()
  Call call;
  call.used = call.configuration = true;
  call.xid = call.asked_xid = ~queued_.front().xid;  // far from those that count up
  call.since = queued_.front().since;
  const ConfigMessage message = config_.call(call.xid);
  std::copy(message.bytes().begin(), message.bytes().end(), room->bytes().begin());
  OutgoingMessage out;
  out.header.xid = call.xid;
  out.header.credits = window_.requested();
  out.payload = std::move(*room);
  out.payload.set_view(0, message.bytes().size());
  out.in_line.push_back({0, out.payload.size()});
  const auto unused = std::find_if(calls_.begin(), calls_.end(), [](const Call& c) { return !c.used; });
  if (unused == calls_.end()) {
    calls_.push_back(std::move(call));
  } else {
    *unused = std::move(call);
  }
  window_.on_call_sent();
  transmit_.send(std::move(out));
}

void Requester::on_configured(Call& call, ConstBytes reply) {
  const Result<void> done = config_.on_reply(reply);
  finish(call);
  if (!done) return fail(done.error());
  if (config_.state() == ConfigClient::State::kConfigured) assembler_.limit_reads(config_.terms().reads);
}

// A Call in line becomes RDMA_MSGP, where the server has asked for aligned data and there are such.
void Requester::pad_call(OutgoingMessage& out) {
  if (!options_.draft_2005.enabled || config_.terms().align == 0) return;
  const ConstBytes message = out.payload.bytes();
  const DeclaredBinding* declared = options_.draft_2005.pad_declared ? options_.declared.get() : nullptr;
  const auto items = items_to_pad(ArgumentWalker(message, declared));
  if (!items) return;
  Header h = out.header;
  h.proc = Proc::kMsgp;
  h.draft_2005 = true;
  // req: D2005-6.2-9
  const auto layout = plan_padding(message.size(), {items->data(), items->size()}, h.encoded_size(),
                                   config_.terms().align, options_.draft_2005.threshold, call_inline_bytes());
  if (!layout) return;
  auto room = pool_.acquire(layout->padded_bytes, BufferPool::Purpose::kControl);
  if (!room || !write_padded(message, *layout, room->bytes())) return;
  h.padding = layout->padding;  // req: D2005-3.5-3
  out.header = std::move(h);
  out.payload = std::move(*room);
  ++stats_.calls_padded;
}

// An RDMA_MSGP becomes the RDMA_MSG that it would have been. req: D2005-4.1-8
bool Requester::take_padding_out(const Buffer& message, ParsedHeader& parsed) {
  const Call* call = find(parsed.header.xid);
  const std::size_t header_bytes = parsed.payload_offset;
  const auto unpadded = unpad_reply(message.bytes().subspan(header_bytes), parsed.header, header_bytes,
                                    call != nullptr ? call->results : ResultBinding{});
  if (!unpadded) return false;
  parsed.payload_offset += unpadded->offset;
  parsed.header.proc = Proc::kMsg;
  ++stats_.replies_padded;
  return true;
}

void Requester::fetch_reply(Call& call, const ParsedHeader& parsed, Buffer message) {
  const Header& h = parsed.header;
  call.reply.reset();  // nothing came there
  auto planned =
      plan_call(h, message.size() - parsed.payload_offset, std::min(options_.max_reply_bytes, call.max_reply));
  auto* plan = std::get_if<CallPlan>(&planned);
  const bool written =
      std::any_of(h.write_list.begin(), h.write_list.end(), [](const WriteChunk& c) { return c.length() > 0; });
  if (plan == nullptr || written || assembler_.max_reads() == 0 ||
      !pool_.can_hold(plan->total_bytes, BufferPool::Purpose::kReply, kHeadroomBytes)) {
    send_done(h.xid);  // it need not keep what nobody will read
    return fail_call(call, Failure::kBadReply, {});
  }
  call.fetching = true;
  // req: D2005-3.6-1 D2005-3.6-2 D2005-5.1-2
  const auto index = static_cast<std::uint32_t>(&call - calls_.data());
  assembler_.add(kFetchedReply | index, std::move(*plan), std::move(message), parsed.payload_offset);
}

void Requester::on_reply_fetched(CallAssembler::Done done) {
  Call& call = calls_[done.owner & ~kFetchedReply];
  send_done(call.xid);  // req: D2005-2-4 D2005-3.6-4 D2005-3.8-4 D2005-5.1-3
  call.fetching = false;
  if (call.cancelled) return finish(call);
  const ConstBytes bytes = done.message.bytes();
  if (rpc_xid(bytes) != call.xid || rpc_direction(bytes) != RpcDirection::kReply ||
      !counts_agree(call.results, bytes, done.plan)) {
    return fail_call(call, Failure::kBadReply, {});
  }
  ++stats_.replies_in_read_chunk;
  ReplyReceived out;
  out.message = std::move(done.message);
  complete(call, std::move(out));
}

void Requester::send_done(std::uint32_t xid) {
  OutgoingMessage out;
  out.header.xid = xid;
  out.header.credits = window_.requested();
  out.header.proc = Proc::kDone;
  out.header.draft_2005 = true;
  transmit_.send(std::move(out));
  dones_.on_done_sent();  // req: D2005-3.8-8
  ++stats_.dones_sent;
}

}  // namespace iwarp::rpcrdma
