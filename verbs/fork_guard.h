// ForkGuard: tells the process that made an object from a child of it, which inherited a copy whose locks may be held
// by threads that the child does not have. Thread-safe; a copy belongs to the process that the original belongs to.
#pragma once

#include <atomic>

namespace iwarp::verbs {

class ForkGuard {
 public:
  ForkGuard();
  // False in a forked child. Costs one load.
  [[nodiscard]] bool alive() const { return forks_.load(std::memory_order_relaxed) == generation_; }

 private:
  static std::atomic<unsigned> forks_;  // between the first process and this one

  unsigned generation_;
};

}  // namespace iwarp::verbs
