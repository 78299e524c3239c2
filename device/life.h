// Life of a connection over a device as data: which input moves it where. An absent pair means that the input no longer
// matters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace iwarp::device {

enum class Life : std::uint8_t {
  kNew,
  kAddress,     // the address is resolved
  kRoute,       // the way to it
  kConnecting,  // the peer is asked
  kAccepting,   // the peer was accepted
  kUp,
  kFinishing,  // this end is to leave, and lets what was posted go out
  kLeaving,    // the peer is told; it answers
  kSuspect,    // the queue pair is in its error state, and nobody has said why yet
  kOver,
};

enum class LifeInput : std::uint8_t {
  kConnect,
  kAccept,
  kAddressResolved,
  kRouteResolved,
  kEstablished,
  kDisconnect,  // this end is to leave
  kAllSent,     // what was posted has completed
  kFlushed,     // what was posted comes back undone
  kPeerLeft,    // the event DISCONNECTED
  kEnd,         // anything that ends it at once: an error, a limit in time, abort(), the device is gone
};

inline constexpr std::size_t kLives = 10;
inline constexpr std::size_t kLifeInputs = 10;

[[nodiscard]] std::optional<Life> next(Life from, LifeInput on);
[[nodiscard]] const char* name(Life life);
[[nodiscard]] const char* name(LifeInput input);

}  // namespace iwarp::device
