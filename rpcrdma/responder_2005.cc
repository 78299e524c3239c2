// Responder: what the draft of 2005 has beyond version 1.
#include <algorithm>
#include <utility>

#include "iwarp/rpcrdma/padding.h"
#include "iwarp/rpcrdma/responder.h"

namespace iwarp::rpcrdma {
namespace {

constexpr std::uint64_t kThisConnection = 0;  // the book is of one

void mark_unused(WriteChunk& chunk) {
  for (Segment& s : chunk.segments) s.length = 0;
}

}  // namespace

std::uint32_t Responder::reply_inline_bytes() const {
  return configures() && config_.configured() ? config_.terms().reply_bytes : limits_.reply_inline_bytes;
}

// An RDMA_MSGP becomes the RDMA_MSG that it would have been.
bool Responder::take_padding_out(const Buffer& message, ParsedHeader& parsed) {
  const std::size_t header_bytes = parsed.payload_offset;
  const auto unpadded =
      unpad_call(message.bytes().subspan(header_bytes), parsed.header, header_bytes, options_.declared.get());
  if (!unpadded) return false;
  parsed.payload_offset += unpadded->offset;
  parsed.header.proc = Proc::kMsg;  // req: D2005-4.1-8
  ++stats_.calls_padded;
  return true;
}

// Whether the Call was for CONFIG_RDMA, which is this end's own program.
bool Responder::answer_configuration(std::uint32_t slot, ConstBytes call) {
  const auto answer = config_.on_call(call);
  if (!answer) return false;
  ++stats_.configurations;
  const ConstBytes octets = answer->bytes();
  auto message = pool_.acquire(octets.size(), BufferPool::Purpose::kReply);
  if (!message) {
    const std::uint32_t xid = calls_[slot].xid, version = calls_[slot].version;
    free_call(slot);
    answer_err_chunk(xid, version);
    return true;
  }
  std::copy(octets.begin(), octets.end(), message->bytes().begin());
  if (config_.configured()) assembler_.limit_reads(config_.terms().reads);  // req: D2005-6.2-7
  send_reply(slot, std::move(*message), TimePoint::max());
  return true;
}

// A Reply in line becomes RDMA_MSGP, where the client is known to take it and there are data to align.
void Responder::pad_reply(OutgoingMessage& out, const ResultBinding& results) {
  const Draft2005Options& options = options_.draft_2005;
  if (!options.enabled || options.reply_align == 0 || (options.configure && !config_.configured())) return;
  if (results.declared_bytes() && !options.pad_declared) return;
  const ConstBytes message = out.payload.bytes();
  const auto items = items_to_pad(ResultWalker(results, message));
  if (!items) return;
  Header h = out.header;
  h.proc = Proc::kMsgp;
  h.draft_2005 = true;
  const auto layout = plan_padding(message.size(), {items->data(), items->size()}, h.encoded_size(),
                                   options.reply_align, options.threshold, reply_inline_bytes());
  if (!layout) return;
  auto room = pool_.acquire(layout->padded_bytes, BufferPool::Purpose::kReply);
  if (!room || !write_padded(message, *layout, room->bytes())) return;
  h.padding = layout->padding;  // req: D2005-3.5-3
  out.header = std::move(h);
  out.payload = std::move(*room);
  out.in_line.clear();
  out.in_line.push_back({0, out.payload.size()});
  ++stats_.replies_padded;
}

// The data are left where they are, and the rest, which stays in line, is copied: the message is the client's to read
// for longer than the Send takes.
bool Responder::offer_data(const ReplyOffer& offer, ConstBytes message, OutgoingMessage& out, ByteRange& exposed) {
  const Draft2005Options& options = options_.draft_2005;
  if (!options.data_chunks) return false;
  Header h = out.header;
  ByteRanges rest;
  ByteRange range;
  std::size_t at = 0, rest_bytes = 0;  // `at`: what is in front of it was dealt with
  const auto keep_up_to = [&](std::size_t end) {
    rest.push_back({at, end - at});
    rest_bytes += end - at;
  };
  // The count stays in line, the padding goes nowhere. req: D2005-3.4-9 D2005-3.4-10 D2005-3.4-12
  for (const DdpItem& item : offer.binding.items(message)) {
    if (item.length == 0 || item.length < options.threshold) continue;
    if (h.read_list.empty()) range.offset = item.offset;
    keep_up_to(item.offset);
    h.read_list.push_back(
        {static_cast<std::uint32_t>(item.position), {Stag{}, item.length, item.offset - range.offset}});
    range.length = item.offset + item.length - range.offset;
    at = item.offset + static_cast<std::size_t>(item.padded_length());
  }
  if (h.read_list.empty()) return false;
  keep_up_to(message.size());
  if (h.encoded_size() + rest_bytes > reply_inline_bytes()) return false;
  auto room = pool_.acquire(rest_bytes, BufferPool::Purpose::kReply);
  if (!room) return false;
  auto to = room->bytes().begin();
  for (const ByteRange& r : rest) {
    const ConstBytes part = message.subspan(r.offset, r.length);
    to = std::copy(part.begin(), part.end(), to);
  }
  h.proc = Proc::kMsg;
  out.header = std::move(h);
  out.payload = std::move(*room);
  out.in_line.push_back({0, rest_bytes});
  exposed = range;
  return true;
}

// A Reply that fits neither in line nor into what the Call offered: the client fetches it, or its data. False: it
// cannot be offered.
bool Responder::offer_reply(std::uint32_t xid, const ReplyOffer& offer, Buffer& message, TimePoint now) {
  const Draft2005Options& options = options_.draft_2005;
  const bool may = config_.configured() ? config_.terms().read_chunks : options.incoming_reads > 0;
  if (!options.enabled || !may || !kept_.admits(kThisConnection, message.size())) return false;
  OutgoingMessage out;
  Header& h = out.header;
  h.xid = xid;
  h.credits = grant();
  h.proc = Proc::kNomsg;
  // req: D2005-3.8-10
  h.write_list = offer.write_list;
  for (WriteChunk& c : h.write_list) mark_unused(c);
  h.reply_chunk = offer.reply_chunk;
  if (h.reply_chunk) mark_unused(*h.reply_chunk);
  ByteRange range{0, message.size()};
  if (!offer_data(offer, message.bytes(), out, range)) {
    // req: D2005-5.2-3 D2005-5.1-1
    h.read_list.push_back({0, {Stag{}, static_cast<std::uint32_t>(message.size()), 0}});
    if (h.encoded_size() > reply_inline_bytes()) return false;
  }
  // req: D2005-3.4-3
  const auto exposed =
      endpoint_.register_memory(message.bytes().subspan(range.offset, range.length), RemoteAccess::kRead, false);
  if (!exposed) return false;
  // req: D2005-3.4-2 D2005-3.4-6
  for (ReadSegment& s : h.read_list) {
    s.target.handle = exposed->handle;
    s.target.offset += exposed->offset;
  }
  ++stats_.replies_in_read_chunk;
  if (h.proc == Proc::kMsg) ++stats_.replies_data_in_chunk;
  stats_.send_payload_bytes += out.payload ? out.payload.size() : 0;
  const std::size_t bytes = message.size();
  kept_.add(kThisConnection, xid, bytes, {std::move(message), exposed->handle}, now);
  transmit_.send(std::move(out));
  return true;
}

void Responder::on_done(const Header& header) {
  // req: D2005-3.8-5 D2005-4.1-9
  if (auto kept = kept_.on_done(kThisConnection, header.xid)) {
    ++stats_.dones;
    return release(std::move(*kept));
  }
  ++stats_.dropped_messages;
}

void Responder::on_done_deadline(TimePoint now) {
  for (auto& late : kept_.on_deadline(now)) {
    ++stats_.replies_not_done;
    release(std::move(late.memory));
    if (kept_.options().late == DoneOptions::Late::kClose) fail(make_error(Errc::kTimeout, "no RDMA_DONE in time"));
  }
}

// Nobody reads it any more: the fence comes first.
void Responder::release(Kept kept) {
  if (auto done = endpoint_.invalidate(kept.handle); !done) {
    still_exposed_.push_back(std::move(kept.message));
    fail(done.error());
  }
}

void Responder::release_all() {
  for (Kept& kept : kept_.drop(kThisConnection)) {
    if (!endpoint_.invalidate(kept.handle)) still_exposed_.push_back(std::move(kept.message));
  }
}

}  // namespace iwarp::rpcrdma
