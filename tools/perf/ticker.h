// Calls a function now and then while something else takes its time.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace iwarp::tools::perf {

class Ticker {
 public:
  // From now on, every `interval`, `tick` is called in a thread of its own with the time since construction, rounded
  // down to whole intervals. The destructor waits for a call that is under way.
  Ticker(std::chrono::milliseconds interval, std::function<void(std::chrono::milliseconds)> tick)
      : thread_([this, interval, tick = std::move(tick)](const std::stop_token& stop) {
          const auto begin = std::chrono::steady_clock::now();
          std::unique_lock lock(mu_);
          for (auto next = begin + interval;; next += interval) {
            never_.wait_until(lock, stop, next, [] { return false; });
            if (stop.stop_requested()) return;
            tick(std::chrono::duration_cast<std::chrono::milliseconds>(next - begin));
          }
        }) {}

 private:
  std::mutex mu_;
  std::condition_variable_any never_;
  std::jthread thread_;  // joined first
};

}  // namespace iwarp::tools::perf
