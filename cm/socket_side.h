// One direction of a connection's socket, reading or writing, as data: whether the next call may move octets, and
// whether the reactor has been asked to tell. An absent pair changes nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace iwarp::cm {

enum class Side : std::uint8_t {
  kReady,       // the next call may move octets, or nothing is wanted
  kReadyArmed,  // the same, though the reactor has still to tell of an earlier wait
  kDry,         // the last call moved less than it was asked to: empty, or full
  kDryArmed,    // and the reactor will tell when there is more
};
enum class SideInput : std::uint8_t {
  kWhole,  // all that was asked for has moved, or the core wants nothing
  kShort,  // less than that, or nothing
  kArm,    // the reactor is asked
  kFired,  // the reactor tells
};

inline constexpr std::size_t kSides = 4, kSideInputs = 4;

[[nodiscard]] std::optional<Side> next(Side from, SideInput on);
[[nodiscard]] const char* name(Side side);
[[nodiscard]] const char* name(SideInput input);

}  // namespace iwarp::cm
