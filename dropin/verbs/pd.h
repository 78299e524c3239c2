// Protection domains.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>

#include "dropin/verbs/c_face.h"
#include "iwarp/verbs/context.h"

namespace iwarp::dropin {

struct Pd {
  explicit Pd(ibv_context* context);

  ibv_pd c{};
  verbs::ProtectionDomain core;
  std::atomic<unsigned> users{0};  // objects of it: it cannot go before them
  const verbs::ForkGuard process;
};
IWARP_C_FIRST(Pd, c);

[[nodiscard]] inline Pd& owner(ibv_pd* pd) {
  return *reinterpret_cast<Pd*>(pd);
}

}  // namespace iwarp::dropin
