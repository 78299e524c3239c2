// One end of an RDMAP stream (RFC 5040, RFC 5041, RFC 7306), whatever carries it: the queues of work requests, order,
// IRD and ORD, placement and delivery, errors that become Terminates, the drain before an orderly end and the flush of
// every end. It takes and gives DDP segments whole. It knows no lower layer: no MPA, no TCP, no startup frames.
//
// Two parties use it. Its owner, the application's queue pair, posts and polls. A *half* below it, which knows a lower
// layer (stream::Connection: MPA over TCP), makes all other calls; only those move phase(). Where there is no half, yet
// or any more, the owner may end() it. Like all cores it never blocks, never calls back and sees no socket, clock or
// thread. Not thread-safe.
//
// What a half owes (docs/DRIVING.md): the time first, with each of its inputs; then phase(), after any call that may
// have moved it. It obliges the half:
//   kTerminating  forget what has not begun to leave; the next segment is the Terminate, and the last
//   kEndWait      send nothing of this stream but its end, behind what has been given; kOrderly: go on receiving
//   kLingering    see abort_unheard()
//   kClosed       let the stream go: with kAbrupt at once, else behind what has been given
//
// The half's calls may throw std::bad_alloc (the owner's do not, nor end()). What a step has left half done then cannot
// be continued: the half gives up with end(Input::kAbort). What was delivered before is intact.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "iwarp/base/time.h"
#include "iwarp/endpoint/news.h"
#include "iwarp/endpoint/options.h"
#include "iwarp/endpoint/phase.h"
#include "iwarp/rdmap/receiver.h"
#include "iwarp/rdmap/transmitter.h"

namespace iwarp::endpoint {

// When an end may send, once the startup has succeeded.
enum class Opening : std::uint8_t {
  kAtOnce,
  kWhenHeard,  // not before the peer's first segment, a Terminate neither: a Responder of MPA
};

// What the startup has agreed on, as far as it matters here.
struct Terms {
  std::uint32_t ird = 0;                        // inbound Reads to admit at a time
  std::uint32_t ord = 0;                        // Reads to have outstanding at most
  rdmap::Rtr rtr = rdmap::Rtr::kNone;           // to send before anything else
  rdmap::Rtr rtr_to_come = rdmap::Rtr::kNone;   // what the peer's first segment is to be
  std::optional<TimePoint> first_segment_by{};  // set: the peer's first segment, due by then, is what establishes
};

// Error::why of an end that this side asked for with disconnect().
inline constexpr const char* kClosedHere = "closed by the local application";

// Full operation has begun; with Terms::first_segment_by: that segment has come.
struct Established {};

// The connection is over; the last event. All work requests have completed or are about to be polled as kFlushed.
struct Ended {
  Error reason;                                     // kPeerClosed and kAborted are the ordinary ends
  std::optional<rdmap::TerminateMessage> received;  // the peer's Terminate
  std::optional<rdmap::TerminateMessage> sent;      // ours
  bool was_established = false;                     // false: the attempt at a connection failed
};

using Event = std::variant<Established, Ended>;  // what poll_event() gives

// kInvalidArgument: 4 GiB or more.
[[nodiscard]] Result<void> check_receive(const rdmap::RecvWr& wr);

class Endpoint {
 public:
  using Segment = rdmap::Transmitter::Segment;  // one to send
  using Done = rdmap::Transmitter::Done;        // what has happened when it has left

