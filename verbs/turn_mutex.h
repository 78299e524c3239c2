// TurnMutex: a lock whose holder sees that others wait for it, and can let them go first. A std::mutex is not fair: who
// unlocks and locks again at once wins against a thread that has to wake up. Here it does so kMostPassed times at most.
// Meets BasicLockable; thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <thread>

namespace iwarp::verbs {

class TurnMutex {
 public:
  static constexpr std::chrono::microseconds kPatience{500};
  static constexpr unsigned kMostPassed = 64;

  void lock() {
    if (mu_.try_lock()) {
      if (!wanted()) [[likely]] {
        passed_ = 0;
      } else if (++passed_ >= kMostPassed) {
        passed_ = 0;
        give_way();
      }
      return;
    }
    asked_.fetch_add(1);
    mu_.lock();
    served_.fetch_add(1);
  }
  bool try_lock() { return mu_.try_lock(); }
  void unlock() { mu_.unlock(); }

  // By the holder: whether another thread waits.
  [[nodiscard]] bool wanted() const { return asked_.load() != served_.load(); }
  // By the holder: returns, holding it again, when as many have had it as were waiting. Who comes later is not waited
  // for, so a thread that locks without end cannot keep the holder out; nor can one that gets no processor, which is
  // waited for no longer than kPatience.
  void give_way() {
    const std::uint32_t waiting = asked_.load();
    unlock();
    const auto until = std::chrono::steady_clock::now() + kPatience;
    while (static_cast<std::int32_t>(waiting - served_.load()) > 0 && std::chrono::steady_clock::now() < until)
      std::this_thread::yield();
    lock();
  }

 private:
  std::mutex mu_;
  std::atomic<std::uint32_t> asked_{0}, served_{0};  // by threads that had to wait
  unsigned passed_ = 0;  // of those that had not to, in a row, while others waited: guarded by mu_
};

}  // namespace iwarp::verbs
