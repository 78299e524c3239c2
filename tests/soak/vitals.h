// What a process must not use more and more of.
#pragma once

#include <cstddef>

namespace iwarp::soak {

struct Vitals {
  std::size_t resident_bytes = 0;
  std::size_t allocated_bytes = 0;  // from malloc; 0 under a sanitizer, whose allocator is another
  std::size_t descriptors = 0;
  std::size_t threads = 0;

  // Of this process, now, after unused memory was given back to the system.
  [[nodiscard]] static Vitals now();
};

// Whether the memory figures mean anything in this build.
[[nodiscard]] bool memory_is_measurable();

}  // namespace iwarp::soak
