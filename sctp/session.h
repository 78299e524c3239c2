// One end of a DDP Stream Session (RFC 5043 s6, RFC 6581 s7), active or passive: from the Initiate to the Terminates.
// It judges what the peer sends in the order of the DDP-SSN, says what is agreed, hands DDP Segments out in order, and
// makes the session control messages. It knows no SCTP, clock or thread: the driver moves messages and tells the time.
//
// Driving contract: after construction and after any input (1) give control() to SCTP and report with control_taken(),
// (2) drain poll_event(), before the next receive(), (3) re-read deadline(). Segments are the owner's: while
// may_send_segment() it puts next_ssn() in front of one and reports with segment_taken() that SCTP has taken it. All
// messages leave unordered. Not thread-safe.
#pragma once

#include <deque>
#include <optional>
#include <variant>
#include <vector>

#include "iwarp/base/error.h"
#include "iwarp/base/time.h"
#include "iwarp/enhanced/settlement.h"
#include "iwarp/sctp/session_control.h"
#include "iwarp/sctp/ssn_window.h"
#include "iwarp/sctp/state_tables.h"

namespace iwarp::sctp {

// What an end wants of its sessions.
struct SessionOptions {
  // Active: the Function Codes of RFC 6581, which settle IRD, ORD and the RTR. Passive: whether it knows them; plain
  // ones it takes either way. Default on. Off: an enhanced Initiate is answered with a Terminate, as by an end that has
  // RFC 5043 only.
  bool enhanced = true;
  // IRD, ORD and RTR, as for MPA (mpa/policy.h has the reasons), but for the connection model: over SCTP either side
  // may send first, so nothing needs the RTR of A=1, and the default is A=0. A peer that asks for it gets it.
  enhanced::Offer offer{.forms = {.send = false, .write = true, .read = true}, .depths = {32, 32}, .max_ird = 128};
  // Longest Private Data accepted, octets, enhanced data included. Higher than 512 counts as 512.
  std::size_t max_private_data_bytes = kMaxPrivateDataBytes;
  // Active: from construction to the peer's answer. Its application decides within it. Default 30 s: SCTP itself
  // delivers or tells of a lost peer. Lower breaks peers that decide slowly.
  std::chrono::milliseconds answer_timeout{30000};
  // How far ahead of the message that is due one may be (SsnWindow), 1..32767.
  std::uint16_t ahead = SsnWindow::kDefaultAhead;
};

// kInvalidArgument if the options contradict themselves.
[[nodiscard]] Result<void> validate(const SessionOptions& options);

class Session {
 public:
  // Passive: an Initiate waits for accept(), reject() or terminate().
  struct Requested {
    ConstBytes private_data{};                     // the ULP's
    std::optional<enhanced::EnhancedData> data{};  // of an enhanced Initiate
  };
  // Segments may go both ways. The active side's first message is the RTR if `settled` names one (RFC 6581 s9.2); the
  // passive side need not wait for it.
  struct Established {
    bool enhanced = false;                         // `settled` was negotiated
    enhanced::Settled settled{};                   // else the depths are those of the options
    std::optional<enhanced::EnhancedData> peer{};  // as received
    ConstBytes private_data{};                     // of the peer; empty on the passive side, which has had it
  };
  // Active: the peer's Reject, by its application, or by its Provider when no offered RTR form is any of `data`.
  struct Rejected {
    std::optional<enhanced::EnhancedData> data{};
    ConstBytes private_data{};  // the ULP's
  };
  // A DDP Segment, in order. The octets are those that were given to receive(), or kept since; `placed` more at its end
  // are in their place already (Message::placed).
  struct Delivered {
    ConstBytes segment{};
    std::size_t placed = 0;
  };
  // Nothing more is delivered. kPeerClosed: the peer's Terminate; kAborted: terminate() before there was a session. An
  // error with `tell_peer` set (only active, 2/0/6 or 2/0/7): may_send_segment() holds for an RDMAP Terminate; then
  // call terminate().
  struct Ended {
    Error error;
    // Active: a peer that answers an enhanced Initiate with a Terminate may know RFC 5043 only. A plain Initiate, in a
    // new session, may do.
    bool try_plain = false;
  };
  using Event = std::variant<Requested, Established, Rejected, Delivered, Ended>;  // what poll_event() gives

  // Active: makes the Initiate. `private_data` is copied; it has at most max_ulp_bytes() of the Initiate. `budget`
  // outlives this. Precondition: validate(options).
  Session(const SessionOptions& options, HoldBudget& budget, ConstBytes private_data, TimePoint now);
  // Passive: waits for the Initiate.
  Session(const SessionOptions& options, HoldBudget& budget);

