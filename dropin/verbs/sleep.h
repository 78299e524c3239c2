// How threads of the application sleep for an event: as in the read(2) of a device. Signals end the sleep whose
// handlers say so (no SA_RESTART), and pthread_cancel() ends the thread there.
#pragma once

#include <atomic>
#include <cstdint>

namespace iwarp::dropin {

class Sleepers {
 public:
  // How often they were woken: to be asked before looking for what is waited for.
  [[nodiscard]] std::uint32_t wakes() const { return wakes_.load(); }
  // Something has come. Any thread, with any lock held; never blocks.
  void wake() noexcept;
  // Sleeps until wake() is called, unless it was since wakes() gave `seen`. False, with errno EINTR: a signal. A
  // cancellation point, unless the thread is Uncancelled: no caller on the way from C may be noexcept, hold a lock, or
  // have something to destroy then.
  [[nodiscard]] bool sleep(std::uint32_t seen);

 private:
  std::atomic<std::uint32_t> wakes_{0};
  // A thread that was cancelled counts for ever: that costs calls in vain.
  std::atomic<std::uint32_t> sleepers_{0};
};

}  // namespace iwarp::dropin
