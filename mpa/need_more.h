// The third outcome of every stream decoder of this layer, beside a frame and an Error.
#pragma once

#include <cstddef>

namespace iwarp::mpa {

struct NeedMore {
  // Total bytes, counted from the start of the frame being decoded, that must be present before decoding can make
  // progress. Always more than were given, so a driver that waits for them never spins.
  std::size_t at_least = 0;

  friend constexpr bool operator==(const NeedMore&, const NeedMore&) = default;
};

}  // namespace iwarp::mpa
