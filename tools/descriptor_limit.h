// Each connection takes a descriptor, and the soft limit that a shell sets (1024 mostly) is far below what may be had.
#pragma once

#include <cstddef>

namespace iwarp::tools {

struct DescriptorLimit {
  std::size_t before = 0;
  std::size_t now = 0;
};

// Raises RLIMIT_NOFILE's soft limit to the hard one.
DescriptorLimit raise_descriptor_limit();

}  // namespace iwarp::tools