  // A DDP Segment that has come before others that are in front of it.
  struct Early {
    ConstBytes segment{};  // of the message that was given
    std::uint64_t position =
        0;  // in the order of the DDP-SSN: how many messages are in front of it since the beginning
  };
  // Asked before receive(): the segment of a message that is early, if this session may have it delivered later. Who
  // knows where its payload belongs may place that at once, and gives receive() the rest (Message::placed), which is
  // all that is kept (RFC 5041 s5.3).
  [[nodiscard]] std::optional<Early> early(const Message& message) const;
  // A message of this stream has come. Its octets stay valid until the events are drained. Precondition: if some of it
  // is placed, early() gave it, and nothing was called since.
  void receive(const Message& message);
  // Of the messages of this end that SCTP has taken, the oldest `messages` have arrived (SACK, or SENDER_DRY for all).
  void arrived(std::size_t messages);
  // The association is gone.
  void lost(const Error& why);
  // When on_deadline() is wanted.
  [[nodiscard]] std::optional<TimePoint> deadline() const;
  // Does nothing before deadline().
  void on_deadline(TimePoint now);
  // Oldest undelivered event. What it points to is valid until the next call of poll_event() or receive().
  [[nodiscard]] std::optional<Event> poll_event();

  // The application's decision on Requested; Established follows. `depths`: what this side can do, adapted to an
  // enhanced Initiate. `told`: the peer's, as its application has them in its private data, where the Initiate leaves
  // them open. kInvalidArgument: no Initiate waits (any more), or out of range; nothing has changed then.
  [[nodiscard]] Result<void> accept(const enhanced::Depths& depths, ConstBytes private_data,
                                    const std::optional<enhanced::Depths>& told = std::nullopt);
  // `required_ord`: the ORD that an enhanced Reject states, if the peer's IRD is too small.
  [[nodiscard]] Result<void> reject(ConstBytes private_data, std::optional<std::uint16_t> required_ord = std::nullopt);
  // The end of this direction: no segment leaves any more. What the peer has sent before its own Terminate still comes,
  // and Ended with it. Before there was a session it is withdrawn, or refused without a word of the application (RFC
  // 5043 s6.4).
  void terminate();
  // As terminate() on an Initiate that waits, and the application has not heard of it: there is no Ended either.
  void refuse();

  // The session control message (PPID 17) to be given to SCTP next, with its DDP-SSN; empty: none. Valid until the next
  // non-const call.
  [[nodiscard]] ConstBytes control() const;
  // SCTP has taken it.
  void control_taken();
  // Whether a segment may be given to SCTP now.
  [[nodiscard]] bool may_send_segment() const;
  // The DDP-SSN of the next one.
  [[nodiscard]] DdpSsn next_ssn() const { return source_.next(); }
  // SCTP has taken it. Precondition: may_send_segment().
  void segment_taken();

  // Messages that SCTP has taken and that are not known to have arrived.
  [[nodiscard]] std::uint16_t under_way() const { return source_.under_way(); }
  // Its side of the session.
  [[nodiscard]] Role role() const { return role_; }
  // Where it is in its table.
  [[nodiscard]] SessionState state() const { return state_; }
  // Over, and nothing is left to be given to SCTP.
  [[nodiscard]] bool done() const { return is_over(state_) && control_.empty(); }
  // Done, and no message of either direction is under way: the stream may serve another session of this end's.
  [[nodiscard]] bool leaves_stream_free() const;
  // The peer may begin another session on this stream: this one is done, or has only the peer's Terminate to come, on
  // which nobody can count.
  [[nodiscard]] bool gives_way() const;
  // It has begun one: Ended, unless that was told. Precondition: gives_way(). The last input.
  void superseded();
  // Whether its members suit its state: for tests and assertions.
  [[nodiscard]] bool is_consistent() const;

 private:
  // False: an absent pair.
  bool step(SessionInput on);
  void violation(const Error& error);
  // Whether one that has come before others fits the state.
  [[nodiscard]] bool may_be_early(const Message& message) const;
  // The Accept has not left: no segment can be an answer to it.
  [[nodiscard]] bool accept_waits() const { return role_ == Role::kPassive && !arrived_ && !control_.empty(); }
  void end(const Error& error, bool try_plain = false);
  void handle(const Message& message);
  void on_control(const SessionControl& message);
  void on_initiate(const SessionControl& message);
  void on_accept(const SessionControl& message);
  void put(Function function, const std::optional<enhanced::EnhancedData>& data, ConstBytes private_data);
  [[nodiscard]] Result<void> check_answer(ConstBytes private_data) const;

  SessionOptions options_;
  Role role_;
  SessionState state_;
  bool enhanced_;              // of this session
  bool ended_ = false;         // Ended or Rejected was told: no further event
  bool peer_is_over_ = false;  // its last message has come
  bool arrived_ = false;       // the first message of this end
  std::optional<TimePoint> deadline_;
  std::optional<enhanced::EnhancedData> asked_;  // passive: the peer's
  SsnWindow window_;
  SsnSource source_;
  std::vector<std::byte> control_;
  std::deque<Event> events_;
};

}  // namespace iwarp::sctp
