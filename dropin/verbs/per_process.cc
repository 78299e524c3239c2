#include "dropin/verbs/per_process.h"

#include <pthread.h>

#include <cstdlib>

namespace iwarp::dropin {
namespace {

std::atomic<PerProcessBase*> first{nullptr};
std::atomic_flag entering;  // of who puts itself into that list

}  // namespace

// When the library is loaded. Without it a child would use its parent's.
const bool PerProcessBase::kWatches = ::pthread_atfork(nullptr, nullptr, forget_all) == 0;

void PerProcessBase::enter() {
  if (!kWatches) std::abort();
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
  for (PerProcessBase* one = first.load(); one != nullptr; one = one->next_) {
    one->entered_.store(true);  // fork() may have come between the two
    one->it_.store(nullptr);
  }
}

}  // namespace iwarp::dropin