  // `stags` must outlive the endpoint. Precondition: validate(options) is ok. `shared`: Receives that other endpoints
  // of the same Protection Domain draw from as well (rdmap::SharedReceives); it must outlive the endpoint, which takes
  // one when a message begins. Options::rq_depth counts for nothing then.
  Endpoint(ddp::StagTable& stags, ddp::StreamKey who, const Options& options, rdmap::ReceiveSource* shared = nullptr);
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  // --- The owner.
  // post_recv() is legal from construction on, post_send() before the connection is established waits for it. After the
  // end nothing is sent or received: a request is taken all the same, and completes with kFlushed behind what was
  // posted before, as in libibverbs. So does a post_send() after disconnect(); a Receive still gets what the peer sends
  // until its end. kQueueFull, kInvalidArgument (length of 4 GiB or more, Atomic without 8 octets of sink,
  // ReadInvalidate without one sink, inline data of more than Options::max_inline octets or of another operation than
  // Send and Write, an operation of RFC 7306 without the option), kResource (no memory for another request).
  [[nodiscard]] Result<void> post_send(const rdmap::SendWr& wr);
  // kInvalidArgument where post_send() would give it; what there is room for is not looked at.
  [[nodiscard]] Result<void> may_post(const rdmap::SendWr& wr) const;
  // Posts a receive; as above. kInvalidArgument also where Receives are shared.
  [[nodiscard]] Result<void> post_recv(const rdmap::RecvWr& wr);
  // A mark in the send queue, see rdmap::SendQueue::post_drain(). kQueueFull, kResource.
  [[nodiscard]] Result<void> post_drain(std::uint64_t wr_id);
  // What it was made with, and changed by set_extensions().
  [[nodiscard]] const Options& options() const { return options_; }
  // What the peer is known to understand, from here on, in place of Options::rfc7306 and send_immediate: for what both
  // ends agree on in the private data of the startup.
  void set_extensions(rdmap::Extensions known);
  // Requests of the send queue that were posted and not polled as completions.
  [[nodiscard]] std::size_t sends_posted() const { return sends_.posted(); }
  // Receives that have not completed; where they are shared, those taken of which the message has not come whole.
  [[nodiscard]] std::size_t receives_posted() const { return recvs_.posted(); }
  // Oldest completion of the send queue not yet taken; nullopt: there is none.
  [[nodiscard]] std::optional<rdmap::Completion> poll_send() { return sends_.poll(); }
  // A completion with `invalidated` names an STag that the peer revoked: the owner waits until it is quiescent before
  // it tells anybody.
  [[nodiscard]] std::optional<rdmap::Completion> poll_recv() { return recvs_.poll(); }

  // Where it is in its life.
  [[nodiscard]] Phase phase() const { return phase_; }
  // Whether Established was told, or is about to be.
  [[nodiscard]] bool was_established() const { return heard_ != Heard::kNothing && heard_ >= opener_; }
  // It takes no Receive any more; those that it took have completed.
  [[nodiscard]] bool done_receiving() const { return phase_ > Phase::kFull && !receiving() && !alone_; }
  // The peer has gone, and the queues do not know yet (Options::outlive_peer). The phase is kClosed.
  [[nodiscard]] bool alone() const { return alone_; }
  // Likewise, and what is posted now waits for give_up_peer().
  [[nodiscard]] bool waits_alone() const { return alone_ && !given_up_; }
  // Time enough has passed since: what is to be sent, now or later, fails (Options::outlive_peer). Does nothing unless
  // alone().
  void give_up_peer();
  // What was received so far.
  [[nodiscard]] const rdmap::RxCounters& rx_counters() const { return rx_.counters(); }
  [[nodiscard]] const rdmap::TxCounters& tx_counters() const { return tx_.counters(); }  // what was sent

  // --- For the half below: time.
  // Tells the time, first in each input. It never goes backwards.
  void at(TimePoint now) { now_ = now; }
  [[nodiscard]] TimePoint now() const { return now_; }
  // When on_deadline() is wanted; nullopt: never, unless an input changes it. The startup has no deadline here.
  [[nodiscard]] std::optional<TimePoint> deadline() const {
    return held_until_ && (!deadline_ || *held_until_ < *deadline_) ? held_until_ : deadline_;
  }
  // Does nothing before deadline().
  void on_deadline();

