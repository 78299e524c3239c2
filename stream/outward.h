// What a connection core has heard from its peer and said to its owner so far, as data, and what it says next. Each of
// these states only moves on.
#pragma once

#include <cstdint>

#include "iwarp/stream/phase.h"

namespace iwarp::stream {

enum class Heard : std::uint8_t {
  kNothing,
  kParameters,  // startup agreed on them
  kFpdu,        // a valid one
};

// By poll_event().
enum class Told : std::uint8_t { kNothing, kEstablished, kDisconnected };

// By link_action().
enum class Link : std::uint8_t { kOpen, kHalfClosed, kReleased };

enum class Ending : std::uint8_t {
  kError,    // with a Terminate, the peer's or ours; nothing is decided before an end
  kOrderly,  // with FIN behind all that was posted: input is still served
  kReset,    // with RST
};

enum class News : std::uint8_t { kNone, kEstablished, kDisconnected };

// What the driver must do with the socket, once each.
enum class LinkAction : std::uint8_t {
  kNone,
  kShutdownWrite,  // everything is sent: half-close
  kClose,          // release the socket; TCP has been ended in order
  kReset,          // release the socket with RST
};

// `opener`: the first FPDU that makes it established (RFC 6581 s3: a Responder's, in peer-to-peer mode), or only the
// parameters.
[[nodiscard]] News next(Told told, Heard heard, Heard opener, Phase phase);
// `unsent`: something has still to go out before a FIN.
[[nodiscard]] LinkAction next(Link link, Phase phase, Ending ending, bool unsent);

}  // namespace iwarp::stream
