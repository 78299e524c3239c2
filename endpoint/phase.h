// Life of an Endpoint as data: which input moves it where. An absent pair means that the input no longer matters. "The
// end" of a stream is whatever the lower layer has for it: FIN over TCP, a Session Terminate over SCTP.
#pragma once

#include <cstdint>
#include <optional>

namespace iwarp::endpoint {

// Where a connection is in its life.
enum class Phase : std::uint8_t {
  kIdle,         // not started: receives may be posted
  kStartup,      // the lower layer agrees with the peer on parameters
  kFull,         // full operation
  kDraining,     // local disconnect(): what was posted before still goes out
  kTerminating,  // an error: our Terminate is on its way, input is dropped
  kEndWait,      // our end is due or sent, waiting for the peer's
  kLingering,    // local abort before the peer was heard: a last wake or our Terminate, and a moment for it
  kClosed,
};

// What may move it.
enum class Input : std::uint8_t {
  kStart,
  kNegotiated,     // startup succeeded
  kStartupFailed,  // startup failed and nothing is owed
  kStartupRetry,   // startup failed, and another one may succeed
  kError,          // a violation, ours or the peer's: a Terminate is queued
  kDisconnect,     // local orderly close
  kDrained,        // nothing is left to send
  kTerminateSent,
  kPeerTerminate,
  kPeerEnd,  // the peer's end of the stream, in order
  kLost,     // the lower layer has lost the stream: reset, or no peer
  kTimeout,
  kAbort,         // local abortive close, or an error after which no octet can be sent
  kAbortUnheard,  // local abortive close, and the lower layer has to hear the peer first
  kHeard,         // it did
  kLeave,         // the application goes: what has not left yet is dropped, and our end follows what has
};

inline constexpr std::size_t kPhases = 8;   // number of phases
inline constexpr std::size_t kInputs = 16;  // number of inputs

// The phase after that input; nullopt: the input no longer matters there.
[[nodiscard]] std::optional<Phase> next(Phase from, Input on);
// Its name, for logs and tests.
[[nodiscard]] const char* name(Phase phase);
[[nodiscard]] const char* name(Input input);

}  // namespace iwarp::endpoint
