// MPA startup, both roles: exchanges the Request and Reply frames of RFC 5044 s7.1 with the enhanced connection
// establishment of RFC 6581, and says what was agreed. It ends where Full Operation begins: FPDUs, the RTR message and
// Terminates are the stream layer's. No sockets, clock, threads or randomness.
//
// Driving contract: after construction and after any input (1) send tx_bytes() and report with tx_commit() until empty,
// (2) drain poll_event(), (3) re-read deadline(), (4) give received bytes to rx(). `now` never goes backwards. Inputs
// after the end (an Established, Rejected or Failed event is on its way) change nothing. Private data in events points
// into the machine and is valid as long as it lives, also after a move. Not thread-safe.
#pragma once

#include <optional>
#include <variant>
#include <vector>

#include "iwarp/base/bytes.h"
#include "iwarp/base/error.h"
#include "iwarp/base/result.h"
#include "iwarp/base/time.h"
#include "iwarp/mpa/fallback.h"
#include "iwarp/mpa/policy.h"
#include "iwarp/mpa/startup_collector.h"
#include "iwarp/mpa/startup_frame.h"
#include "iwarp/mpa/state_tables.h"

namespace iwarp::mpa {

// Full Operation begins: every further octet, both ways, belongs to FPDUs.
struct Established {
  Negotiated negotiated;      // what both ends have agreed on
  ConstBytes private_data{};  // of the peer, without the enhanced data
  // Initiator: this zero-length message leaves before any other FPDU. Responder: always kNone.
  Rtr rtr_to_send = Rtr::kNone;
};

// Initiator: Reply with R=1. MPA is over, but TCP stays open and belongs to the application (RFC 5044 s7.1.2 rule 3).
// Responder: our own reject() has left.
struct Rejected {
  // IRD and ORD of a rejecting peer; its ORD may exceed our IRD and then says what it needs.
  std::optional<EnhancedData> enhanced{};
  ConstBytes private_data{};  // of the peer, without the enhanced data; empty for a Responder
};

// Startup is over. What the caller owes: send what is left in tx_bytes() (a Responder's Reply with R=1); if
// error.tell_peer is set (only an Initiator, 2/0/6 or 2/0/7) send that Terminate in an FPDU, framed as `negotiated`
// says; then close TCP.
struct Failed {
  Error error;                             // why
  Fallback fallback = Fallback::kNone;     // to be asked for on a new TCP connection; kNone: do not try again
  std::optional<Negotiated> negotiated{};  // set whenever error.tell_peer is
};

// Responder: a valid Request waits for accept() or reject().
struct RequestReceived {
  ConstBytes private_data{};   // of the ULP, without the enhanced data
  std::uint16_t peer_ird = 0;  // as received, 0x3FFF included; 0 if the Request is not enhanced
  std::uint16_t peer_ord = 0;  // likewise
  StartupFrame request{};      // all of it, flags included
};

// The side that has connected: sends the Request and judges the Reply.
class Initiator {
 public:
  using Event = std::variant<Established, Rejected, Failed>;  // what poll_event() gives

  // Queues the Request, one contiguous frame (an Intel peer wants it in one segment: write it with one call, and
  // nothing behind it). `private_data` is copied; more than kMaxSendPrivateDataBytes, or an invalid policy, ends in
  // Failed{kInvalidArgument} with nothing sent.
  Initiator(const Policy& policy, ConstBytes private_data, TimePoint now);
  // Movable only: a copy's events would point into the original.
  Initiator(Initiator&&) = default;
  // As the constructor.
  Initiator& operator=(Initiator&&) = default;

  // What to send next, valid until the next non-const call. Empty: nothing.
  [[nodiscard]] ConstBytes tx_bytes() const;
  // `n` octets of tx_bytes() were sent.
  void tx_commit(std::size_t n);
  // Received bytes. Returns how many belonged to the Reply; the rest are the first bytes of Full Operation and stay
  // with the caller.
  [[nodiscard]] std::size_t rx(ConstBytes bytes, TimePoint now);
  // The peer has ended the connection: FIN, or RST if `reset`.
  void rx_end(bool reset);
  // When on_deadline() is wanted; nullopt: never, unless an input changes it.
  [[nodiscard]] std::optional<TimePoint> deadline() const;
  // The time has come: Failed{kStartupTimeout}. Does nothing before deadline().
  void on_deadline(TimePoint now);
  // Oldest undelivered event: one in the whole life of an Initiator.
  [[nodiscard]] std::optional<Event> poll_event();

