// Transmitting half of RDMAP over DDP: turns work requests, Read Responses, the RTR and the Terminate into DDP
// segments, one at a time, never interleaving messages. Read Responses and the send queue take turns message by
// message. Knows nothing of FPDUs. Not thread-safe.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "iwarp/ddp/stag_table.h"
#include "iwarp/enhanced/rtr.h"
#include "iwarp/rdmap/control.h"
#include "iwarp/rdmap/inbound_reads.h"
#include "iwarp/rdmap/send_queue.h"
#include "iwarp/rdmap/terminate_message.h"

namespace iwarp::rdmap {

// What was sent, messages and payload octets.
struct TxCounters {
  std::uint64_t sends = 0, send_bytes = 0;    // Sends of any kind, and their payload
  std::uint64_t writes = 0, write_bytes = 0;  // RDMA Writes, and their payload
  std::uint64_t reads = 0;                    // RDMA Reads
  std::uint64_t read_response_bytes = 0;      // payload that answers the peer's Reads
  std::uint64_t immediates = 0;               // Immediate Data, with and without solicited event
  std::uint64_t atomics = 0;                  // Atomic Requests
  std::uint64_t wakes = 0;                    // zero-length Writes of queue_wake(), not counted among `writes`
};

using enhanced::Rtr;

class Transmitter {
 public:
  Transmitter(ddp::StagTable& stags, ddp::StreamKey who, SendQueue& sends, InboundReads& reads)
      : stags_(stags), who_(who), sends_(sends), reads_(reads) {}

  // What has to happen when the last octet of a segment was handed to TCP: give it back to segment_sent().
  struct Done {
    enum class What : std::uint8_t { kNothing, kRequest, kReadResponse, kTerminate, kRtr, kWake };
    What what = What::kNothing;
    SendQueue::Ticket ticket = 0;
  };
  // Payload of a work request up to this is cheaper to copy than to pin.
  static constexpr std::size_t kCopied = 256;
  struct Segment {
    // DDP header, then RDMAP header if any (Read Request, Terminate, Immediate Data), then the payload if it is a copy.
    std::array<std::byte, ddp::UntaggedHeader::kSize + std::max(TerminateMessage::kMaxSize, kCopied)> octets;
    std::size_t header_bytes = 0;
    std::size_t copied_bytes = 0;   // of payload, behind the header: all or nothing
    std::size_t payload_bytes = 0;  // copied or pinned
    // The payload is that of a Read Response: its memory may be revoked at any time, and then the peer is told.
    bool read_response = false;
    // It may also legally change at any time (RFC 5040 s5.5 rule 8): with CRC on it must be copied before it is summed.
    bool may_change = false;
    Done done{};
    // Where payload was last copied from: kept for the next segments. A Segment lives for one batch.
    ddp::HeldRegion source;

    [[nodiscard]] ConstBytes head() const { return ConstBytes{octets}.first(header_bytes); }
    [[nodiscard]] ConstBytes head_and_copy() const { return ConstBytes{octets}.first(header_bytes + copied_bytes); }
  };

  // True when next() would give a segment, or carry out a Local Invalidate.
  [[nodiscard]] bool ready(std::size_t ord) const;
  // Carries out Local Invalidates whose turn it is. Then the next segment of at most `mulpdu` octets goes to `segment`;
  // payload that is not copied, to the end of `payload` as pinned memory. False when there is nothing to send. On error
  // (memory revoked under a work request or a Read) nothing is appended and the peer is owed error_terminate(). Give
  // the same Segment for all of a batch.
  [[nodiscard]] Result<bool> next(std::size_t mulpdu, std::size_t ord, Segment& segment,
                                  std::vector<ddp::Pin>& payload);
  void segment_sent(const Done& done);

  // Sends the RTR before anything else. A Read RTR uses MSN 1 of queue 1, a Send RTR MSN 1 of queue 0 (RFC 6581 s9.2):
  // to the application it is no message, and is not counted.
  void queue_rtr(Rtr rtr) { rtr_ = rtr; }
  // Sends a zero-length RDMA Write between two messages, ahead of those that have not begun: legal at any time (RFC
  // 5040 s5.1), it completes nothing and reaches no memory. One at a time: until it is given, later calls change
  // nothing.
  void queue_wake() { wake_ = true; }
  void drop_wake() { wake_ = false; }
  // Sends a Terminate as the next segment and nothing after it. Later calls change nothing (RFC 5040 s7.1 rule 4).
  void queue_terminate(const TerminateMessage& message);
  [[nodiscard]] bool terminate_queued() const { return terminate_.has_value(); }
  [[nodiscard]] const TerminateMessage& error_terminate() const { return error_terminate_; }
  // True between the first and the last segment of a message.
  [[nodiscard]] bool mid_message() const { return !std::holds_alternative<std::monostate>(current_); }
  [[nodiscard]] const TxCounters& counters() const { return counters_; }
  // The fatal end of the stream: forget the message under way.
  void abandon() { current_ = std::monostate{}; }

 private:
  struct RequestMessage {
    SendQueue::Ticket ticket = 0;
    std::uint32_t total = 0;
    std::uint32_t sent = 0;
    std::size_t sge = 0;  // next octet to send: piece and offset in it
    std::uint32_t sge_offset = 0;
    bool written = false;  // WriteImmediate: its Write is cut, the Immediate Data is not
  };
  struct ResponseMessage {
    InboundRead read;
    std::uint32_t sent = 0;
  };

  [[nodiscard]] bool start_next_message(std::size_t ord);
  void terminate_segment(Segment& s);
  void rtr_segment(Segment& s);
  void wake_segment(Segment& s);
  [[nodiscard]] Result<void> request_segment(RequestMessage& m, std::size_t mulpdu, Segment& s,
                                             std::vector<ddp::Pin>& payload);
  [[nodiscard]] Result<void> read_request_segment(const RequestMessage& m, Segment& s);
  [[nodiscard]] Result<void> invalidate_local(const RequestMessage& m);
  void immediate_segment(const RequestMessage& m, Segment& s);
  [[nodiscard]] Result<void> atomic_request_segment(const RequestMessage& m, Segment& s);
  [[nodiscard]] Result<void> atomic_response_segment(const InboundRead& read, Segment& s);
  [[nodiscard]] Result<void> response_segment(ResponseMessage& m, std::size_t mulpdu, Segment& s,
                                              std::vector<ddp::Pin>& payload);
  [[nodiscard]] Error local_error(SendQueue::Ticket ticket);
  void gather_inline(const SendWr& wr, const RequestMessage& m, std::uint32_t bytes, Segment& s,
                     std::vector<ddp::Pin>& payload);
  // Copies the next `bytes` of the message behind the header, or pins them. False when they are not registered (any
  // more).
  [[nodiscard]] bool gather(const SendWr& wr, RequestMessage& m, std::uint32_t bytes, Segment& s,
                            std::vector<ddp::Pin>& payload);

  ddp::StagTable& stags_;
  ddp::StreamKey who_;
  SendQueue& sends_;
  InboundReads& reads_;

  std::variant<std::monostate, RequestMessage, ResponseMessage> current_;
  bool response_turn_ = true;
  Msn send_msn_{}, read_msn_{};
  Msn atomic_msn_{};           // of the next Atomic Request's Response, and its Request Identifier
  Msn atomic_response_msn_{};  // of the next Atomic Response from here
  Rtr rtr_ = Rtr::kNone;
  bool wake_ = false;
  std::optional<TerminateMessage> terminate_;
  bool terminate_emitted_ = false;
  TerminateMessage error_terminate_;
  TxCounters counters_;
};

}  // namespace iwarp::rdmap
