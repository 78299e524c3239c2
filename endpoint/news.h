// What an Endpoint has heard from its peer and said to its owner so far, as data, and what it says next. Each of these
// states only moves on.
#pragma once

#include <cstdint>

#include "iwarp/endpoint/phase.h"

namespace iwarp::endpoint {

enum class Heard : std::uint8_t {
  kNothing,
  kParameters,  // startup agreed on them
  kSegment,     // a valid one, as far as the lower layer can tell
};

// By poll_event().
enum class Told : std::uint8_t { kNothing, kEstablished, kEnded };

enum class News : std::uint8_t { kNone, kEstablished, kEnded };

// How it ends, or has ended.
enum class Ending : std::uint8_t {
  kError,    // with a Terminate, the peer's or ours, or by leave(); nothing is decided before an end
  kOrderly,  // behind all that was posted: input is still served until the peer's end
  kAbrupt,   // at once: whatever the lower layer holds back is lost
};

// `opener`: the first segment that makes it established (RFC 6581 s3: a Responder's, in peer-to-peer mode), or only the
// parameters.
[[nodiscard]] News next(Told told, Heard heard, Heard opener, Phase phase);

}  // namespace iwarp::endpoint
