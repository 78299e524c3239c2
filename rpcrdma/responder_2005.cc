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
  const auto unpadded = unpad_call(message.bytes().subspan(header_bytes), parsed.header, header_bytes);
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

// A Reply that fits neither in line nor into what the Call offered: the client fetches it. False: it cannot be offered.
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
  h.read_list.push_back({});
  if (h.encoded_size() > reply_inline_bytes()) return false;
  const auto exposed = endpoint_.register_memory(message.bytes(), RemoteAccess::kRead, false);  // req: D2005-3.4-3
  if (!exposed) return false;
  // req: D2005-5.2-3 D2005-5.1-1 D2005-3.4-6
  h.read_list[0] = {0, {exposed->handle, static_cast<std::uint32_t>(message.size()), exposed->offset}};
  ++stats_.replies_in_read_chunk;
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
