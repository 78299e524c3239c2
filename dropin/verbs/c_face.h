// How C++ answers C: nothing is thrown through an entry of the libraries, and an object of C is the first member of its
// owner, so that one pointer names both.
#pragma once

#include <cerrno>
#include <new>
#include <system_error>
#include <utility>

#include "dropin/verbs/translate.h"
#include "dropin/verbs/uncancelled.h"

// Of a class whose member `first` is what C sees.
#define IWARP_C_FIRST(Class, first)                                                                        \
  _Pragma("GCC diagnostic push")                                                                           \
      _Pragma("GCC diagnostic ignored \"-Winvalid-offsetof\"") static_assert(offsetof(Class, first) == 0); \
  _Pragma("GCC diagnostic pop") static_assert(true)

namespace iwarp::dropin {

// The errno value of the exception that is being handled.
[[nodiscard]] inline int errno_of_exception() noexcept {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return ENOMEM;
  } catch (const std::system_error& e) {
    return e.code().category() == std::generic_category() || e.code().category() == std::system_category()
               ? e.code().value()
               : EIO;
  } catch (...) {
    return EIO;
  }
}

// `f` gives 0 or an errno value, and that is the answer; so is the errno value of what it throws. Not cancelled.
template <class F>
[[nodiscard]] int guarded(F&& f) noexcept {
  const Uncancelled whole;
  try {
    return std::forward<F>(f)();
  } catch (...) {
    return errno_of_exception();
  }
}

// `f(out)` gives 0 and sets `out`, or gives an errno value: then null, with errno.
template <class T, class F>
[[nodiscard]] T* made(F&& f) noexcept {
  T* out = nullptr;
  const int error = guarded([&] { return std::forward<F>(f)(out); });
  if (error == 0) return out;
  errno = error;
  return nullptr;
}

// Of a call that gives -1 with errno.
[[nodiscard]] inline int minus_one(int error) noexcept {
  if (error == 0) return 0;
  errno = error;
  return -1;
}

// 0 or the errno value.
[[nodiscard]] inline int answer(const Result<void>& result) {
  return result ? 0 : to_errno(result.error().code);
}

}  // namespace iwarp::dropin
