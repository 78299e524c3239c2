// XDR padding (RFC 4506 s4.10). Internal to rpcrdma.
#pragma once

#include <cstdint>

namespace iwarp::rpcrdma {

// Octets that `n` octets of variable-length data take, with their padding: the next multiple of 4.
[[nodiscard]] constexpr std::uint64_t padded(std::uint64_t n) {
  return (n + 3) & ~std::uint64_t{3};
}

}  // namespace iwarp::rpcrdma
