#include "iwarp/endpoint/phase.h"

#include <array>

namespace iwarp::endpoint {
namespace {

struct Row {
  Phase from;
  Input on;
  Phase to;
};
using enum Phase;
constexpr std::array kRows = {
    Row{kIdle, Input::kStart, kStartup},
    Row{kIdle, Input::kAbort, kClosed},
    Row{kIdle, Input::kDisconnect, kClosed},

    Row{kStartup, Input::kNegotiated, kFull},
    Row{kStartup, Input::kStartupFailed, kClosed},
    Row{kStartup, Input::kStartupRetry, kIdle},
    Row{kStartup, Input::kError, kTerminating},  // req: RFC6581-9.1-18 RFC6581-9.2-19
    Row{kStartup, Input::kDisconnect, kClosed},
    Row{kStartup, Input::kPeerEnd, kClosed},
    Row{kStartup, Input::kLost, kClosed},
    Row{kStartup, Input::kTimeout, kClosed},
    Row{kStartup, Input::kAbort, kClosed},

    // req: RFC5040-7.1-2 RFC5040-6.2-1 RFC5040-6.2.1-1 RFC5040-7-1 RFC5040-7-2 RFC5041-3-10
    Row{kFull, Input::kError, kTerminating},
    Row{kFull, Input::kDisconnect, kDraining},
    Row{kFull, Input::kPeerTerminate, kEndWait},
    // RFC 5041 s6.2.1 would have us go on sending on a half-closed stream: neither verbs nor siw know such a state.
    // req: RFC5041-6.2.1-7
    Row{kFull, Input::kPeerEnd, kClosed},  // req: RFC5044-7.1.2-21
    Row{kFull, Input::kLost, kClosed},
    Row{kFull, Input::kTimeout, kClosed},
    Row{kFull, Input::kAbort, kClosed},
    Row{kFull, Input::kAbortUnheard, kLingering},
    Row{kFull, Input::kLeave, kEndWait},

    Row{kDraining, Input::kDrained, kEndWait},  // req: RFC5041-6.2.1-2 RFC5041-6.2-2
    Row{kDraining, Input::kError, kTerminating},
    Row{kDraining, Input::kPeerTerminate, kEndWait},
    Row{kDraining, Input::kPeerEnd, kClosed},
    Row{kDraining, Input::kLost, kClosed},
    Row{kDraining, Input::kTimeout, kClosed},
    Row{kDraining, Input::kAbort, kClosed},
    Row{kDraining, Input::kAbortUnheard, kLingering},
    Row{kDraining, Input::kLeave, kEndWait},

    Row{kTerminating, Input::kTerminateSent, kEndWait},  // req: RFC5040-6.2.1-4 RFC5040-7-4 RFC5041-3-14
    Row{kTerminating, Input::kPeerEnd, kClosed},
    Row{kTerminating, Input::kLost, kClosed},
    Row{kTerminating, Input::kTimeout, kClosed},
    Row{kTerminating, Input::kAbort, kClosed},
    Row{kTerminating, Input::kAbortUnheard, kLingering},

    Row{kEndWait, Input::kPeerEnd, kClosed},
    // req: RFC5040-6.2.1-3
    Row{kEndWait, Input::kLost, kClosed},
    Row{kEndWait, Input::kTimeout, kClosed},
    Row{kEndWait, Input::kAbort, kClosed},
    Row{kEndWait, Input::kAbortUnheard, kLingering},

    Row{kLingering, Input::kHeard, kClosed},
    Row{kLingering, Input::kPeerEnd, kClosed},
    Row{kLingering, Input::kLost, kClosed},
    Row{kLingering, Input::kTimeout, kClosed},
    Row{kLingering, Input::kAbort, kClosed},
};

}  // namespace

std::optional<Phase> next(Phase from, Input on) {
  for (const Row& r : kRows) {
    if (r.from == from && r.on == on) return r.to;
  }
  return std::nullopt;
}

const char* name(Phase phase) {
  constexpr std::array<const char*, kPhases> kNames = {"IDLE",        "STARTUP",  "FULL",      "DRAINING",
                                                       "TERMINATING", "END_WAIT", "LINGERING", "CLOSED"};
  return kNames[static_cast<std::size_t>(phase)];
}

const char* name(Input input) {
  constexpr std::array<const char*, kInputs> kNames = {
      "start",   "negotiated",     "startup failed", "startup retry", "error", "disconnect",
      "drained", "terminate sent", "peer terminate", "peer end",      "lost",  "timeout",
      "abort",   "abort unheard",  "peer heard",     "leave"};
  return kNames[static_cast<std::size_t>(input)];
}

}  // namespace iwarp::endpoint