  // --- For the half below: life.
  // The startup begins. Precondition: phase() is kIdle.
  void start(Opening opening);
  // The startup has succeeded. A Read that was posted to a peer that admits none is a violation (RFC 6581 s9.3).
  void establish(const Terms& terms);
  // In full operation the application has settled what the startup left open (RFC 6581 s9.1): more inbound Reads, never
  // fewer, and another ORD. As establish().
  void settle(std::uint32_t ird, std::uint32_t ord);
  // The startup has failed, and the half may try another: kIdle again, with all that was posted.
  void retry_startup();
  // Orderly close: what was posted goes out first.
  void disconnect();
  // Whether nothing is left for the half to take before an orderly end: kDraining, and all that was posted has left.
  [[nodiscard]] bool drained() const;
  // drained(), and the peer may be told the end: kEndWait. Before that the half waits for whatever else it must.
  void finish();
  // An end: kStartupFailed, kPeerEnd, kLost, kTimeout (of the startup) or kAbort. The first cause stands.
  void end(Input how, const Error& reason);
  // An abort, of a peer that the half has to hear before it may let go: all work is flushed at once, and the half may
  // send what is left (a queued wake, a Terminate) until the peer is heard(), or the time is up. Does nothing where
  // next(phase(), Input::kAbortUnheard) does not.
  void abort_unheard(const Error& reason, TimePoint until);
  // An orderly end without the application: all work is flushed at once, nothing more is sent or placed, and the peer
  // gets our end behind what the lower layer has. Options::close_timeout bounds the wait for the peer's; then the lower
  // layer lets the stream go in order. An end that is under way goes on; before the startup has succeeded it is an
  // abort.
  void leave(const Error& reason);
  // Octets of full operation came, whatever they turn out to be.
  void heard() { step(Input::kHeard); }
  // The peer has broken a rule, or memory that was promised to it is gone: it is owed `terminate`, and the stream ends
  // (RFC 5040 s7.1, RFC 5041 s7.1). Where no Terminate may be sent it is an abort.
  void violation(const Error& error, const rdmap::TerminateMessage& terminate);

  // Why it ends; meaningful beyond kFull.
  [[nodiscard]] const Error& reason() const { return reason_; }
  // How it ends; meaningful from kEndWait on.
  [[nodiscard]] Ending ending() const { return ending_; }
  // Oldest event not yet taken; nullopt: there is none.
  [[nodiscard]] std::optional<Event> poll_event();

  // --- For the half below: segments received, in the order sent. What a call finds wrong becomes a violation() and
  // false; a half then drops all further input. (False is also a segment that has to wait: holding().)
  // Whether segments are taken at present.
  [[nodiscard]] bool receiving() const {
    // req: RFC5041-6.2.1-8
    // req: RFC5044-7.2-1
    return phase_ == Phase::kFull || phase_ == Phase::kDraining ||
           (phase_ == Phase::kEndWait && ending_ == Ending::kOrderly);
  }
  // A segment came that is valid as far as the lower layer can tell. True for the first.
  bool heard_segment() {
    if (heard_ == Heard::kSegment) [[likely]]
      return false;
    heard_ = Heard::kSegment;
    if (phase_ == Phase::kFull) deadline_.reset();
    return true;
  }
  [[nodiscard]] bool has_heard_segment() const { return heard_ == Heard::kSegment; }
  // A whole segment: placed, and delivered.
  void receive(ConstBytes ulpdu);
  // The segment that was given last waits for a Receive (Options::receive_wait), and none behind it may be given. The
  // half keeps it, and gives it again, from its beginning, when a Receive may have been posted, until this is false.
  [[nodiscard]] bool holding() const { return held_until_.has_value(); }
  // The peer's end has come, behind what waits (holding()): there is Options::close_timeout left for a Receive. With
  // Options::outlive_peer the wait is as long as before, and at its end that of the peer is heard: what waits is lost.
  void end_is_behind();
  // The half will give that segment again by itself, when it has come whole.
  void put_off() { held_until_.reset(); }
  // The same in steps, for one whose payload comes later: begin_segment() with its headers at least, then either
  // place() or targets() and placed(), until nothing remains, then end_segment(). See rdmap::Receiver.
  [[nodiscard]] bool begin_segment(ConstBytes ulpdu_head, std::size_t ulpdu_bytes) {
    if (const auto ok = rx_.begin(ulpdu_head, ulpdu_bytes); !ok) return not_begun(ok.error());
    if (held_until_) [[unlikely]]
      held_until_.reset();
    return true;
  }
  [[nodiscard]] bool place(ConstBytes payload) { return accept(rx_.place(payload)); }
  [[nodiscard]] bool targets(std::vector<ddp::Pin>& out) { return accept(rx_.targets(out)); }
  void placed(std::size_t n) { rx_.placed(n); }
  void end_segment();
  // Of the segment under way.
  [[nodiscard]] std::size_t header_bytes() const { return rx_.header_bytes(); }
  [[nodiscard]] std::size_t payload_remaining() const { return rx_.payload_remaining(); }
  [[nodiscard]] bool direct() const { return rx_.direct(); }
  // Behind the last segment of a batch: lets go of the memory that payload was copied to.
  void let_go() { rx_.let_go(); }

