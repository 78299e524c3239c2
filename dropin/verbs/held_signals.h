// A thread of the application that works for the engine: its signals wait meanwhile, but for those of faults.
#pragma once

#include <csignal>

namespace iwarp::dropin {

class HeldSignals {
 public:
  HeldSignals();
  // They act here.
  ~HeldSignals();
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

  // Whether one waits whose handler ends a system call that is under way (EINTR).
  [[nodiscard]] bool end_a_call() const;

 private:
  sigset_t before_{};
};

}  // namespace iwarp::dropin
