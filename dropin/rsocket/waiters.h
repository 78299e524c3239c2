// Who waits for a socket: threads that sleep in a call of it, and calls of rpoll(), which sleep in poll(2) on
// descriptors of their own. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "dropin/verbs/sleep.h"

namespace iwarp::dropin::rsockets {

// The descriptor of one call of rpoll(), readable when one of its sockets may have changed.
class Alarm {
 public:
  // Throws std::system_error: there is no descriptor.
  Alarm();
  ~Alarm();
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;

  [[nodiscard]] int descriptor() const { return descriptor_; }
  // Any thread, with any lock held; never blocks.
  void ring() noexcept;
  void silence() noexcept;

 private:
  int descriptor_;
};

class Waiters {
 public:
  // How often they were woken: to be asked before looking at the socket.
  [[nodiscard]] std::uint32_t wakes() const { return sleepers_.wakes(); }
  // The socket may have changed. Any thread, with any lock held; never blocks; errno is left alone.
  void wake() noexcept;
  // Sleeps unless wake() was called since wakes() gave `seen`. False, with errno EINTR: a signal. Not a cancellation
  // point.
  [[nodiscard]] bool sleep(std::uint32_t seen);

  // From here on `alarm` rings, until remove().
  void add(Alarm& alarm);
  void remove(Alarm& alarm);

 private:
  Sleepers sleepers_{Sleepers::For::kRareEvents};  // the engine's thread takes what has come
  std::atomic<unsigned> count_{0};                 // of alarms_
  std::mutex mutex_;
  std::vector<Alarm*> alarms_;
};

}  // namespace iwarp::dropin::rsockets
