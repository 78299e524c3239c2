// How payload is copied into its place.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>

#include "iwarp/base/bytes.h"

namespace iwarp::rdmap {

// As many octets as both have. The last ones are stored last, and in one piece: programs that watch memory for them
// look at the rest then. The C library stores the first ones last.
inline void copy_forwards(MutBytes to, ConstBytes from) {
  constexpr std::size_t kWord = 8;
  std::size_t n = std::min(to.size(), from.size());
  if (n > 2 * kWord) {
    n -= kWord;
    std::memcpy(to.data(), from.data(), n);
    std::atomic_thread_fence(std::memory_order_release);
    to = to.subspan(n);
    from = from.subspan(n);
    n = kWord;
  }
  std::memcpy(to.data(), from.data(), n);
}

}  // namespace iwarp::rdmap
