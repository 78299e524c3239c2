// Waits by polling: what a thread does that expects to be told of something soon, through the engine, and again and
// again. It keeps the engine's I/O to itself between such waits, where Engine::wait_until() takes it over and gives it
// back each time, which costs several switches of threads. Internal to the library.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "iwarp/cm/engine.h"
#include "iwarp/cm/engine_pace.h"
#include "iwarp/cm/vain_polls.h"
#include "iwarp/verbs/completion_queue.h"

namespace iwarp::cm {

// Thread-safe.
class PollingWait {
 public:
  explicit PollingWait(Engine& engine) : engine_(engine), no_completions_(1, &engine) {}

  // Until `ready` is true, for as long as the engine's threads look at its sockets before they sleep (Engine::spin()),
  // or `time` if that is less; whether it is true. Where others want the processor it sleeps in between, and where it
  // was in vain several times it is tried ever more rarely. Not to be called in a handler of the engine.
  template <class Ready>
  bool until(const Ready& ready, std::chrono::microseconds time) {
    if (skips()) return ready();
    const auto end = Clock::now() + std::min(time, engine_.spin());
    while (!ready()) {
      const auto now = Clock::now();
      if (now >= end) {
        was_in_vain();
        return ready();
      }
      engine_.poll(no_completions_);
      if (!ready()) pause(now);
    }
    vain_.store(0, std::memory_order_relaxed);
    polls_.got_some();
    return true;
  }

 private:
  using Clock = VainPolls::Clock;
  // A yield that took longer was none of a thread that is alone.
  static constexpr std::chrono::microseconds kOthersRan{3};

  // What this keeps from who looks at a socket is kept from who polls as well.
  [[nodiscard]] bool skips() {
    unsigned left = skip_.load(std::memory_order_relaxed);
    return left > 0 && skip_.compare_exchange_strong(left, left - 1, std::memory_order_relaxed);
  }
  void was_in_vain() {
    const unsigned vain = vain_.fetch_add(1, std::memory_order_relaxed) + 1;
    if (vain >= pace::kVainSpins)
      skip_.store(std::min(pace::kMostSkipped, 1U << std::min(vain - pace::kVainSpins, 16U)),
                  std::memory_order_relaxed);
  }
  void pause(Clock::time_point now) {
    if (!polls_.another() && !shares_) return;
    if (polls_.may_doze(now) && engine_.doze(no_completions_)) return polls_.dozed(now, Clock::now());
    const auto begin = Clock::now();
    std::this_thread::yield();
    const auto back = Clock::now();
    polls_.yielded(begin, back);
    shares_ = back - begin > kOthersRan;
  }

  inline static thread_local VainPolls polls_;
  inline static thread_local bool shares_ = false;  // the processor: the last yield let others run
  Engine& engine_;
  verbs::CompletionQueue no_completions_;  // its poll tells the engine who looks
  std::atomic<unsigned> vain_{0}, skip_{0};
};

}  // namespace iwarp::cm
