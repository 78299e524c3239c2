#include "iwarp/verbs/fork_guard.h"

#include <pthread.h>

#include <cstdlib>

namespace iwarp::verbs {

std::atomic<unsigned> ForkGuard::forks_{0};

ForkGuard::ForkGuard() {
  static const int watching = ::pthread_atfork(nullptr, nullptr, [] { forks_.fetch_add(1); });
  if (watching != 0) std::abort();  // out of memory: a child would corrupt its parent's streams
  generation_ = forks_.load();
}

}  // namespace iwarp::verbs
