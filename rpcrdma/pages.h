// Memory straight from the system, in whole pages: zero at first, and no page costs anything before it is touched.
// Internal to rpcrdma, rpc and gateway.
#pragma once

#include <cstddef>

#include "iwarp/base/bytes.h"

namespace iwarp::rpcrdma {

inline constexpr std::size_t kPageBytes = 4096;

// `bytes` octets, a multiple of kPageBytes, all zero. Empty: the system has none. The caller owns them.
[[nodiscard]] MutBytes map_pages(std::size_t bytes) noexcept;
// Gives back what map_pages() gave, all of it.
void unmap_pages(MutBytes pages) noexcept;
// Whole pages of it: they read as zero from now on, and cost nothing until they are touched again.
void forget_pages(MutBytes pages) noexcept;

}  // namespace iwarp::rpcrdma
