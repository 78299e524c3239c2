// Waits by polling: what a thread does that expects to be told of something soon, through the engine, and again and
// again. It keeps the engine's I/O to itself between such waits, where Engine::wait_until() takes it over and gives it
// back each time, which costs several switches of threads. Internal to the library.
#pragma once

#include <algorithm>
#include <chrono>
#include <thread>

#include "iwarp/cm/engine.h"
#include "iwarp/cm/vain_polls.h"
#include "iwarp/verbs/completion_queue.h"

namespace iwarp::cm {

// Thread-safe.
class PollingWait {
 public:
  explicit PollingWait(Engine& engine) : engine_(engine), no_completions_(1, &engine) {}

  // A yield that took longer was none of a thread that is alone.
  static constexpr std::chrono::microseconds kOthersRan{3};

  // Until `ready` is true, for as long as the engine's threads look at its sockets before they sleep (Engine::spin()),
  // or `time` if that is less; whether it is true. Where others want the processor it sleeps in between. Not to be
  // called in a handler of the engine.
  template <class Ready>
  bool until(const Ready& ready, std::chrono::microseconds time) {
    using Clock = VainPolls::Clock;
    thread_local VainPolls vain;
    thread_local bool shares = false;  // the processor: its last yield let others run
    const auto end = Clock::now() + std::min(time, engine_.spin());
    while (!ready()) {
      const auto now = Clock::now();
      if (now >= end) return false;
      engine_.poll(no_completions_);
      if (ready()) break;
      const bool pause = vain.another();
      if (pause && vain.may_doze(now) && engine_.doze(no_completions_)) {
        vain.dozed(now, Clock::now());
      } else if (pause || shares) {
        const auto begin = Clock::now();
        std::this_thread::yield();
        const auto back = Clock::now();
        vain.yielded(begin, back);
        shares = back - begin > kOthersRan;
      }
    }
    vain.got_some();
    return true;
  }

 private:
  Engine& engine_;
  verbs::CompletionQueue no_completions_;  // its poll tells the engine who looks
};

}  // namespace iwarp::cm
