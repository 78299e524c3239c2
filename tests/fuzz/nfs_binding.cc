// The NFS binding (RFC 8267): walkers over any octets taken for a Call and its Reply. Items lie inside the message,
// come in order, and what the walkers and ResultBinding::items() say agrees; clamping a back channel or hiding
// layouts twice is doing it once. What a Reply can be at most does not depend on octets behind the Call.
//
// Input: choices (bit n: the n-th item is absent) | limit of the clamp | length of the Call, 2 octets | Call | Reply.
#include "iwarp/rpcrdma/nfs_binding.h"

#include "iwarp/rpcrdma/nfs_pnfs.h"
#include "iwarp/rpcrdma/reply_bounds.h"
#include "iwarp/rpcrdma/rpc_message.h"
#include "tests/fuzz/check.h"
#include "tests/support/hex.h"

namespace iwarp::fuzz {
namespace {

using test::Bytes;
using namespace rpcrdma;

template <class Walker>
void walk(Walker walker, std::size_t message_bytes, std::uint8_t absent) {
  std::uint32_t count = 0;
  std::uint64_t position = 0;
  while (const auto item = walker.next()) {
    FUZZ_CHECK(item->ordinal == count && item->offset <= message_bytes && item->offset % 4 == 0);
    FUZZ_CHECK(item->position >= item->offset && (count == 0 || item->position > position));
    FUZZ_CHECK(!item->in_message || item->padded_length() <= message_bytes - item->offset);
    position = item->position;
    if ((absent >> (count % 8) & 1) != 0) walker.mark_absent();
    ++count;
    FUZZ_CHECK(count <= message_bytes);  // each takes a count word at least
  }
  FUZZ_CHECK(!walker.next());
}

template <class Clamp>
void clamp_twice(const Bytes& message, const Clamp& clamp) {
  Bytes once = message;
  if (!clamp(once)) {
    FUZZ_CHECK(once == message);
    return;
  }
  Bytes twice = once;
  FUZZ_CHECK(clamp(twice) && twice == once);
}

}  // namespace
}  // namespace iwarp::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace iwarp::fuzz;
  Script script(as_input(data, size));
  const std::uint8_t absent = script.u8();
  const std::uint32_t limit = 1024 + script.u8();
  const auto call_part = script.bytes(script.u16());
  const Bytes call(call_part.begin(), call_part.end());
  const Bytes reply(script.rest().begin(), script.rest().end());

  walk(ArgumentWalker(call), call.size(), absent);
  const ResultBinding binding = ResultBinding::for_call(call);
  walk(ResultWalker(binding, reply), reply.size(), absent);

  const auto items = binding.items(reply);
  FUZZ_CHECK(items.size() <= 16 && items.size() <= binding.max_items());
  ResultWalker walker(binding, reply);
  for (const DdpItem& item : items) FUZZ_CHECK(walker.next() == item && item.in_message);

  (void)has_exchange_id(call);
  Bytes unasked = call;
  if (hide_layout_attributes(unasked)) {
    FUZZ_CHECK(unasked.size() == call.size());
    FUZZ_CHECK(!hide_layout_attributes(unasked));
  }
  Bytes hidden = reply;
  if (hide_layouts(hidden)) {
    FUZZ_CHECK(hidden.size() == reply.size());
    FUZZ_CHECK(!hide_layouts(hidden));
  }
  clamp_twice(call, [limit](Bytes& b) { return clamp_back_channel(b, limit); });
  Bytes longer = call;
  longer.resize(call.size() + 64, std::byte{0x7f});
  if (const auto bound = reply_bound(call)) FUZZ_CHECK(*bound > 400 && reply_bound(longer) == bound);
  if (const auto guess = reply_guess(call)) FUZZ_CHECK(*guess > 400 && !reply_bound(call));
  (void)RpcCall::parse(call);
  (void)RpcReply::parse(reply);
  return 0;
}