  // Of a segment that came before others that are to be received first: where its payload belongs, if that is known and
  // may be written to now (rdmap::Receiver::early_targets()). It is received like any other when those others were,
  // with what was copied there left out: begin_segment(), targets(), placed(), end_segment(). May throw
  // std::bad_alloc; `out` may have grown then, and nothing else has happened.
  [[nodiscard]] bool early_targets(ConstBytes ulpdu, std::vector<ddp::Pin>& out) const {
    return options_.place_early && receiving() && rx_.early_targets(ulpdu, out);
  }
  // It was copied there.
  void placed_early(std::size_t payload_bytes) { rx_.placed_early(payload_bytes); }

  // --- For the half below: segments to send.
  // Whether this end may send by now (Opening).
  [[nodiscard]] bool may_transmit() const { return opening_ == Opening::kAtOnce || heard_ == Heard::kSegment; }
  // Whether next_segment() would give one, or find a violation.
  [[nodiscard]] bool ready() const { return sending() && may_transmit() && tx_.ready(ord()); }
  // The next segment of at most `mulpdu` octets (rdmap::Transmitter::next()). False: there is none, or its memory is
  // gone, which was a violation(): phase() tells. Give the same Segment for all of a batch.
  [[nodiscard]] bool next_segment(std::size_t mulpdu, Segment& segment, std::vector<ddp::Pin>& payload);
  // All of a segment was handed to the lower layer.
  void sent(const Done& done);
  // The peer takes what is sent: the time that it has for an end starts again.
  void progress();
  // Between the first and the last segment of a message.
  [[nodiscard]] bool mid_message() const { return tx_.mid_message(); }
  // A zero-length RDMA Write between two messages, and none (rdmap::Transmitter::queue_wake()).
  void queue_wake() { tx_.queue_wake(); }
  void drop_wake() { tx_.drop_wake(); }

  // Whether its members suit its phase: for tests and assertions.
  [[nodiscard]] bool is_consistent() const;

 private:
  void step(Input on);
  void enter(Phase phase);
  void arm_close_timer();
  void admit_reads(std::uint32_t ird);
  void refuse_vain_reads();
  void flush();
  // Behind our end: what the peer still sends is dropped.
  void serve_no_more();
  void end_alone();
  [[nodiscard]] bool accept(const Result<void>& ok) {
    if (!ok) refuse(ok.error());
    return ok.ok();
  }
  void refuse(const Error& error);
  [[nodiscard]] bool not_begun(const Error& error);
  [[nodiscard]] bool sending() const {
    return phase_ == Phase::kFull || phase_ == Phase::kDraining || phase_ == Phase::kTerminating ||
           phase_ == Phase::kLingering;
  }
  [[nodiscard]] std::size_t ord() const {
    const std::size_t taken = rx_.rtr_response_due() ? 1 : 0;  // req: RFC6581-3-2 RFC6581-9.1-1
    return ord_ > taken ? ord_ - taken : 0;
  }

  Options options_;
  Phase phase_ = Phase::kIdle;
  Opening opening_ = Opening::kWhenHeard;
  Heard heard_ = Heard::kNothing;
  Heard opener_ = Heard::kParameters;
  Told told_ = Told::kNothing;
  Ending ending_ = Ending::kError;
  bool left_ = false;  // leave()
  bool alone_ = false, given_up_ = false;
  bool end_is_behind_ = false;  // the peer's
  std::size_t ord_ = 0;
  Error reason_ = make_error(Errc::kAborted);
  std::optional<rdmap::TerminateMessage> sent_terminate_;
  std::optional<TimePoint> deadline_;
  TimePoint drain_end_{};
  std::optional<TimePoint> held_until_;  // for want of a Receive
  TimePoint now_{};

  rdmap::SendQueue sends_;
  rdmap::ReceiveQueue recvs_;
  rdmap::InboundReads reads_{0};
  rdmap::Receiver rx_;
  rdmap::Transmitter tx_;
};

}  // namespace iwarp::endpoint
