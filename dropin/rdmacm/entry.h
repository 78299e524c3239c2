// What every entry of the C interface does: rdma_* tell -1 and errno, and nothing is thrown into C.
#pragma once

#include <cerrno>
#include <new>
#include <system_error>
#include <type_traits>

#include "dropin/verbs/uncancelled.h"

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
  int error = EIO;
  try {
    return act();
  } catch (const std::bad_alloc&) {
    error = ENOMEM;
  } catch (const std::system_error& failed) {
    if (failed.code().value() > 0) error = failed.code().value();
  } catch (...) {
  }
  errno = error;
  if constexpr (std::is_pointer_v<Result>) {
    return nullptr;
  } else if constexpr (!std::is_void_v<Result>) {
    return Result(-1);
  }
}

}  // namespace iwarp::dropin::rdmacm
