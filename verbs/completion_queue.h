// CompletionQueue: bounded FIFO of work completions of any number of queue pairs. Thread-safe.
//
// Waiting follows ibv_req_notify_cq: arm(), then poll until empty, then sleep; a completion that comes after arm()
// notifies exactly once.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <span>

#include "iwarp/base/ring.h"
#include "iwarp/rdmap/work_request.h"
#include "iwarp/verbs/driver.h"

namespace iwarp::verbs {

struct Completion : rdmap::Completion {
  std::uint32_t qp_number = 0;
};

// Told of one completion per arm().
class Notifier {
 public:
  virtual ~Notifier() = default;
  // Any thread, with a queue pair's lock held: must not block and must not call into the library.
  virtual void notify(CompletionQueue& cq) noexcept = 0;
};

class CompletionQueue {
 public:
  // `capacity`: completions that may wait unpolled; at least the sum of the queue depths that use it, or overflow ends
  // the queue pair that overflows it (and no other, RFC 5040 s8.1.1 item 10). `progress` (the engine) serves
  // wait_for(); it must outlive this object.
  explicit CompletionQueue(std::size_t capacity, Progress* progress = nullptr)
      : entries_(capacity), progress_(progress) {}
  CompletionQueue(const CompletionQueue&) = delete;
  CompletionQueue& operator=(const CompletionQueue&) = delete;

  // Takes up to out.size() completions, oldest first; returns how many.
  std::size_t poll(std::span<Completion> out);
  [[nodiscard]] bool empty() const;

  enum class Notify : std::uint8_t { kNext, kSolicited };  // kSolicited: only solicited receives and errors notify
  // One-shot. `notifier` must live until it was told or disarm() was called.
  void arm(Notify what, Notifier& notifier);
  void disarm();

  // Sleeps until there is a completion; false on timeout. Drives the engine's I/O while it waits if there is one, which
  // runs handlers in this thread. Not to be called from such a handler. Any number of threads; each of those that wait
  // for this queue is woken.
  bool wait_for(std::chrono::nanoseconds timeout);

  // For queue pairs: false when they do not all fit; those at the front are in then. Notifies of the first that is
  // wanted.
  [[nodiscard]] bool push(std::span<const Completion> completions);
  [[nodiscard]] bool push(const Completion& c) { return push(std::span{&c, 1}); }

 private:
  mutable std::mutex mu_;
  Ring<Completion> entries_;
  Notifier* notifier_ = nullptr;
  Notify notify_what_ = Notify::kNext;
  Progress* progress_;
  std::condition_variable arrived_;  // without `progress_`
};

}  // namespace iwarp::verbs
