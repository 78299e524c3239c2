#include <algorithm>

#include "iwarp/rpcrdma/call_assembly.h"
#include "iwarp/rpcrdma/nfs_binding.h"
#include "iwarp/rpcrdma/xdr_padding.h"

namespace iwarp::rpcrdma {
namespace {

// Yields the payload stream piece by piece: from the Send itself, or from the segments of the Position-Zero Read chunk.
class PayloadSource {
 public:
  PayloadSource(const Header& header, std::uint64_t inline_bytes) : header_(header) {
    left_ = from_chunk() ? read_chunk_length(header.read_list, 0) : inline_bytes;  // req: RFC8166-4.2.4-2
  }

  [[nodiscard]] std::uint64_t left() const { return left_; }
  // Appends to the plan what brings the next n octets to `into`. Precondition: n <= left().
  void take(std::uint64_t n, std::size_t into, CallPlan& plan) {
    if (n == 0) return;
    left_ -= n;
    if (!from_chunk()) {
      plan.copies.push_back({used_, into, static_cast<std::size_t>(n)});
      used_ += static_cast<std::size_t>(n);
      return;
    }
    while (n > 0) {
      const ReadSegment& s = header_.read_list[segment_];
      const std::uint64_t rest = s.position == 0 ? s.target.length - in_segment_ : 0;
      if (rest == 0) {
        ++segment_;
        in_segment_ = 0;
        continue;
      }
      const auto length = static_cast<std::uint32_t>(std::min(n, rest));
      plan.reads.push_back({into, length, s.target.handle, s.target.offset + in_segment_});
      in_segment_ += length;
      into += length;
      n -= length;
    }
  }

 private:
  [[nodiscard]] bool from_chunk() const { return header_.proc == Proc::kNomsg; }

  const Header& header_;
  std::uint64_t left_ = 0;
  std::size_t used_ = 0;          // of the Send
  std::size_t segment_ = 0;       // of the Read list
  std::uint64_t in_segment_ = 0;  // octets of that segment taken
};

// The chunks of non-zero Position with their lengths, in ascending order.
SmallVector<PlacedChunk, 2> collect_chunks(const ReadList& list) {
  SmallVector<PlacedChunk, 2> out;
  for (const ReadSegment& s : list) {
    if (s.position == 0) continue;  // req: RFC8166-3.5.3-8 RFC8166-6.1-6
    auto* it = std::find_if(out.begin(), out.end(), [&](const PlacedChunk& c) { return c.position == s.position; });
    if (it == out.end()) {
      out.push_back({s.position, s.target.length});
    } else {
      it->length += s.target.length;  // req: RFC8166-3.4.4-1 RFC8166-3.4.5-5 RFC8166-3.4.5-1
    }
  }
  std::sort(out.begin(), out.end(), [](const PlacedChunk& a, const PlacedChunk& b) { return a.position < b.position; });
  return out;
}

// Joins the segments of one chunk, in list order and without gaps. req: RFC8166-3.4.5-3
void read_chunk(const ReadList& list, std::uint32_t position, std::size_t into, CallPlan& plan) {
  for (const ReadSegment& s : list) {
    if (s.position != position || s.target.length == 0) continue;
    plan.reads.push_back({into, s.target.length, s.target.handle, s.target.offset});  // req: RFC8166-4.4.3-1
    into += s.target.length;
  }
}

}  // namespace

std::variant<CallPlan, PlanFault> plan_call(const Header& header, std::size_t inline_bytes,
                                            std::size_t max_call_bytes) {
  CallPlan plan;
  plan.chunks = collect_chunks(header.read_list);
  PayloadSource source(header, inline_bytes);
  std::uint64_t total = source.left();
  for (const PlacedChunk& c : plan.chunks) total += padded(c.length);
  if (total > max_call_bytes) return PlanFault::kTooLong;  // req: RFC8166-8.1.4-1 RFC8166-3.4.4-3
  plan.total_bytes = static_cast<std::size_t>(total);

  std::size_t at = 0;
  for (const PlacedChunk& c : plan.chunks) {
    // Position counts the unreduced stream: chunks before this one are in place already. req: RFC8166-3.4.5.1-1
    if (c.position < at || c.position - at > source.left()) return PlanFault::kBadPositions;
    source.take(c.position - at, at, plan);
    at = c.position;
    read_chunk(header.read_list, c.position, at, plan);
    at += static_cast<std::size_t>(c.length);
    const std::size_t pad = static_cast<std::size_t>(padded(c.length) - c.length);
    if (pad > 0) plan.zeros.push_back({at, pad});  // left out by the peer. req: RFC8166-3.4.5.2-1
    at += pad;
  }
  source.take(source.left(), at, plan);  // req: RFC8166-6.1-7
  return plan;
}

ChunkVerdict check_chunks(ConstBytes call, const CallPlan& plan, const DeclaredBinding* declared) {
  if (plan.chunks.empty()) return ChunkVerdict::kFine;  // req: RFC8166-3.4.2-1
  // Padding of the item left in line: what follows it is out of step. req: RFC8166-3.4.4.4-2
  if (call.size() % 4 != 0) return ChunkVerdict::kWrongSize;
  ArgumentWalker walker(call, declared);
  std::optional<DdpItem> item = walker.next();
  for (const PlacedChunk& c : plan.chunks) {
    while (item && item->offset < c.position) item = walker.next();  // req: RFC8166-3.5.2-1
    // req: RFC8166-6.1-8 RFC8166-6.1-9 RFC8166-3.4.2-2
    if (!item || item->offset != c.position) return ChunkVerdict::kNotEligible;
    // With padding or without. req: RFC8166-3.4.5.2-2 RFC8166-3.4.5.2-4 RFC8166-3.4.5.2-3
    if (c.length != item->length && c.length != item->padded_length()) return ChunkVerdict::kWrongSize;
  }
  return ChunkVerdict::kFine;
}

}  // namespace iwarp::rpcrdma
