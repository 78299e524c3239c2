#include "iwarp/sctp/state_tables.h"

#include <array>

namespace iwarp::sctp {
namespace {

using S = SessionState;
using I = SessionInput;

struct Row {
  S from;
  I on;
  S to;
  Sends sends = Sends::kNothing;
};

constexpr Row kActive[] = {
    // Accepted: RFC 5043 s6.2. Rejected: s6.3. Terminated in answer: s6.4, and nothing follows. req: RFC6581-7-4
    {S::kInitiating, I::kAccepted, S::kOpen},  // req: RFC5043-6.2-1, RFC5043-6.2-2, RFC6581-7-14
    {S::kInitiating, I::kNotSuited, S::kUnsuitable},
    {S::kInitiating, I::kWasRejected, S::kRejected},  // req: RFC5043-6.3-1, RFC5043-6.3-3, RFC6581-7-15
    {S::kInitiating, I::kTerminated, S::kClosed},     // req: RFC5043-5.2.3-9, RFC5043-6.4-4, RFC6581-7-16
    {S::kInitiating, I::kViolation, S::kFailing},     // req: RFC5043-6.2-8
    {S::kInitiating, I::kArrived, S::kInitiated},
    {S::kInitiating, I::kTerminate, S::kWithdrawing},  // req: RFC5043-6.6-1
    {S::kInitiating, I::kTimeout, S::kWithdrawing},
    {S::kInitiating, I::kLost, S::kLost},
    {S::kInitiated, I::kAccepted, S::kOpen},
    {S::kInitiated, I::kNotSuited, S::kUnsuitable},
    {S::kInitiated, I::kWasRejected, S::kRejected},
    {S::kInitiated, I::kTerminated, S::kClosed},
    {S::kInitiated, I::kViolation, S::kFailed, Sends::kTerminate},
    {S::kInitiated, I::kTerminate, S::kWithdrawn, Sends::kTerminate},
    {S::kInitiated, I::kTimeout, S::kWithdrawn, Sends::kTerminate},
    {S::kInitiated, I::kLost, S::kLost},
    // An answer tells that the Initiate has arrived. req: RFC5043-6.6-3
    {S::kWithdrawing, I::kArrived, S::kWithdrawn, Sends::kTerminate},
    {S::kWithdrawing, I::kAccepted, S::kTerminating, Sends::kTerminate},
    {S::kWithdrawing, I::kWasRejected, S::kClosed},
    {S::kWithdrawing, I::kTerminated, S::kClosed},
    {S::kWithdrawing, I::kViolation, S::kFailing},
    {S::kWithdrawing, I::kLost, S::kLost},
    {S::kWithdrawn, I::kAccepted, S::kTerminating},
    {S::kWithdrawn, I::kWasRejected, S::kClosed},
    {S::kWithdrawn, I::kTerminated, S::kClosed},
    {S::kWithdrawn, I::kViolation, S::kFailed},
    {S::kWithdrawn, I::kLost, S::kLost},
    // req: RFC6581-8-6
    {S::kUnsuitable, I::kSegment, S::kUnsuitable},
    {S::kUnsuitable, I::kTerminated, S::kClosed, Sends::kTerminate},
    {S::kUnsuitable, I::kViolation, S::kFailed, Sends::kTerminate},
    {S::kUnsuitable, I::kTerminate, S::kTerminating, Sends::kTerminate},
    {S::kUnsuitable, I::kLost, S::kLost},
};

// Neither role has more than the mandatory sequences. req: RFC5043-6.5-1
constexpr Row kPassive[] = {
    {S::kWaiting, I::kInitiate, S::kDeciding},
    {S::kWaiting, I::kViolation, S::kFailed, Sends::kTerminate},  // req: RFC5043-6.1-3
    {S::kWaiting, I::kLost, S::kLost},
    {S::kDeciding, I::kAccept, S::kAccepting, Sends::kAccept},
    {S::kDeciding, I::kReject, S::kRejected, Sends::kReject},       // req: RFC5043-6.3-1, RFC5043-6.3-4
    {S::kDeciding, I::kTerminate, S::kClosed, Sends::kTerminate},   // req: RFC5043-6.4-3, RFC5043-5.2.3-10
    {S::kDeciding, I::kTerminated, S::kClosed, Sends::kTerminate},  // withdrawn
    {S::kDeciding, I::kViolation, S::kFailed, Sends::kTerminate},
    {S::kDeciding, I::kLost, S::kLost},
    // Segments may follow the Accept at once, a Terminate may not. req: RFC5043-6.6-4, RFC5043-6.6-1, RFC6581-7-13
    {S::kAccepting, I::kSegment, S::kAccepting},
    {S::kAccepting, I::kArrived, S::kOpen},
    {S::kAccepting, I::kTerminate, S::kHeldBack},
    {S::kAccepting, I::kTerminated, S::kAnswering},  // it may have left before the Accept came, so it tells nothing
    {S::kAccepting, I::kViolation, S::kFailing},
    {S::kAccepting, I::kLost, S::kLost},
    {S::kHeldBack, I::kSegment, S::kHeldBack},
    {S::kHeldBack, I::kArrived, S::kTerminating, Sends::kTerminate},
    {S::kHeldBack, I::kTerminated, S::kAnswering},
    {S::kHeldBack, I::kViolation, S::kFailing},
    {S::kHeldBack, I::kLost, S::kLost},
    {S::kAnswering, I::kArrived, S::kClosed, Sends::kTerminate},
    {S::kAnswering, I::kLost, S::kLost},
};

constexpr Row kEither[] = {
    {S::kOpen, I::kSegment, S::kOpen},  // req: RFC5043-6.2-3
    // Answered, though a side that has sent its Terminate cannot count on it. req: RFC5043-6.2-4, RFC5043-6.2-5
    {S::kOpen, I::kTerminated, S::kClosed, Sends::kTerminate},
    {S::kOpen, I::kTerminate, S::kTerminating, Sends::kTerminate},  // req: RFC5043-6.2-5, RFC6581-7-12
    {S::kOpen, I::kViolation, S::kFailed, Sends::kTerminate},       // req: RFC5043-6.1-3
    {S::kOpen, I::kLost, S::kLost},                                 // req: RFC5043-11.3-1
    {S::kTerminating, I::kSegment, S::kTerminating},                // req: RFC5043-6.2-7
    {S::kTerminating, I::kTerminated, S::kClosed},
    {S::kTerminating, I::kViolation, S::kFailed},
    {S::kTerminating, I::kLost, S::kLost},
    {S::kFailing, I::kArrived, S::kFailed, Sends::kTerminate},
    {S::kFailing, I::kLost, S::kLost},
};

template <class Rows>
constexpr std::optional<SessionStep> find(const Rows& rows, S from, I on) {
  for (const Row& row : rows) {
    if (row.from == from && row.on == on) return SessionStep{row.to, row.sends};
  }
  return std::nullopt;
}

template <class Rows>
constexpr bool leads_out(const Rows& rows, S state) {
  for (const Row& row : rows) {
    if (row.from == state) return true;
  }
  return false;
}
static_assert(!find(kActive, S::kInitiating, I::kSegment), "nothing comes before the answer");
static_assert(!find(kPassive, S::kDeciding, I::kSegment), "segments of the active side come behind the Accept");

}  // namespace

std::optional<SessionStep> next(Role role, SessionState from, SessionInput on) {
  const auto own = role == Role::kActive ? find(kActive, from, on) : find(kPassive, from, on);
  return own ? own : find(kEither, from, on);
}

bool is_of(Role role, SessionState state) {
  if (leads_out(kActive, state)) return role == Role::kActive;
  if (leads_out(kPassive, state)) return role == Role::kPassive;
  return true;
}

bool is_over(SessionState state) {
  return !leads_out(kActive, state) && !leads_out(kPassive, state) && !leads_out(kEither, state);
}

const char* name(SessionState state) {
  static constexpr std::array<const char*, kSessionStates> kNames = {
      "Initiating", "Initiated", "Withdrawing", "Withdrawn", "Unsuitable", "Waiting",
      "Deciding",   "Accepting", "HeldBack",    "Answering", "Open",       "Terminating",
      "Failing",    "Closed",    "Rejected",    "Failed",    "Lost"};
  return kNames[static_cast<std::size_t>(state)];
}

const char* name(SessionInput input) {
  static constexpr std::array<const char*, kSessionInputs> kNames = {
      "Initiate", "Accepted", "NotSuited", "WasRejected", "Segment",   "Terminated", "Violation",
      "Arrived",  "Lost",     "Accept",    "Reject",      "Terminate", "Timeout"};
  return kNames[static_cast<std::size_t>(input)];
}

const char* name(Sends sends) {
  static constexpr std::array<const char*, 4> kNames = {"nothing", "Accept", "Reject", "Terminate"};
  return kNames[static_cast<std::size_t>(sends)];
}

}  // namespace iwarp::sctp