  // Where it is in its table (state_tables.h).
  [[nodiscard]] InitiatorState state() const { return state_; }
  // Whether its members suit its state: for tests and assertions.
  [[nodiscard]] bool is_consistent() const;

 private:
  void step(InitiatorInput on);
  void fail(InitiatorInput on, const Error& error);
  void on_reply(const StartupFrame& reply);
  [[nodiscard]] Result<void> agree(const StartupFrame& reply, Negotiated& out) const;

  Policy policy_;
  InitiatorState state_ = InitiatorState::kWaitReply;
  TimePoint deadline_;
  StartupFrame request_;
  std::vector<std::byte> tx_;
  std::size_t tx_sent_ = 0;
  StartupCollector rx_;
  std::optional<Event> event_;
};

// The side that has accepted: judges the Request, and sends the Reply that the application decides on.
class Responder {
 public:
  using Event = std::variant<RequestReceived, Established, Rejected, Failed>;  // what poll_event() gives

  // Waits for the Request from `now` on, Policy::startup_timeout at most. An invalid policy ends in
  // Failed{kInvalidArgument}.
  Responder(const Policy& policy, TimePoint now);
  // Movable only: a copy's events would point into the original.
  Responder(Responder&&) = default;
  // As the constructor.
  Responder& operator=(Responder&&) = default;

  // What to send next, valid until the next non-const call. Empty: nothing.
  [[nodiscard]] ConstBytes tx_bytes() const;
  // `n` octets of tx_bytes() were sent.
  void tx_commit(std::size_t n);
  // Received bytes. Octets behind the Request are a malformed start, and end in Failed, until the application has
  // decided: nobody may send before the Reply (RFC 5044 s7.1.1; siw does the same). Once accept() was called the Reply
  // may be on its way while the driver has not reported it yet, and what comes in may be an honest first FPDU: it is
  // not consumed, and stays with the caller until Established. Returns the bytes consumed.
  [[nodiscard]] std::size_t rx(ConstBytes bytes, TimePoint now);
  // The peer has ended the connection: FIN, or RST if `reset`.
  void rx_end(bool reset);
  // Only the wait for the Request has a deadline here. How long the application may think, and how long to wait for the
  // Reply to leave and for the first FPDU, is the caller's to limit.
  [[nodiscard]] std::optional<TimePoint> deadline() const;
  // The time has come: Failed{kStartupTimeout}. Does nothing before deadline().
  void on_deadline(TimePoint now);
  // Oldest undelivered event; nullopt: there is none.
  [[nodiscard]] std::optional<Event> poll_event();

  // The application's decision on RequestReceived. `ird` and `ord` are what this side can do (0..16382); both are
  // adapted to the Request if that is enhanced: ORD lowered to the peer's IRD, IRD raised to the peer's ORD up to
  // Policy::max_ird. `told`: the peer's IRD and ORD (0..16382) as its application has them in its private data: they
  // count where the Request leaves these open (revision 1, or 0x3FFF). Established follows when the Reply has been
  // handed to TCP, so before any FPDU can be read; be ready to receive then, and send no FPDU before one has come in.
  // kInvalidArgument: no Request waits (any more), or an argument is out of range; nothing has changed then.
  [[nodiscard]] Result<void> accept(std::uint16_t ird, std::uint16_t ord, ConstBytes private_data,
                                    const std::optional<enhanced::Depths>& told = std::nullopt);
  // Answers with R=1; Rejected follows when it has left, and TCP stays open for the application (RFC 5044 s7.1.2 rule
  // 2). `required_ord`: the ORD that the Reply states, if the peer's IRD is too small for the application (RFC 6581
  // s9.1).
  [[nodiscard]] Result<void> reject(ConstBytes private_data, std::optional<std::uint16_t> required_ord = std::nullopt);

  // Where it is in its table (state_tables.h).
  [[nodiscard]] ResponderState state() const { return state_; }
  // Whether its members suit its state: for tests and assertions.
  [[nodiscard]] bool is_consistent() const;

 private:
  void step(ResponderInput on);
  void fail(ResponderInput on, const Error& error);
  void on_request();
  void refuse(const Error& error, std::uint8_t revision);
  [[nodiscard]] StartupFrame answer(bool reject, std::uint16_t ird, std::uint16_t ord) const;
  void queue_reply(const StartupFrame& reply);

  Policy policy_;
  ResponderState state_ = ResponderState::kWaitRequest;
  TimePoint deadline_;
  StartupFrame request_;
  Negotiated negotiated_;
  std::vector<std::byte> tx_;
  std::size_t tx_sent_ = 0;
  StartupCollector rx_;
  std::vector<Event> events_;
};

}  // namespace iwarp::mpa
