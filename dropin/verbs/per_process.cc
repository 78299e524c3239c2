#include "dropin/verbs/per_process.h"

#include <pthread.h>

#include <cstdlib>

namespace iwarp::dropin {
namespace {

std::atomic<PerProcessBase*> first{nullptr};
std::atomic_flag entering;  // of who puts itself into that list

}  // namespace

void PerProcessBase::enter() {
  static const int kWatching = ::pthread_atfork(nullptr, nullptr, forget_all);
  if (kWatching != 0) std::abort();  // a child would use its parent's
  if (entered_.load()) return;
  // In the list before anybody uses what a child has to forget.
  while (entering.test_and_set()) {
  }
  if (!entered_.load()) {
    next_ = first.load();
    first.store(this);
    entered_.store(true);
  }
  entering.clear();
}

void PerProcessBase::forget_all() {
  entering.clear();
  for (PerProcessBase* one = first.load(); one != nullptr; one = one->next_) one->it_.store(nullptr);
}

}  // namespace iwarp::dropin
