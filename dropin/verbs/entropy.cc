// The kernel's random numbers: no libcrypto in the programs of others.
#include "iwarp/verbs/entropy.h"

#include <sys/random.h>

#include <cerrno>

namespace iwarp::verbs {

bool fill_random(MutBytes out) {
  while (!out.empty()) {
    const ssize_t n = ::getrandom(out.data(), out.size(), 0);
    if (n < 0 && errno != EINTR) return false;
    if (n > 0) out = out.subspan(static_cast<std::size_t>(n));
  }
  return true;
}

}  // namespace iwarp::verbs
