// Flow control of RPC-over-RDMA (RFC 8166 s3.3.1): how many Calls a Requester may have outstanding. One window per
// direction; the two of a connection never touch each other (RFC 8167 s4.1).
#pragma once

#include <algorithm>
#include <cstdint>

namespace iwarp::rpcrdma {

class CreditWindow {
 public:
  // `requested` goes into every Call; at least 1.
  explicit CreditWindow(std::uint32_t requested) : requested_(std::max<std::uint32_t>(requested, 1)) {}

  [[nodiscard]] std::uint32_t requested() const { return requested_; }
  // Another value from the next Call on; at least 1. What is in flight beyond it is worked off.
  void request(std::uint32_t credits) { requested_ = std::max<std::uint32_t>(credits, 1); }  // req: RFC8166-3.3.1-6
  [[nodiscard]] std::uint32_t granted() const { return granted_; }
  [[nodiscard]] std::uint32_t in_flight() const { return in_flight_; }
  // Calls that may be sent now. 0 also while a lowered grant is being worked off.
  [[nodiscard]] std::uint32_t available() const {
    const std::uint32_t limit = std::min(requested_, granted_);  // req: RFC8166-3.3.1-5 RFC8166-3.3.1-2
    return limit > in_flight_ ? limit - in_flight_ : 0;
  }
  void on_call_sent() { ++in_flight_; }
  // The Call was answered. Precondition: one is in flight.
  void on_call_done() { --in_flight_; }
  // The grant of the latest message from the Responder. Absolute. A grant of 0 breaks the protocol and would stop us
  // for ever: taken as 1, like every Linux client does.
  void on_grant(std::uint32_t granted) { granted_ = std::max<std::uint32_t>(granted, 1); }  // req: RFC8166-3.3.1-4

 private:
  std::uint32_t requested_;
  std::uint32_t granted_ = 1;  // req: RFC8166-3.3.3-2 RFC8166-3.3.3-3  until the first valid Reply
  std::uint32_t in_flight_ = 0;
};

}  // namespace iwarp::rpcrdma
