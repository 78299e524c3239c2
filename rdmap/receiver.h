// Receiving half of RDMAP over DDP (RFC 5040, RFC 5041 s7): takes ULPDUs in the order sent, checks them, says where
// their payload belongs, and delivers. A segment passes through begin(), any number of place() or targets()+placed(),
// and end(). Payload may thus be copied from a staging buffer or received straight into its final place. Knows nothing
// of FPDUs. Not thread-safe.
//
// After any error the caller drops all further input (RFC 5041 s7.1) and owes the peer terminate_for(error).
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "iwarp/ddp/stag_table.h"
#include "iwarp/ddp/untagged_receiver.h"
#include "iwarp/rdmap/control.h"
#include "iwarp/rdmap/inbound_reads.h"
#include "iwarp/rdmap/receive_queue.h"
#include "iwarp/rdmap/send_queue.h"
#include "iwarp/rdmap/terminate_message.h"

namespace iwarp::rdmap {

// Octets and messages that arrived, by operation.
struct RxCounters {
  std::uint64_t sends = 0, send_bytes = 0;    // Sends of any kind, and their payload
  std::uint64_t writes = 0, write_bytes = 0;  // RDMA Writes, and their payload
  std::uint64_t read_requests = 0;            // the peer's RDMA Reads
  std::uint64_t read_response_bytes = 0;      // payload that answers this end's Reads
  std::uint64_t immediates = 0;               // Immediate Data, with and without solicited event
  std::uint64_t atomics = 0;                  // the peer's Atomic Requests
  std::uint64_t early = 0, early_bytes = 0;   // segments that were placed before others in front of them had come, and
                                              // their payload
};

class Receiver {
 public:
  Receiver(ddp::StagTable& stags, ddp::StreamKey who, ReceiveQueue& recvs, SendQueue& sends, InboundReads& reads,
           Extensions known = Extensions::kNone)
      : stags_(stags), who_(who), recvs_(recvs), sends_(sends), reads_(reads), known_(known) {}

  // How many octets of a ULPDU begin() wants to see: its headers. Precondition: !ulpdu.empty().
  [[nodiscard]] static std::size_t head_bytes(ConstBytes ulpdu) { return ddp::expected_header_size(ulpdu); }

  // Checks a segment of which `ulpdu_head` (at least its DDP header, or all of it if shorter) is known and whose ULPDU
  // is `ulpdu_bytes` long. The first of a message may take a Receive that is shared: throws std::bad_alloc then.
  [[nodiscard]] Result<void> begin(ConstBytes ulpdu_head, std::size_t ulpdu_bytes);

  // Whether that segment was refused for nothing but this: its message has no Receive. Nothing has changed then, and it
  // may be given to begin() again.
  [[nodiscard]] bool lacks_receive() const { return lacks_receive_; }

  // The segment under way: octets of its DDP header, of its payload, and of payload not yet placed.
  [[nodiscard]] std::size_t header_bytes() const { return header_bytes_; }
  [[nodiscard]] std::size_t payload_remaining() const { return payload_bytes_ - placed_; }
  // Whether targets() works for it (Write, Read Response and Sends; not what RDMAP itself takes).
  [[nodiscard]] bool direct() const {
    return opcode_ == Opcode::kWrite || opcode_ == Opcode::kReadResponse || is_send(opcode_);
  }

  // Appends pins of all memory where the payload_remaining() octets belong, in order. The memory is checked anew at
  // every call, since it may have been revoked since begin(). Nothing is appended on error.
  [[nodiscard]] Result<void> targets(std::vector<ddp::Pin>& out) const;
  // `n` octets were received into what targets() gave.
  void placed(std::size_t n) { placed_ += n; }
  // Copies payload into place. Call let_go() behind the last of a batch.
  [[nodiscard]] Result<void> place(ConstBytes payload);
  // Lets go of the memory that payload was copied to.
  void let_go() { held_.release(); }

  // The whole payload is placed: delivers. Completes a receive or a Read, queues a Read Request, or stores a Terminate.
  [[nodiscard]] Result<void> end();

  // Of a whole segment that came while others in front of it are missing: appends pins of the memory where its payload
  // belongs, in order, if that is known and nothing is wrong with it so far. Else false, and nothing is appended: what
  // is wrong shows when it is given to begin() in its place in the order, which judges it anew in any case. Throws
  // std::bad_alloc; what it had appended stays then.
  [[nodiscard]] bool early_targets(ConstBytes ulpdu, std::vector<ddp::Pin>& out) const;
  // So much of one was copied to what that gave.
  void placed_early(std::size_t payload_bytes) {
    ++counters_.early;
    counters_.early_bytes += payload_bytes;
  }

  // The Terminate owed to the peer for an error that the calls above gave for the present segment.
  [[nodiscard]] TerminateMessage terminate_for(const Error& error) const;
  // The Terminate that the peer sent. Set once.
  [[nodiscard]] const std::optional<TerminateMessage>& peer_terminate() const { return peer_terminate_; }

