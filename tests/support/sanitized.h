// Whether this is built with the address or the thread sanitizer: they keep freed memory, end the process where the
// system gives none, and open a pipe to look at addresses.
#pragma once

namespace iwarp::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace iwarp::test
