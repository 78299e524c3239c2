// Life of a session of either front as data: which input moves it where. An absent pair means that the input no longer
// matters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace iwarp::gateway {

enum class Life : std::uint8_t {
  kOpening,  // the RDMA connection comes about
  kServing,
  kDraining,    // no more Calls: it ends once those that are out are answered
  kDelivering,  // the TCP server has closed: its RDMA client gets what is complete
  kClosing,     // the RDMA connection was told to end
  kRest,        // the RDMA connection has ended: the TCP client gets what is complete
  kOver,        // nothing is held any more
};

enum class LifeInput : std::uint8_t {
  kEstablished,
  kNoMoreCalls,  // the gateway shuts down, or the TCP client has ended its sending
  kServerLeft,   // of an RDMA front
  kClose,        // the RDMA connection is told to end
  kEnded,        // it has, and a TCP client is left
  kReleased,
};

inline constexpr std::size_t kLives = 7;
inline constexpr std::size_t kLifeInputs = 6;

[[nodiscard]] std::optional<Life> next(Life from, LifeInput on);
[[nodiscard]] const char* name(Life life);
[[nodiscard]] const char* name(LifeInput input);

// True when it moved.
inline bool step(Life& life, LifeInput on) {
  const auto to = next(life, on);
  if (to) life = *to;
  return to.has_value();
}

}  // namespace iwarp::gateway
