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
  std::byte* address = nullptr;  // its first octet
  std::uint32_t length = 0;      // octets; 0: nothing is read or written
  Stag lkey{};                   // MemoryRegion::stag()
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
enum class SendOp : std::uint8_t { kSend, kSendInvalidate, kWrite, kRead };

// Work request of the send queue. The memory that it names must stay registered and untouched until it completes.
struct SendWr {
  std::uint64_t wr_id = 0;    // the application's; told again by the completion
  SendOp op = SendOp::kSend;  // which of them
  SgeList sges{};             // source of Send and Write (0 to 4 GiB - 1 in all), sink of Read (at most one piece)
  Stag remote_stag{};         // Write, Read: the peer's buffer. SendInvalidate: the STag that the peer shall invalidate
  std::uint64_t remote_to = 0;  // Write, Read
  bool solicited = false;       // Send: raise a solicited event at the peer
  bool signaled = true;         // false: no completion unless it fails
  bool fence = false;           // start only when all earlier Reads have completed (RFC 5040 s5.5 rule 12)
};

// Work request of the receive queue. The memory that it names must stay registered and untouched until it completes.
struct RecvWr {
  std::uint64_t wr_id = 0;  // the application's; told again by the completion
  // 0 to 4 GiB - 1 in all. A message shorter than this uses the whole request up; a longer one is an error.
  SgeList sges{};
};

// What has completed. kSend: a Send with Invalidate, too.
enum class WcOp : std::uint8_t { kSend, kWrite, kRead, kRecv };

// Work completion. Completions of one queue come in posting order.
struct Completion {
  std::uint64_t wr_id = 0;     // of the work request
  WcOp op = WcOp::kSend;       // its kind
  Errc status = Errc::kOk;     // kFlushed when the connection ended first
  std::uint32_t byte_len = 0;  // received octets (kRecv), requested octets (kRead)
  bool solicited = false;      // kRecv: the peer asked for a solicited event
  bool invalidated = false;    // kRecv: invalidated_stag was revoked by the peer
  Stag invalidated_stag{};     // with `invalidated`
};

}  // namespace iwarp::rdmap
