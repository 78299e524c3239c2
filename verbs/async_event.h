// Asynchronous events: news of an object that no work completion tells, as with ibv_get_async_event(). Each object
// holds its events itself, one of each kind: so they need no memory when they happen, none is lost, and what waits is
// bounded by the objects that there are. One that happens again before it was polled is told once. An object that goes
// takes its events with it: none names one that is gone, but for the queue pair of kCqOverflow.
//
// Applications poll them at their Context: Context::poll_async_event(), Context::async_event_fd().
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

#include "iwarp/base/error.h"
#include "iwarp/base/result.h"
#include "iwarp/verbs/fork_guard.h"

namespace iwarp::verbs {

class CompletionQueue;
class SharedReceiveQueue;
// What has happened.
enum class AsyncEventType : std::uint8_t {
  // `srq` has fewer Receives than SharedReceiveQueue::set_limit() said. Told at most once for each call of that.
  kSrqLimitReached,
  // The established connection of `qp_number` has ended other than in order: `reason` is neither kPeerClosed nor
  // kAborted. Everything posted completes as kFlushed. (A failed attempt at a connection is told to who connects.)
  kQpFatal,
  // The queue pair `qp_number` takes no Receive of its shared receive queue any more, and those that it took are in its
  // completion queue, unless that overflowed. Follows every end of a queue pair that has one.
  kLastWqeReached,
  // A completion of `qp_number` found no room in `cq`, which has ended that queue pair. The queue goes on, and is told
  // of once until that was polled.
  kCqOverflow,
};

// What happened, and to which object; the members that are not named above are null.
struct AsyncEvent {
  AsyncEventType type = AsyncEventType::kQpFatal;  // what
  std::uint32_t qp_number = 0;                     // QueuePair::number()
  CompletionQueue* cq = nullptr;                   // as long as the application lets it live
  SharedReceiveQueue* srq = nullptr;               // likewise
  Error reason{};                                  // of kQpFatal
};

// What follows is for the objects, and for who has a list apart from the context's (ProtectionDomain).

// Hears of events.
class AsyncBell {
 public:
  // There is one more. With locks held: it only leaves word.
  virtual void ring() noexcept = 0;

 protected:
  ~AsyncBell() = default;
};

// Events that wait to be polled. Thread-safe.
class AsyncEvents {
 public:
  class Source;

  // `bell`: null, or who hears of events. It must live until silence(), or as long as this.
  explicit AsyncEvents(AsyncBell* bell = nullptr) : bell_(bell) {}
  ~AsyncEvents();
  AsyncEvents(const AsyncEvents&) = delete;
  AsyncEvents& operator=(const AsyncEvents&) = delete;

  // As Context::poll_async_event() and Context::async_event_fd().
  [[nodiscard]] std::optional<AsyncEvent> poll();
  [[nodiscard]] Result<int> fd();
  // The bell is not rung any more when this returns.
  void silence();

 private:
  void add(Source& source) noexcept;
  void remove(Source& source) noexcept;

  const ForkGuard process_;
  std::mutex mu_;
  Source* oldest_ = nullptr;  // a list, linked in both directions
  Source* newest_ = nullptr;
  AsyncBell* bell_;
  int fd_ = -1;  // counts 1 while there is an event; once asked for
};

// A member of an object: the place of one kind of its events. The object's own lock guards the calls.
class AsyncEvents::Source {
 public:
  Source() = default;
  ~Source() { withdraw(); }
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  // Tells `to`; nothing while the last event waits. Allocates nothing.
  void raise(const std::shared_ptr<AsyncEvents>& to, const AsyncEvent& event) noexcept;
  // What waits is never told.
  void withdraw() noexcept;

 private:
  friend class AsyncEvents;

  std::shared_ptr<AsyncEvents> events_;
  // Guarded by the lock of events_.
  AsyncEvent event_;
  Source* before_ = nullptr;
  Source* behind_ = nullptr;
  bool waits_ = false;
};

}  // namespace iwarp::verbs
