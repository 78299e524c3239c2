#include "iwarp/rpcrdma/offer_plan.h"

#include <algorithm>

#include "iwarp/rpcrdma/reply_bounds.h"
#include "iwarp/rpcrdma/xdr_padding.h"

namespace iwarp::rpcrdma {
namespace {

// A header with one segment in each chunk.
std::size_t header_bytes(std::size_t read_segments, std::size_t write_chunks, bool reply_chunk) {
  constexpr std::size_t kWriteChunk = 4 + Segment::kSize;
  return kMinHeaderBytes + read_segments * (4 + ReadSegment::kSize) + write_chunks * (4 + kWriteChunk) +
         (reply_chunk ? kWriteChunk : 0);
}

// What the Reply may be written into.
void offer_reply_memory(ConstBytes call, const ResultBinding& results, const OfferPolicy& policy,
                        std::size_t reply_inline, std::size_t max_reply, std::optional<std::size_t> session_limit,
                        OfferPlan& plan) {
  auto bound = reply_bound(call, policy.readlink_bytes);
  if (const auto results_bytes = results.declared_bytes()) bound = kReplyHead + *results_bytes;
  // req: RFC8267-6.2.2-1
  std::size_t reply = std::min(bound.value_or(session_limit.value_or(SIZE_MAX)), max_reply);
  if (!bound && policy.guess_replies) {
    const auto guess = reply_guess(call);  // req: RFC8267-5.2-3
    plan.guessed = guess && *guess < max_reply;
    if (plan.guessed) reply = *guess;
  }
  plan.reply_rest = reply;
  if (reply + kMinHeaderBytes <= reply_inline) return;  // req: RFC8166-4.3.3-2
  std::size_t data = 0;
  bool suits = bound && *bound <= max_reply && results.max_items() > 0 && results.max_items() <= policy.write_chunks &&
               results.max_items() <= ResultBinding::kMaxExpectations;
  SmallVector<std::uint32_t, 1> chunks;
  for (std::size_t i = 0; suits && i < results.max_items(); ++i) {
    const auto& expected = results.expectation(i);
    const bool read = expected.kind == ResultBinding::Expectation::Kind::kRead;
    const std::uint32_t path =
        std::min(policy.readlink_bytes, expected.max_bytes == 0 ? UINT32_MAX : expected.max_bytes);
    const std::uint32_t most = read ? expected.max_bytes : path;
    suits = most > 0;
    const bool in_line = policy.empty_write_chunks && most < policy.least_bytes;
    chunks.push_back(in_line ? 0 : most);  // req: RFC8166-4.3.2.3-2 RFC8267-6.4.3-1
    data += in_line ? 0 : static_cast<std::size_t>(padded(most));
  }
  if (suits && data >= policy.least_bytes && data < reply) {
    const std::size_t rest = reply - data;
    std::size_t header = header_bytes(0, chunks.size(), false);
    for (const std::uint32_t octets : chunks) header -= octets == 0 ? Segment::kSize : 0;
    const bool fits = header + rest <= reply_inline;
    // req: D2005-3.4-4 D2005-3.4-5
    if (fits || policy.with_reply_chunk) {  // req: RFC8166-3.4.6-2 RFC8267-3-1
      plan.write_chunks = std::move(chunks);
      plan.reply_chunk = fits ? 0 : rest;
      plan.reply_rest = rest;
      return;
    }
  }
  // req: D2005-5.2-1 D2005-5.2-4
  plan.reply_chunk = reply;  // req: RFC8166-3.5.3-4 RFC8166-4.3.2.3-5 RFC8267-3-2
}

OfferPlan as_one_chunk(ConstBytes call, OfferPlan plan) {
  plan.in_line = false;
  plan.data.clear();
  plan.rest.clear();
  plan.rest.push_back({0, call.size()});
  return plan;
}

}  // namespace

OfferPlan plan_offer(ConstBytes call, const ResultBinding& results, const OfferPolicy& policy, std::size_t call_inline,
                     std::size_t reply_inline, std::size_t max_reply, const DeclaredBinding* declared,
                     std::optional<std::size_t> session_limit) {
  OfferPlan plan;
  offer_reply_memory(call, results, policy, reply_inline, max_reply, session_limit, plan);
  const std::size_t header = header_bytes(0, plan.write_chunks.size(), plan.reply_chunk > 0);
  // req: RFC8166-2.3.2-2 RFC8166-3.3-1 RFC8166-3.5.1-1 RFC8166-4.3.1-2
  if (header + call.size() <= call_inline) {  // req: RFC8166-3.5.3-1 V2-2.1-2
    plan.rest.push_back({0, call.size()});
    return plan;
  }
  std::size_t at = 0, rest = 0;
  if (policy.read_chunks > 0) {
    ArgumentWalker walker(call, declared);
    while (const auto item = walker.next()) {
      if (!item->in_message) break;
      if (item->length < policy.least_bytes) continue;
      if (plan.data.size() == policy.read_chunks) return as_one_chunk(call, std::move(plan));
      plan.data.push_back(*item);
      plan.rest.push_back({at, item->offset - at});
      rest += item->offset - at;
      at = item->offset + static_cast<std::size_t>(item->padded_length());  // req: RFC8166-3.4.5.2-1
    }
  }
  if (at < call.size()) {
    plan.rest.push_back({at, call.size() - at});
    rest += call.size() - at;
  }
  constexpr std::size_t kSegment = 4 + ReadSegment::kSize;
  const std::size_t chunks = header + plan.data.size() * kSegment;
  plan.in_line = !plan.data.empty() && chunks + rest <= call_inline;
  if (plan.in_line) return plan;
  const bool fits = chunks + plan.rest.size() * kSegment <= call_inline;
  return policy.with_position_zero && fits ? plan : as_one_chunk(call, std::move(plan));
}

}  // namespace iwarp::rpcrdma
