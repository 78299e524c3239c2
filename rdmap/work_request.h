// Work requests and completions in verbs vocabulary. Plain values: posting copies them, nothing is allocated.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "iwarp/base/error.h"
#include "iwarp/base/ids.h"

namespace iwarp::rdmap {

inline constexpr std::size_t kMaxSge = 8;  // pieces of one work request

// One piece of local memory. `lkey` is the STag of a MemoryRegion of the queue pair's Protection Domain that covers it.
struct Sge {
  // Its first octet. In a region with an IOVA of its own: that number, which points nowhere.
  std::byte* address = nullptr;
  std::uint32_t length = 0;  // octets; 0: nothing is read or written, and nothing is checked
  Stag lkey{};               // MemoryRegion::stag()

  // `address` plus `offset`, as a number.
  [[nodiscard]] std::uint64_t at(std::size_t offset) const {
    return reinterpret_cast<std::uintptr_t>(address) + offset;
  }
};

// A list of at most kMaxSge pieces, held by value.
class SgeList {
 public:
  SgeList() = default;
  // A list of one.
  SgeList(const Sge& one) : count_(1) { sges_[0] = one; }  // NOLINT: implicit on purpose
  // A copy of all of it.
  SgeList(const SgeList&) = default;
  // Lists are mostly short: assigning does not copy what they do not hold, so that posting touches few cache lines.
  SgeList& operator=(const SgeList& other) {
    count_ = other.count_;
    sges_[0] = other.sges_[0];
    for (std::size_t i = 1; i < count_; ++i) sges_[i] = other.sges_[i];
    return *this;
  }
  // False (and unchanged) when full.
  bool add(const Sge& sge) {
    if (count_ == kMaxSge) return false;
    sges_[count_++] = sge;
    return true;
  }
  // The pieces, valid until the list changes.
  [[nodiscard]] std::span<const Sge> view() const { return {sges_.data(), count_}; }
  // Octets of all pieces.
  [[nodiscard]] std::uint64_t total() const {
    std::uint64_t sum = 0;
    for (const Sge& s : view()) sum += s.length;
    return sum;
  }

