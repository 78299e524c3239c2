#include "dropin/verbs/sleep.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>

namespace iwarp::dropin {

static_assert(std::atomic<std::uint32_t>::is_always_lock_free && sizeof(std::atomic<std::uint32_t>) == 4);

void Sleepers::wake() noexcept {
  wakes_.fetch_add(1);
  if (sleepers_.load() > 0) ::syscall(SYS_futex, &wakes_, FUTEX_WAKE_PRIVATE, INT_MAX);
}

// Without a limit in time the system call follows SA_RESTART, as read() does and poll() does not. It is no cancellation
// point by itself: while it lasts, and nothing else is done, the thread may be cancelled at any moment, as the C
// library does it for its own.
bool Sleepers::sleep(std::uint32_t seen) {
  sleepers_.fetch_add(1);
  int before = 0;
  ::pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &before);
  const long done = ::syscall(SYS_futex, &wakes_, FUTEX_WAIT_PRIVATE, seen, nullptr);
  const int error = errno;
  ::pthread_setcanceltype(before, nullptr);
  sleepers_.fetch_sub(1);
  if (done == 0 || error != EINTR) return true;
  errno = EINTR;
  return false;
}

}  // namespace iwarp::dropin
