// Each connection takes a descriptor, and the soft limit that a shell sets (1024 mostly) is far below what may be had.
#pragma once

#include <cstddef>

namespace iwarp::tools {

// Raises RLIMIT_NOFILE's soft limit to the hard one. The limit that then holds.
std::size_t raise_descriptor_limit();

}  // namespace iwarp::tools
