// What there is one of in a process: made at first use, never destroyed, for threads of the application may be in a
// call until the process ends. A forked child does not use its parent's, whose locks may be held by threads that it has
// not: it begins with one of its own. Thread-safe.
#pragma once

#include <atomic>
#include <memory>

namespace iwarp::dropin {

class PerProcessBase {
 public:
  PerProcessBase(const PerProcessBase&) = delete;
  PerProcessBase& operator=(const PerProcessBase&) = delete;

 protected:
  constexpr PerProcessBase() = default;
  ~PerProcessBase() = default;  // static ones only
  // Forgotten in children from here on.
  void enter();

  std::atomic<void*> it_{nullptr};

 private:
  static void forget_all();
  static const bool kWatches;

  PerProcessBase* next_ = nullptr;
  std::atomic<bool> entered_{false};
};

// To be static. T has a constructor without arguments, which may run twice, in two threads: one of them is kept.
template <class T>
class PerProcess : PerProcessBase {
 public:
  constexpr PerProcess() = default;

  // Throws what T's constructor throws.
  [[nodiscard]] T& get() {
    if (void* const it = it_.load(std::memory_order_acquire); it != nullptr) [[likely]]
      return *static_cast<T*>(it);
    enter();
    auto made = std::make_unique<T>();
    void* present = nullptr;
    if (it_.compare_exchange_strong(present, made.get())) return *made.release();
    return *static_cast<T*>(present);
  }
};

}  // namespace iwarp::dropin
