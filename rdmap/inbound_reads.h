// Inbound RDMA Read Request queue (IRRQ): Read and Atomic Requests that wait for their Response, in arrival order (RFC
// 5040 s5.2, s6.1; RFC 7306 s5.2). An entry is held until the last octet of its Response was handed to TCP. Capacity is
// the IRD. Not thread-safe.
#pragma once

#include <array>
#include <variant>

#include "iwarp/base/ring.h"
#include "iwarp/ddp/segment_header.h"
#include "iwarp/rdmap/atomic.h"
#include "iwarp/rdmap/read_request.h"

namespace iwarp::rdmap {

struct InboundRead {
  static constexpr std::size_t kUlpduBytes = ddp::UntaggedHeader::kSize + ReadRequest::kSize;

  std::variant<ReadRequest, AtomicRequest> request{};
  std::array<std::byte, kUlpduBytes> ulpdu{};  // as received, of an Atomic the beginning: a Terminate quotes it
};

class InboundReads {
 public:
  explicit InboundReads(std::size_t ird) : waiting_(ird) {}

  [[nodiscard]] bool full() const { return waiting_.size() + sending_ >= waiting_.capacity(); }
  // Precondition: !full().
  void push(const InboundRead& read) { waiting_.push(read); }
  [[nodiscard]] bool empty() const { return waiting_.empty(); }
  // Takes the oldest request for sending its Response; it keeps counting against the IRD until response_sent().
  // req: RFC5040-5.2.1-8
  InboundRead start() {
    ++sending_;
    return waiting_.pop();
  }
  void response_sent() {
    if (sending_ > 0) --sending_;  // none after clear(), though the last octets of a Response may still leave
  }
  // At least `ird` may wait from now on.
  void raise(std::size_t ird) {
    if (ird <= waiting_.capacity()) return;
    Ring<InboundRead> wider(ird);
    while (!waiting_.empty()) wider.push(waiting_.pop());
    waiting_ = std::move(wider);
  }
  void clear() {
    waiting_.clear();
    sending_ = 0;
  }

 private:
  Ring<InboundRead> waiting_;
  std::size_t sending_ = 0;
};

}  // namespace iwarp::rdmap
