#include "iwarp/rpcrdma/padding.h"

#include <algorithm>
#include <cstring>

#include "iwarp/rpcrdma/config_rdma.h"
#include "iwarp/rpcrdma/rpc_message.h"

namespace iwarp::rpcrdma {
namespace {

// Fewer than the data that are worth padding, and what no item is as long as. Below it by at most the number of items.
std::uint32_t threshold_between(std::span<const DdpItem> items, std::uint32_t least) {
  std::uint32_t out = least;
  const auto is_taken = [&] {
    return std::any_of(items.begin(), items.end(), [&](const DdpItem& i) { return i.length == out; });
  };
  while (is_taken()) --out;
  return out;
}

// Whether the receiver has to skip `octets` in front of the item. req: D2005-3.5-5
bool is_padded(const DdpItem& item, std::size_t octets, std::uint32_t threshold, std::size_t message_bytes) {
  if (item.length != threshold) return item.length > threshold;
  return item.offset + octets + item.padded_length() == message_bytes;
}

// Whether arguments or results of so many octets, of which nothing is known, may have data that are padded.
bool may_hold_padding(std::size_t body_bytes, const Padding& padding) {
  constexpr std::size_t kCount = 4;
  return body_bytes >= kCount + std::size_t{padding.threshold};
}

// `walk` gives a fresh walker of the message, `is_absent` whether the data of an item are elsewhere. Each padded item
// costs a walk: everything in front of it has moved.
template <class Walk, class IsAbsent>
std::optional<Unpadded> unpad(MutBytes message, const Padding& padding, std::size_t header_bytes, const Walk& walk,
                              const IsAbsent& is_absent) {
  if (!good_padding(padding)) return std::nullopt;
  Unpadded out;
  std::size_t seen = 0;  // items whose padding, if any, is gone
  for (;;) {
    const MutBytes rest = message.subspan(out.offset);
    auto walker = walk(rest);
    const auto next = [&] {
      const std::optional<DdpItem> item = walker.next();
      if (item && is_absent(*item)) walker.mark_absent();
      return item;
    };
    for (std::size_t i = 0; i < seen; ++i) (void)next();
    std::size_t pad = 0;
    std::optional<DdpItem> item;
    do {
      item = next();
      if (!item) {
        if (may_hold_padding(walker.unread(), padding)) return std::nullopt;
        return out;
      }
      ++seen;
      // What is in front of the item has moved by out.offset; the item itself is where it was received.
      pad = pad_octets(header_bytes + out.offset + item->offset, padding.align);
    } while (is_absent(*item) || !is_padded(*item, pad, padding.threshold, rest.size()));
    if (out.gaps.size() == kMaxPaddedItems) return std::nullopt;
    const std::size_t room = rest.size() - item->offset;
    if (pad > room || item->padded_length() > room - pad) return std::nullopt;
    std::memmove(rest.data() + pad, rest.data(), item->offset);
    out.offset += pad;
    out.gaps.push_back({item->offset, pad});
  }
}

}  // namespace

std::optional<PaddedLayout> plan_padding(std::size_t message_bytes, std::span<const DdpItem> items,
                                         std::size_t header_bytes, std::uint32_t align, std::uint32_t threshold,
                                         std::size_t max_send_bytes) {
  if (!good_alignment(align) || items.size() > kMaxPaddedItems) return std::nullopt;
  PaddedLayout out;
  const auto least = std::max(threshold, kLeastThreshold + static_cast<std::uint32_t>(kMaxPaddedItems));
  out.padding = {align, threshold_between(items, least)};
  out.padded_bytes = message_bytes;
  for (const DdpItem& item : items) {
    if (item.length <= out.padding.threshold) continue;
    const std::size_t added = out.padded_bytes - message_bytes;
    const std::size_t pad = pad_octets(std::uint64_t{header_bytes} + item.offset + added, align);
    out.gaps.push_back({item.offset, pad});  // req: D2005-3.5-2 D2005-3.5-1
    out.padded_bytes += pad;
  }
  if (out.gaps.empty() || header_bytes > max_send_bytes || out.padded_bytes > max_send_bytes - header_bytes)
    return std::nullopt;
  return out;
}

bool write_padded(ConstBytes message, const PaddedLayout& layout, MutBytes out) {
  if (out.size() < layout.padded_bytes) return false;
  std::size_t from = 0, to = 0;
  const auto copy_up_to = [&](std::size_t end) {
    std::copy(message.begin() + static_cast<std::ptrdiff_t>(from), message.begin() + static_cast<std::ptrdiff_t>(end),
              out.begin() + static_cast<std::ptrdiff_t>(to));
    to += end - from;
    from = end;
  };
  for (const Gap& gap : layout.gaps) {
    copy_up_to(gap.offset);
    std::fill_n(out.begin() + static_cast<std::ptrdiff_t>(to), gap.octets, std::byte{0});
    to += gap.octets;
  }
  copy_up_to(message.size());
  return true;
}

std::optional<Unpadded> unpad_call(MutBytes message, const Header& header, std::size_t header_bytes,
                                   const DeclaredBinding* declared) {
  const Result<RpcCall> head = RpcCall::parse(message);
  const bool declares = head && declared != nullptr && declared->find(*head, BulkItem::Where::kArguments) != nullptr;
  const bool known = declares || (head && head->program == kNfsProgram && head->body_is_plain());
  if (!known && may_hold_padding(message.size() - (head ? head->arguments_offset : 0), header.padding))
    return std::nullopt;
  return unpad(
      message, header.padding, header_bytes, [&](ConstBytes octets) { return ArgumentWalker(octets, declared); },
      [&](const DdpItem& item) {
        return std::any_of(header.read_list.begin(), header.read_list.end(),
                           [&](const ReadSegment& s) { return s.position == item.position; });
      });
}

std::optional<Unpadded> unpad_reply(MutBytes message, const Header& header, std::size_t header_bytes,
                                    const ResultBinding& results) {
  const Result<RpcReply> head = RpcReply::parse(message);
  const bool unknown = !head || (head->success() && !results.known());
  if (unknown && may_hold_padding(message.size() - (head ? head->results_offset : 0), header.padding))
    return std::nullopt;
  return unpad(
      message, header.padding, header_bytes, [&](ConstBytes octets) { return ResultWalker(results, octets); },
      [&](const DdpItem& item) {
        // The n-th result has the n-th Write chunk.
        if (item.ordinal < header.write_list.size() && header.write_list[item.ordinal].length() > 0) return true;
        return std::any_of(header.read_list.begin(), header.read_list.end(),
                           [&](const ReadSegment& s) { return s.position == item.position; });
      });
}

}  // namespace iwarp::rpcrdma
