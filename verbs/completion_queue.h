// CompletionQueue: bounded FIFO of the work completions of any number of queue pairs. Thread-safe.
//
// To wait: wait_for() sleeps in this thread. A Notifier or a CompletionChannel follows ibv_req_notify_cq(): arm(), then
// poll until the queue is empty, then sleep. The first completion after arm() notifies, once, unless moderate() asks
// for fewer notifications. cm::CompletionQueue adds async_poll() for Asio.
//
// It may be destroyed before its queue pairs, and at any time when no other thread is in a call of it (a thread in
// wait_for() has to return first). Later completions of its queue pairs are dropped, and nobody is notified of them. In
// a forked child it is empty, and its calls do nothing.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "iwarp/base/chunked_ring.h"
#include "iwarp/base/result.h"
#include "iwarp/base/time.h"
#include "iwarp/rdmap/work_request.h"
#include "iwarp/verbs/async_event.h"
#include "iwarp/verbs/driver.h"
#include "iwarp/verbs/fork_guard.h"

namespace iwarp::verbs {

// A work completion and where it is from.
struct Completion : rdmap::Completion {
  std::uint32_t qp_number = 0;  // QueuePair::number()
  void* user = nullptr;         // QueuePair::Options::user
};

// Told once per arm(): in any thread, maybe with a queue pair's lock held. Must not block and must not call into
// the library.
class Notifier {
 public:
  virtual ~Notifier() = default;
  // There is a completion in `cq`.
  virtual void notify(CompletionQueue& cq) noexcept = 0;
};

// One that the queue shares while it is armed.
class SharedNotifier : public Notifier {
 public:
  // It was armed and will not be told: disarmed, replaced by another, or the queue goes. As notify(), or inside a call
  // of the queue.
  virtual void let_go() noexcept = 0;
};

class CompletionQueue {
 public:
  // What queue pairs and channels share with it.
  class Shared;

  // `capacity`: completions that may wait unpolled. Room for all that can complete before the application polls: a
  // request leaves its queue depth when its completion comes here, so whoever posts without polling needs more than the
  // sum of the depths. Memory is taken for as many as there ever are at a time, 320 octets for eight, and an octet for
  // each place; a want of it is an overflow. Overflow ends the queue pair that overflows it (and no other, RFC 5040
  // s8.1.1 item 10). `progress` (the engine) serves wait_for(); it must outlive this object.
  explicit CompletionQueue(std::size_t capacity, Progress* progress = nullptr);
  // Waits while the engine is being told of a completion of this queue; that does not block.
  ~CompletionQueue();
  CompletionQueue(const CompletionQueue&) = delete;
  CompletionQueue& operator=(const CompletionQueue&) = delete;

  // Takes up to out.size() completions, oldest first; returns how many.
  std::size_t poll(std::span<Completion> out);
  // Whether nothing waits to be polled.
  [[nodiscard]] bool empty() const;
  // The same without a lock: what another thread adds or takes at this moment may not be seen yet.
  [[nodiscard]] bool seems_empty() const;

  // Another capacity, 1 to kMostCapacity, with all completions that wait, in their order; as ibv_resize_cq(). At any
  // time, and it keeps out whoever completes or polls for as long as the copy takes. kInvalidArgument: more completions
  // wait than that, out of range, used after fork(). kResource: no memory. After an error it is as it was.
  [[nodiscard]] Result<void> resize(std::size_t capacity);
  static constexpr std::size_t kMostCapacity = std::size_t{1} << 28;  // for resize()
  // Completions that may wait.
  [[nodiscard]] std::size_t capacity() const;
  // Takes out what waits of the queue pair with that number, as the end of one does to an ibv_cq. How many.
  std::size_t drop(std::uint32_t qp_number);
  // Whether somebody is to be notified.
  [[nodiscard]] bool armed() const;

  // Fewer notifications, as ibv_modify_cq() has it: the notifier, or a channel or async_poll() in its place, is told
  // when `count` completions came since it was armed, or `period` after the first of them, or when the queue is full.
  // `count` 0 or 1: at once, as at first. `period` 0: no limit, so what is not followed by others is never told of.
  // Solicited receives and failures are told of at once, and wait_for() and poll() see everything at once. Takes effect
  // at once, and tells what is held back. kInvalidArgument: `period` below 0, or above 0 for a queue whose time nobody
  // tells, as only cm::CompletionQueue has somebody for that; used after fork().
  [[nodiscard]] Result<void> moderate(std::size_t count, std::chrono::microseconds period);

  // Which completions notify.
  enum class Notify : std::uint8_t { kNext, kSolicited };  // kSolicited: only solicited receives and errors notify
  // One-shot. `notifier` must live until it was told, or disarm() was called, or the queue is gone; the queue does not
  // touch it when it goes.
  void arm(Notify what, Notifier& notifier);
  // Nobody is notified any more.
  void disarm();

  // Sleeps until there is a completion; false on timeout. Drives the engine's I/O while it waits if there is one, which
  // runs handlers in this thread. Not to be called from such a handler. Any number of threads; each of those that wait
  // for this queue is woken.
  bool wait_for(std::chrono::nanoseconds timeout);

  // As Shared::push().
  [[nodiscard]] bool push(std::span<const Completion> completions);
  [[nodiscard]] bool push(const Completion& c) { return push(std::span{&c, 1}); }

