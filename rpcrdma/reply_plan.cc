#include "iwarp/rpcrdma/reply_plan.h"

#include <algorithm>

namespace iwarp::rpcrdma {
namespace {

// Fills the segments of one chunk in order, without gaps, and rewrites their lengths to what went into each.
class ChunkWriter {
 public:
  ChunkWriter(WriteChunk& chunk, RemoteWrites& writes) : chunk_(chunk), writes_(writes) {}

  // Precondition: the room left in the chunk is enough.
  void put(ByteRange from) {
    while (from.length > 0) {
      const Segment& s = chunk_.segments[segment_];
      const std::size_t n = std::min<std::size_t>(from.length, s.length - used_);
      if (n > 0) writes_.push_back({{from.offset, n}, s.handle, s.offset + used_});  // req: RFC8166-3.4.6-3
      from.offset += n;
      from.length -= n;
      used_ += n;
      if (used_ == s.length) next_segment();
    }
  }
  // req: D2005-3.7-2
  // Must be called last: what was not reached was not written. req: RFC8166-3.4.6-5 RFC8166-4.3.3-5
  void finish() {
    while (segment_ < chunk_.segments.size()) next_segment();
  }

 private:
  void next_segment() {
    chunk_.segments[segment_++].length = static_cast<std::uint32_t>(used_);
    used_ = 0;
  }

  WriteChunk& chunk_;
  RemoteWrites& writes_;
  std::size_t segment_ = 0;
  std::size_t used_ = 0;
};

std::size_t total(const ByteRanges& ranges) {
  std::size_t sum = 0;
  for (const ByteRange& r : ranges) sum += r.length;
  return sum;
}

void clear_lengths(WriteChunk& chunk) {
  for (Segment& s : chunk.segments) s.length = 0;
}

// Moves DDP-eligible results into the Write chunks of the header; false if one is too long for its chunk.
bool reduce(const ReplyOffer& offer, ConstBytes reply, ReplyPlan& plan) {
  WriteList& list = plan.header.write_list;
  std::size_t at = 0;  // what is before this was dealt with
  // req: RFC8166-6.1-5 RFC8267-6.4.1-2
  const DdpItems items = list.empty() ? DdpItems{} : offer.binding.items(reply, list.size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    WriteChunk& chunk = list[i];
    ChunkWriter writer(chunk, plan.writes);
    // The n-th result belongs to the n-th chunk. An operation without data leaves its chunk unused (RFC 8267 s6.4.1);
    // RFC 8166 s4.3.2.2 would let the next result slide into it, but an error ends a COMPOUND anyway.
    // req: RFC8267-6.4.1-3 RFC8267-6.4.1-4 RFC8267-6.4.1-5 RFC8166-4.3.2-3 RFC8166-4.3.2.3-3
    // req: RFC8166-3.4.4.4-1 RFC8166-4.3.2.1-2 RFC8267-6.4.1-7
    if (i < items.size() && !chunk.is_empty() && items[i].length > 0) {
      const DdpItem& item = items[i];
      if (item.length > chunk.length()) return false;  // req: RFC8267-3.1-6
      plan.in_line.push_back({at, item.offset - at});
      // Padding is neither written nor sent. req: RFC8166-3.4.6.2-2 RFC8166-3.4.6.2-3 RFC8166-3.4.4.4-2
      // req: D2005-3.4-9 D2005-3.7-1
      writer.put({item.offset, item.length});  // req: RFC8166-3.4.4.1-1 RFC8166-3.4.4.1-2
      plan.reduced_bytes += item.length;
      at = item.offset + static_cast<std::size_t>(item.padded_length());  // req: RFC8166-3.4.1-1 RFC8166-4.3.2-4
    }
    writer.finish();  // req: RFC8166-4.3.2.2-3
  }
  if (at < reply.size()) plan.in_line.push_back({at, reply.size() - at});
  return true;
}

std::optional<Stag> sole_handle(const Header& h) {
  std::optional<Stag> out;
  bool several = false;
  const auto see = [&](const Segment& s) {
    several |= out && *out != s.handle;
    out = s.handle;
  };
  for (const ReadSegment& s : h.read_list) see(s.target);
  for (const WriteChunk& c : h.write_list) {
    for (const Segment& s : c.segments) see(s);
  }
  if (h.reply_chunk) {
    for (const Segment& s : h.reply_chunk->segments) see(s);
  }
  return several ? std::nullopt : out;
}

ReplyPlan error_plan() {
  ReplyPlan plan;
  plan.error = true;
  return plan;
}

}  // namespace

ReplyOffer make_offer(const Header& header, ResultBinding binding) {
  return {header.write_list, header.reply_chunk, sole_handle(header), std::move(binding)};
}

ReplyPlan plan_reply(std::uint32_t xid, const ReplyOffer& offer, ConstBytes reply, std::uint32_t credits,
                     std::size_t inline_bytes) {
  ReplyPlan plan;
  Header& h = plan.header;
  h.xid = xid;  // req: RFC8167-2.4-3
  // req: D2005-4.1-4 D2005-3.3-4
  h.credits = credits;                // req: RFC8166-3.3.1-1 RFC8166-4.2.3-1
  h.write_list = offer.write_list;    // req: RFC8166-3.4.6-4 RFC8166-4.3.2.3-4 RFC8166-3.4.3-2
  h.reply_chunk = offer.reply_chunk;  // req: RFC8166-4.3.3-4
  if (!reduce(offer, reply, plan)) return error_plan();

  // First reduce, then compare with the threshold, echoed lists included. req: RFC8166-3.5.3-6
  const std::size_t header_bytes = h.encoded_size();
  const std::size_t payload_bytes = total(plan.in_line);
  // req: RFC8166-2.3.2-2 RFC8166-3.3-1 RFC8166-3.5.1-1 RFC8166-3.5.2-2
  // req: D2005-3.8-1
  if (header_bytes + payload_bytes <= inline_bytes) {  // req: RFC8166-4.2.4-13 RFC8166-4.3.3-3
    if (h.reply_chunk) clear_lengths(*h.reply_chunk);
    return plan;
  }
  // req: RFC8166-3.5.3-7 RFC8166-4.5.3-3 RFC8267-3.1-1
  if (!h.reply_chunk || header_bytes > inline_bytes || payload_bytes > h.reply_chunk->length()) return error_plan();
  h.proc = Proc::kNomsg;  // req: RFC8166-3.5.3-10
  ChunkWriter writer(*h.reply_chunk, plan.writes);
  // req: D2005-5.2-2
  for (const ByteRange& r : plan.in_line) writer.put(r);  // req: RFC8166-3.5.3-9 RFC8166-6.1-6
  writer.finish();
  plan.in_line.clear();
  plan.reply_chunk_bytes = payload_bytes;
  return plan;
}

}  // namespace iwarp::rpcrdma
