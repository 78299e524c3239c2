// RDMA_MSGP of the draft of 2005 (draft-ietf-nfsv4-rpcrdma-01 section 3.5): octets between the count of opaque data and
// the data, so that these begin at a multiple of rdma_align octets of the Send. Receive buffers here begin with a page
// each: so the data lie at such a multiple in memory, and stay there. Layout by the sender, and the way back by the
// receiver. Pure functions over octets. Off unless both ends are told of the draft.
//
// Which data are padded only an Upper-Layer Binding can tell: both ends must take the same items for opaque data of
// more than the threshold: data of NFS (nfs_binding.h: WRITE, READ, READLINK, SYMLINK), and those of a DeclaredBinding.
// A threshold below kLeastThreshold, which other opaque data may exceed, is neither sent nor accepted; nor is a message
// accepted that may hold padded data of which this end knows nothing: one of another program, of RPCSEC_GSS with
// integrity or privacy, that goes the other way, or with an operation of NFS that is not known here in front, if what
// is left is long enough.
//
// Where the draft does not say:
// - Positions count from the first octet of the Send, transport header included: only so do padded data come to an
//   aligned place of the receiver's buffers, as the figure of section 3.5 has it. Clients of Linux counted like that.
// - Data of exactly rdma_thresh octets are padded "at or above" it by one sentence and above it by another. A sender
//   names a threshold that no data of the message are as long as; a receiver skips nothing then, unless the message
//   ends just behind the data with the padding, and not without.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "iwarp/base/bytes.h"
#include "iwarp/rpcrdma/nfs_binding.h"
#include "iwarp/rpcrdma/small_vector.h"
#include "iwarp/rpcrdma/transport_header.h"

namespace iwarp::rpcrdma {

// Octets that an RDMA_MSGP without chunks has in front of the RPC message.
inline constexpr std::size_t kMinMsgpHeaderBytes = 36;
// Longer than any opaque data of a Call or Reply that is no item of a binding: credentials have 400 octets at most,
// file handles 128.
inline constexpr std::uint32_t kLeastThreshold = 512;
// Items of one message that may be padded.
inline constexpr std::size_t kMaxPaddedItems = 16;

// What aligns the octet at `position`: 0 to align - 1. Precondition: align > 0. req: D2005-3.5-4
[[nodiscard]] constexpr std::size_t pad_octets(std::uint64_t position, std::uint32_t align) {
  return static_cast<std::size_t>((align - position % align) % align);
}

// Whether a receiver can make sense of it: a multiple of 4, since XDR items begin at such, and kLeastThreshold or more.
// Else an RDMA_MSGP is answered as any header that cannot be decoded (ERR_CHUNK).
[[nodiscard]] constexpr bool good_padding(const Padding& p) {
  return p.align > 0 && p.align % 4 == 0 && p.threshold >= kLeastThreshold;
}

// Octets that are to be put into a message.
struct Gap {
  std::size_t offset = 0;  // in front of this octet of the unpadded message
  std::size_t octets = 0;  // may be 0: the data are aligned as they are
  friend constexpr bool operator==(const Gap&, const Gap&) = default;
};

// --- Sender

struct PaddedLayout {
  Padding padding{};             // for the header
  SmallVector<Gap, 4> gaps{};    // ascending
  std::size_t padded_bytes = 0;  // of the RPC message with them
};

// All items of a message, by a fresh ArgumentWalker or ResultWalker of it. Nullopt: there are more than
// kMaxPaddedItems, one is not wholly in the message, or there are octets that cannot be made out: it goes as RDMA_MSG.
template <class Walker>
[[nodiscard]] std::optional<DdpItems> items_to_pad(Walker walker) {
  DdpItems out;
  while (const auto item = walker.next()) {
    if (!item->in_message || out.size() == kMaxPaddedItems) return std::nullopt;
    out.push_back(*item);
  }
  if (walker.unread() > 0) return std::nullopt;  // the receiver may refuse what neither end can make out
  return out;
}

// How `message`, an RPC message of `message_bytes` octets with these items in line (offset and length count,
// ascending), goes as RDMA_MSGP behind a header of `header_bytes`. Nullopt: as RDMA_MSG, since nothing would be padded,
// or the Send would exceed `max_send_bytes`, or align is no good_alignment(), or there are more than kMaxPaddedItems
// items. `threshold`: data of so many octets are worth it; less than kLeastThreshold + kMaxPaddedItems counts as that.
[[nodiscard]] std::optional<PaddedLayout> plan_padding(std::size_t message_bytes, std::span<const DdpItem> items,
                                                       std::size_t header_bytes, std::uint32_t align,
                                                       std::uint32_t threshold, std::size_t max_send_bytes);
// Writes the padded message to the start of `out`; pad octets are 0. False: `out` is too short. Precondition: `layout`
// is of this message.
[[nodiscard]] bool write_padded(ConstBytes message, const PaddedLayout& layout, MutBytes out);

// --- Receiver

// The unpadded message inside the octets given, and its data, which have not moved unless there are several.
struct Unpadded {
  std::size_t offset = 0;      // of its first octet
  SmallVector<Gap, 4> gaps{};  // as in PaddedLayout
  friend bool operator==(const Unpadded&, const Unpadded&) = default;
};

// Takes the padding out of the Call in `message`, the octets behind the header of an RDMA_MSGP, in place: what is in
// front of padded data moves towards them, so that the last of them stay where they were received. `header_bytes`:
// octets in front of `message` in the Send. Data of Read chunks (header.read_list) are not in the message. Nullopt:
// the padding is not good_padding(), data and padding are longer than the message, or it is not known where padding
// may be; the octets are then of no use. `declared`: of other programs than NFS, or null.
[[nodiscard]] std::optional<Unpadded> unpad_call(MutBytes message, const Header& header, std::size_t header_bytes,
                                                 const DeclaredBinding* declared = nullptr);
// The same for a Reply; `results`: of its Call. Results of Write chunks that were written are not in the message.
[[nodiscard]] std::optional<Unpadded> unpad_reply(MutBytes message, const Header& header, std::size_t header_bytes,
                                                  const ResultBinding& results);

}  // namespace iwarp::rpcrdma
