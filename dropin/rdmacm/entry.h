// What every entry of the C interface does: rdma_* tell -1 and errno, and nothing is thrown into C.
#pragma once

#include <cerrno>
#include <type_traits>

#include "dropin/verbs/c_face.h"

// For a function that librdmacm.so.1 forwards to.
#define IWARP_ENTRY extern "C" __attribute__((visibility("default")))

namespace iwarp::dropin::rdmacm {

// Sets errno.
inline int fail(int error) noexcept {
  errno = error;
  return -1;
}

// The result of `act`, an int or a pointer. What it throws becomes -1 or null, with errno. Not cancelled.
template <class Act>
auto guarded(const Act& act) noexcept -> decltype(act()) {
  const Uncancelled whole;
  using Result = decltype(act());
  try {
    return act();
  } catch (...) {
    errno = errno_of_exception();
  }
  if constexpr (std::is_pointer_v<Result>) {
    return nullptr;
  } else if constexpr (!std::is_void_v<Result>) {
    return Result(-1);
  }
}

}  // namespace iwarp::dropin::rdmacm