 private:
  std::uint8_t count_ = 0;  // before them: with the first one in a cache line
  std::array<Sge, kMaxSge> sges_{};
};

// What a SendWr asks for.
enum class SendOp : std::uint8_t {
  kSend,             // a message for a receive of the peer
  kSendInvalidate,   // the same, which revokes an STag of the peer
  kWrite,            // RDMA Write
  kRead,             // RDMA Read
  kReadInvalidate,   // the same, which revokes the STag of its sink when it is complete: nothing of it is on the wire
  kLocalInvalidate,  // revokes an STag of this end, when its turn comes. Nothing is sent
  // RFC 7306, for connections with endpoint::Options::rfc7306.
  kImmediate,       // 8 octets that take a receive of the peer and arrive in its completion
  kWriteImmediate,  // a Write, and Immediate Data right behind it: one completion here, and one there
  kFetchAdd,        // Atomics: they read, change and write 64 bits of the peer's memory as one step, and bring back
  kCmpSwap,         // what was there. They count as Reads for ORD and IRD
  // A Send with 32 bits that arrive in the completion of the receive. Of no RFC: between ends that have agreed on it
  // (endpoint::Options::send_immediate).
  kSendImmediate,
};
// Whether the peer must know RFC 7306.
[[nodiscard]] constexpr bool is_rfc7306(SendOp op) {
  return op >= SendOp::kImmediate && op <= SendOp::kCmpSwap;
}
[[nodiscard]] constexpr bool is_atomic(SendOp op) {
  return op == SendOp::kFetchAdd || op == SendOp::kCmpSwap;
}
// Whether it is an RDMA Read on the wire.
[[nodiscard]] constexpr bool is_read(SendOp op) {
  return op == SendOp::kRead || op == SendOp::kReadInvalidate;
}
// Whether it revokes an STag of this end.
[[nodiscard]] constexpr bool invalidates_here(SendOp op) {
  return op == SendOp::kReadInvalidate || op == SendOp::kLocalInvalidate;
}
// Whether SendWr::inline_data is for it.
[[nodiscard]] constexpr bool may_be_inline(SendOp op) {
  return op <= SendOp::kWrite || op == SendOp::kWriteImmediate || op == SendOp::kSendImmediate;
}
// Whether it completes with a Response of the peer, for which ORD counts it. req: RFC7306-5.2-3
[[nodiscard]] constexpr bool awaits_response(SendOp op) {
  return is_read(op) || is_atomic(op);
}

// What an Atomic is to do (RFC 7306 s5.1), in the octet order of this machine.
// FetchAdd adds `data`; bits set in `mask` are the most significant ones of fields that are added apart, 0: one field.
// CmpSwap: where the peer's value has the bits of `compare` under `compare_mask`, the bits of `data` under `mask` take
// their place. A compare_mask of 0 makes it a plain swap.
struct AtomicOperands {
  std::uint64_t data = 0;                          // added, or what takes the place
  std::uint64_t mask = 0;                          // ends of fields, or bits that are replaced
  std::uint64_t compare = 0;                       // CmpSwap: expected
  std::uint64_t compare_mask = ~std::uint64_t{0};  // CmpSwap: bits that are compared
  friend bool operator==(const AtomicOperands&, const AtomicOperands&) = default;
};

// Work request of the send queue. The memory that it names must stay registered and untouched until it completes.
struct SendWr {
  std::uint64_t wr_id = 0;    // the application's; told again by the completion
  SendOp op = SendOp::kSend;  // which of them
  // Source of Send and Write, sink of Read, 0 to 4 GiB - 1 in all; Immediate, LocalInvalidate: none. A Read becomes a
  // Read Request for each piece that has octets, and each counts for ORD. ReadInvalidate: one piece.
  // Atomic: one piece of 8 octets, to which the value before goes in the octet order of this machine.
  SgeList sges{};
  // Write, Read, Atomic: the peer's buffer (of a Write or Read of no octets: any). SendInvalidate: the STag that the
  // peer shall invalidate.
  Stag remote_stag{};
  // LocalInvalidate: the STag of this end that is revoked, MemoryRegion::stag(). Requests posted before it that name it
  // in `sges` are done first, those behind it begin later; with `fence` all earlier Reads are done first. The region
  // keeps the index: it can be registered anew. That the STag is dead already is no error; that it is of another
  // Protection Domain is one.
  Stag local_stag{};
  // Write, Read, Atomic. There an address that is a multiple of 8, else the peer ends the connection.
  std::uint64_t remote_to = 0;
  bool solicited = false;  // Send, Immediate: raise a solicited event at the peer
  bool signaled = true;    // false: no completion unless it fails
  bool fence = false;  // start when all earlier Reads and Atomics have completed: else these may see it (RFC 5040 s5.5)
  // Sends and Writes of any kind: posting copies the octets, which may change as soon as it returns.
  // `sges` give their addresses, registered or not; nobody looks at an lkey. At most stream::Options::max_inline
  // octets.
  bool inline_data = false;
  // Immediate, WriteImmediate, SendImmediate (32 bits): most significant octet first on the wire.
  std::uint64_t immediate = 0;
  AtomicOperands atomic{};  // FetchAdd, CmpSwap
};

// Work request of the receive queue. The memory that it names must stay registered and untouched until it completes.
struct RecvWr {
  std::uint64_t wr_id = 0;  // the application's; told again by the completion
  // 0 to 4 GiB - 1 in all. A message shorter than this uses the whole request up; a longer one is an error. Immediate
  // Data uses a request up as well, leaves its memory alone and needs none.
  SgeList sges{};
};

// What has completed. kSend stands for Sends of any kind and Immediate Data, too, kWrite for a Write with it.
// kDrain: what SendQueue::post_drain() asked for.
enum class WcOp : std::uint8_t { kSend, kWrite, kRead, kRecv, kFetchAdd, kCmpSwap, kLocalInvalidate, kDrain };

// Work completion. Completions of one queue come in posting order.
struct Completion {
  std::uint64_t wr_id = 0;  // of the work request
  WcOp op = WcOp::kSend;    // its kind
  Errc status = Errc::kOk;  // kFlushed when the connection ended first
  // Received octets (kRecv; of WriteImmediate those of the Write; of Immediate Data alone those of a Write right before
  // it, or 0), requested octets (kRead), 8 of Atomics.
  std::uint32_t byte_len = 0;
  bool solicited = false;       // kRecv: the peer asked for a solicited event
  bool invalidated = false;     // invalidated_stag is revoked: by the peer (kRecv), or as was asked for (kRead,
                                // kLocalInvalidate)
  bool silent = false;          // see SendQueue::poll(); never seen in a completion queue
  bool has_immediate = false;   // kRecv: it was Immediate Data, not a Send, or a Send with Immediate
  bool sent_immediate = false;  // with `has_immediate`: it was the latter
  Stag invalidated_stag{};      // with `invalidated`
  std::uint64_t immediate = 0;  // with `has_immediate`
};

}  // namespace iwarp::rdmap
