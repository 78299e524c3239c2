#include "dropin/verbs/per_process.h"

#include <pthread.h>

#include <cstdlib>

namespace iwarp::dropin {
namespace {

std::atomic<PerProcessBase*> first{nullptr};

}  // namespace

void PerProcessBase::enter() {
  if (entered_.exchange(true)) return;
  static const int kWatching = ::pthread_atfork(nullptr, nullptr, forget_all);
  if (kWatching != 0) std::abort();  // a child would use its parent's
  next_ = first.load();
  while (!first.compare_exchange_weak(next_, this)) {
  }
}

void PerProcessBase::forget_all() {
  for (PerProcessBase* one = first.load(); one != nullptr; one = one->next_) one->it_.store(nullptr);
}

}  // namespace iwarp::dropin
