// The life of a DDP Stream Session as data, for either role: which input moves it where, and what it sends then (RFC
// 5043 s6, RFC 6581 s7). An absent pair of something that the peer has sent means that it fits no legal sequence: the
// session makes kViolation of it. Any other absent pair no longer matters in that state.
// tests/vectors/sctp/*.states.txt hold the whole matrices for review.
//
// "Arrived": the first message of this end, its Initiate or Accept, is known to have arrived. No further control
// message leaves before, as it could overtake the first (RFC 5043 s6.6).
#pragma once

#include <cstdint>
#include <optional>

namespace iwarp::sctp {

// Of a session, not of the SCTP association: the active side has sent the Initiate.
enum class Role : std::uint8_t { kActive, kPassive };

enum class SessionState : std::uint8_t {
  // --- active
  kInitiating,   // Initiate sent
  kInitiated,    // and arrived
  kWithdrawing,  // ended here before there was an answer; the Terminate waits for the Initiate to arrive
  kWithdrawn,    // and is sent
  kUnsuitable,   // accepted in a way that does not suit: an RDMAP Terminate may leave, then this end terminates
  // --- passive
  kWaiting,    // for the Initiate
  kDeciding,   // the Initiate is there, the decision is not
  kAccepting,  // Accept sent: segments may follow it
  kHeldBack,   // ended here; the Terminate waits for the Accept to arrive
  kAnswering,  // ended by the peer; the Terminate waits for the Accept to arrive
  // --- either
  kOpen,         // segments go both ways
  kTerminating,  // Terminate sent; what the peer has sent before its own still comes
  kFailing,  // the peer broke the rules: nothing is taken any more, the Terminate waits for the first message to arrive
  kClosed,   // over: both ends know
  kRejected,  // over: by a Reject
  kFailed,    // over: the peer broke the rules
  kLost,      // over: so is the association
};

enum class SessionInput : std::uint8_t {
  // --- from the peer, in the order of the DDP-SSN
  kInitiate,
  kAccepted,     // Accept that suits
  kNotSuited,    // Accept of right form, but no common ground in IRD, RTR or model
  kWasRejected,  // Reject
  kSegment,      // a DDP Segment
  kTerminated,   // Terminate
  kViolation,    // what fits no legal sequence
  // --- from SCTP
  kArrived,  // the first message of this end is known to have arrived
  kLost,     // the association is gone
  // --- from here
  kAccept,     // by the application
  kReject,     // by the application, or by the Provider for want of a common RTR
  kTerminate,  // by the application, or by the Provider for want of room
  kTimeout,    // nobody has answered the Initiate
};

// What a step puts out.
enum class Sends : std::uint8_t { kNothing, kAccept, kReject, kTerminate };

inline constexpr std::size_t kSessionStates = 17;
inline constexpr std::size_t kSessionInputs = 13;

struct SessionStep {
  SessionState to;
  Sends sends;
};

// nullopt: see above.
[[nodiscard]] std::optional<SessionStep> next(Role role, SessionState from, SessionInput on);
// Whether a session of that role can be in that state at all.
[[nodiscard]] bool is_of(Role role, SessionState state);
// Nothing leads out of it.
[[nodiscard]] bool is_over(SessionState state);

[[nodiscard]] const char* name(SessionState state);
[[nodiscard]] const char* name(SessionInput input);
[[nodiscard]] const char* name(Sends sends);

}  // namespace iwarp::sctp
