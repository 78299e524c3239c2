// Life of a connection core as data: which input moves it where. An absent pair means that the input no longer matters.
#pragma once

#include <cstdint>
#include <optional>

namespace iwarp::stream {

// Where a connection is in its life.
enum class Phase : std::uint8_t {
  kIdle,         // not started: receives may be posted
  kStartup,      // MPA Request and Reply
  kFull,         // full operation
  kDraining,     // local disconnect(): what was posted before still goes out
  kTerminating,  // an error: our Terminate is on its way, input is dropped
  kFinWait,      // our FIN is due or sent, waiting for the peer's
  kLingering,    // local abort before the peer was heard: a last wake or our Terminate, and a moment for it, before RST
  kClosed,
};

// What may move it.
enum class Input : std::uint8_t {
  kStart,
  kNegotiated,     // startup succeeded
  kStartupFailed,  // startup failed and nothing is owed
  kStartupRetry,   // startup failed, and another Request on a new TCP connection may succeed
  kError,          // a violation, ours or the peer's: a Terminate is queued
  kDisconnect,     // local orderly close
  kDrained,        // nothing is left to send
  kTerminateSent,
  kPeerTerminate,
  kPeerFin,
  kPeerReset,
  kTimeout,
  kAbort,         // local abortive close, or an error after which no octet can be sent
  kAbortUnheard,  // local abortive close, and the peer must be heard first
  kHeard,         // the first octets of full operation came
};

inline constexpr std::size_t kPhases = 8;   // number of phases
inline constexpr std::size_t kInputs = 15;  // number of inputs

// The phase after that input; nullopt: the input no longer matters there.
[[nodiscard]] std::optional<Phase> next(Phase from, Input on);
// Its name, for logs and tests.
[[nodiscard]] const char* name(Phase phase);
[[nodiscard]] const char* name(Input input);

}  // namespace iwarp::stream