  // The initiator's RTR was a zero-length Read: its Response precedes those of the send queue's Reads (RFC 6581 s9.2).
  void expect_rtr_response() { rtr_response_due_ = true; }
  [[nodiscard]] bool rtr_response_due() const { return rtr_response_due_; }
  // The RTR agreed on is a zero-length Send. If that is what the first message is, it takes no receive and completes
  // nothing: establishment leaves the queues of the application alone (RFC 6581 s4.4.2; s9.2 does not say).
  void expect_rtr_send() { rtr_send_due_ = true; }
  [[nodiscard]] const RxCounters& counters() const { return counters_; }
  // Which messages it knows from here on.
  void set_known(Extensions known) { known_ = known; }

 private:
  static constexpr std::size_t kHeadKept = InboundRead::kUlpduBytes;
  // Room for Terminates with trailing zeros beyond the 52 octets that RFC 5040 s5.4 asks for.
  static constexpr std::size_t kTerminateRoom = 128;

  [[nodiscard]] Result<void> begin_write(const ddp::TaggedHeader& h) const;
  [[nodiscard]] Result<void> begin_read_response(const ddp::TaggedHeader& h) const;
  [[nodiscard]] Result<void> begin_untagged(const ddp::UntaggedHeader& h);
  // Pins the memory for the rest of a Write or Read Response.
  [[nodiscard]] Result<void> tagged_target(const ddp::TaggedHeader& h, ddp::Pin& out) const;
  // Calls `use` with each piece of the receive that the rest of a Send belongs to (STag, IOVA, octets), until it
  // gives false, which is an error.
  template <class Use>
  [[nodiscard]] Result<void> each_piece(const ddp::UntaggedHeader& h, const Use& use) const;
  [[nodiscard]] Result<void> place_send(const ddp::UntaggedHeader& h, ConstBytes payload);
  // Whether it is known where the payload of a segment that is early belongs; then its pins.
  [[nodiscard]] bool early_write(const ddp::TaggedHeader& h, std::size_t bytes, std::vector<ddp::Pin>& out) const;
  [[nodiscard]] bool early_read_response(const ddp::TaggedHeader& h, std::size_t bytes,
                                         std::vector<ddp::Pin>& out) const;
  [[nodiscard]] bool early_send(const ddp::UntaggedHeader& h, std::size_t bytes, std::vector<ddp::Pin>& out) const;
  void end_write(const ddp::TaggedHeader& h);
  [[nodiscard]] Result<void> end_send(const ddp::UntaggedHeader& h);
  [[nodiscard]] Result<void> end_immediate(const ddp::UntaggedHeader& h);
  [[nodiscard]] Result<void> end_read_request(const ddp::UntaggedHeader& h);
  void end_read_response(const ddp::TaggedHeader& h);
  [[nodiscard]] Result<void> end_atomic_request(const ddp::UntaggedHeader& h);
  [[nodiscard]] Result<void> end_atomic_response(const ddp::UntaggedHeader& h);
  // Queues a Request of queue 1, for its Response in turn.
  void push_inbound(const ddp::UntaggedHeader& h, InboundRead& read);
  // Where the payload of a message goes that RDMAP itself takes.
  [[nodiscard]] std::byte* own_buffer();

  ddp::StagTable& stags_;
  ddp::StreamKey who_;
  ReceiveQueue& recvs_;
  SendQueue& sends_;
  InboundReads& reads_;
  Extensions known_;

  ddp::UntaggedReceiver send_rx_, read_request_rx_, terminate_rx_, atomic_response_rx_;
  std::array<std::byte, kHeadKept> head_{};
  std::size_t head_kept_ = 0;
  std::size_t ulpdu_bytes_ = 0;
  ddp::SegmentHeader header_;
  Opcode opcode_ = Opcode::kWrite;
  std::size_t header_bytes_ = 0;
  std::size_t payload_bytes_ = 0;
  std::size_t placed_ = 0;
  std::array<std::byte, kTerminateRoom> internal_{};  // payload of the Read or Atomic Request or Terminate
                                                      // under way
  std::array<std::byte, kImmediateBytes> immediate_{};
  std::array<std::byte, AtomicResponse::kSize> atomic_response_{};
  bool immediate_begun_ = false;  // the message under way on queue 0 is Immediate Data
  // Octets of the last Write since the last message of queue 0, and whether that Write is whole.
  std::uint64_t written_ = 0;
  bool write_is_whole_ = false;
  ddp::HeldRegion held_;
  bool rtr_response_due_ = false;
  bool rtr_send_due_ = false;
  bool is_rtr_ = false;  // the present segment is the RTR by Send
  bool lacks_receive_ = false;
  std::optional<TerminateMessage> peer_terminate_;
  RxCounters counters_;
};

}  // namespace iwarp::rdmap
