// A sum over octets that tells messages apart, those too that were made to be mistaken for one another: Poly1305 (RFC
// 8439 s2.5) under a secret of the process. Sums never leave the process, so one key serves them all. Internal to rpc.
#pragma once

#include <array>
#include <cstddef>
#include <optional>

#include "iwarp/base/bytes.h"

namespace iwarp::rpc {

using KeyedSum = std::array<std::byte, 16>;

// Nothing: libcrypto has no Poly1305 or no memory, or there are no random numbers. Thread-safe.
[[nodiscard]] std::optional<KeyedSum> keyed_sum(ConstBytes octets);

}  // namespace iwarp::rpc
