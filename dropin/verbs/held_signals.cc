#include "dropin/verbs/held_signals.h"

#include <pthread.h>

#include <array>

namespace iwarp::dropin {

HeldSignals::HeldSignals() {
  sigset_t held;
  ::sigfillset(&held);
  for (const int fault : std::array{SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS}) ::sigdelset(&held, fault);
  ::pthread_sigmask(SIG_BLOCK, &held, &before_);
}

HeldSignals::~HeldSignals() {
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

bool HeldSignals::end_a_call() const {
  sigset_t waiting;
  if (::sigpending(&waiting) != 0 || ::sigisemptyset(&waiting) != 0) return false;
  for (int signal = 1; signal <= SIGRTMAX; ++signal) {
    if (::sigismember(&waiting, signal) != 1 || ::sigismember(&before_, signal) != 0) continue;
    struct sigaction action {};
    if (::sigaction(signal, nullptr, &action) != 0 || (action.sa_flags & SA_RESTART) != 0) continue;
    const bool handled =
        (action.sa_flags & SA_SIGINFO) != 0 || (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN);
    if (handled) return true;
  }
  return false;
}

}  // namespace iwarp::dropin
