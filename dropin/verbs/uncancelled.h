// Calls of the C library below an entry may be cancellation points (recvmsg, write). With a device they are none, and
// the unwinding would meet noexcept functions, with locks held.
#pragma once

#include <pthread.h>

namespace iwarp::dropin {

// While it lives this thread is not cancelled; what was asked for meanwhile acts at the next cancellation point behind.
class Uncancelled {
 public:
  Uncancelled() noexcept { (void)::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~Uncancelled() { (void)::pthread_setcancelstate(before_, nullptr); }
  Uncancelled(const Uncancelled&) = delete;
  Uncancelled& operator=(const Uncancelled&) = delete;

 private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

}  // namespace iwarp::dropin
