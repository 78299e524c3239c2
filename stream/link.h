// What becomes of the socket of a connection, as data: it follows from the life of the Endpoint. It only moves on.
#pragma once

#include <cstdint>

#include "iwarp/endpoint/news.h"

namespace iwarp::stream {

// By link_action().
enum class Link : std::uint8_t { kOpen, kHalfClosed, kReleased };

// What the driver must do with the socket, once each.
enum class LinkAction : std::uint8_t {
  kNone,
  kShutdownWrite,  // everything is sent: half-close
  kClose,          // release the socket; TCP has been ended in order
  kReset,          // release the socket with RST
};

// `unsent`: something has still to go out before a FIN.
[[nodiscard]] LinkAction next(Link link, endpoint::Phase phase, endpoint::Ending ending, bool unsent);

}  // namespace iwarp::stream