  // For cm, before moderate(): who tells the time.
  void set_alarm(std::shared_ptr<Alarm> alarm);
  // For queue pairs and channels, which may outlive it.
  [[nodiscard]] const std::shared_ptr<Shared>& shared() const { return shared_; }

 private:
  std::shared_ptr<Shared> shared_;
};

// Lives as long as anybody holds it, the queue's memory until the queue goes. Thread-safe.
class CompletionQueue::Shared {
 public:
  // By the queue, whose part it is.
  Shared(CompletionQueue& queue, std::size_t capacity, Progress* progress);
  ~Shared();
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;

  // For queue pairs: false when they do not all fit; those at the front are in then. Notifies of the first that is
  // wanted. True, and nothing else, when the queue is gone. `promised`: places of promise() that this gives back, and
  // may use.
  // `last_good`: null, or what comes to be the position of the last of them that succeeded, if one did.
  [[nodiscard]] bool push(std::span<const Completion> completions, std::size_t promised = 0,
                          std::atomic<std::uint64_t>* last_good = nullptr);
  // Whether the completion at that position, and all before it, were polled. One that was dropped counts as one of
  // those that came last.
  [[nodiscard]] bool polled(std::uint64_t position) const;
  // For queue pairs: keeps up to `most` places for their completions, from everybody else. How many it keeps; all
  // when the queue is gone.
  [[nodiscard]] std::size_t promise(std::size_t most);
  // For a queue pair whose completions did not fit: tells `events` of it (kCqOverflow), unless the queue is gone.
  void overflowed(const std::shared_ptr<AsyncEvents>& events, std::uint32_t qp_number);
  // Null when it is gone.
  [[nodiscard]] CompletionQueue* queue() const;
  // Null: disarms.
  void arm(Notify what, Notifier* notifier);
  // False: it was armed already, and counts once.
  [[nodiscard]] bool arm(Notify what, std::shared_ptr<SharedNotifier> notifier);
  // Takes up to out.size() completions, oldest first. nullopt: the queue is gone.
  [[nodiscard]] std::optional<std::size_t> poll(std::span<Completion> out);
  // Forgets `notifier`, if it is the one that is armed, without let_go(): from here on it is not told.
  void forget(const SharedNotifier& notifier);
  // For the alarm: tells of what is held back, if its time is over.
  void period_over();
  // False in a forked child, which must not use it.
  [[nodiscard]] bool alive() const { return process_.alive(); }

  // --- For queue pairs and engines: the connections whose completions come here, so that who polls drives them.
  // From now on `driver` is one of `engine`. Twice counts once.
  void join(const Progress& engine, const std::weak_ptr<Driver>& driver, const Driver* key);
  // It is no more. `key`: the same object.
  void part(const Driver* key);
  // Fills `out` with those of `engine` whose turn it is, all in turn from call to call, as far as they still exist; how
  // many. `all`: connections that have joined.
  [[nodiscard]] std::size_t next_drivers(const Progress& engine, std::span<std::shared_ptr<Driver>> out,
                                         std::size_t& all);

 private:
  friend class CompletionQueue;
  struct Joined {
    const Progress* engine;
    const Driver* key;
    std::weak_ptr<Driver> driver;
  };

  // With waking_ counted up, without the lock.
  void tell_armed();
  // Of these precondition: mu_ held.
  void tell();
  void tell_if_held();
  [[nodiscard]] bool hold_back(const Completion& c);
  void replace(Notify what, Notifier* notifier, std::shared_ptr<SharedNotifier> shared);
  void close();
  void set_notifier(Notifier* notifier) {
    notifier_ = notifier;
    notifies_.store(notifier != nullptr, std::memory_order_release);
  }
  void count() { count_.store(entries_.size(), std::memory_order_release); }
  bool wait(CompletionQueue& queue, TimePoint deadline);

  const ForkGuard process_;
  mutable std::mutex mu_;
  ChunkedRing<Completion> entries_;
  std::atomic<std::size_t> count_{0};  // of them
  std::uint64_t pushed_ = 0;           // so far: the position of the last of them, from 1
  std::atomic<bool> notifies_{false};  // notifier_ is not null
  std::vector<Joined> drivers_;
  std::size_t turn_ = 0;      // in drivers_
  std::size_t promised_ = 0;  // places of it
  CompletionQueue* queue_;
  Notifier* notifier_ = nullptr;
  std::shared_ptr<SharedNotifier> shared_notifier_;  // the same, if it is one
  Notify notify_what_ = Notify::kNext;
  std::size_t most_held_ = 1;                 // completions that one notification is for
  std::chrono::microseconds most_period_{0};  // that the first of them is held back; 0: any
  std::size_t held_ = 0;                      // since it was armed
  TimePoint held_until_{};                    // with held_ > 0 and a period
  std::shared_ptr<Alarm> alarm_;
  AsyncEvents::Source overflow_;
  Progress* const progress_;                          // used while queue_ is there
  std::unique_ptr<std::condition_variable> arrived_;  // without `progress_`
  std::atomic<unsigned> waiters_{0};                  // threads in wait_for()
  std::atomic<unsigned> waking_{0};                   // calls of progress_ under way without the lock
};

}  // namespace iwarp::verbs
