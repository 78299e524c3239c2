// Byte spans: the only way bytes are passed between layers. A span never owns; the function that returns or takes one
// says how long it lives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace iwarp {

using ConstBytes = std::span<const std::byte>;  // octets to read
using MutBytes = std::span<std::byte>;          // octets to write

}  // namespace iwarp
