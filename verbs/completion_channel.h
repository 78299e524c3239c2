// CompletionChannel: one file descriptor (eventfd) for many completion queues, to sleep on in poll(2) or an event loop
// of one's own. The engine's threads must run for it to fire. Thread-safe. Channel and queues may go in any order. In a
// forked child, what was made before does nothing.
#pragma once

#include <memory>
#include <optional>

#include "iwarp/verbs/completion_queue.h"

namespace iwarp::verbs {

class CompletionChannel {
 public:
  // Throws std::system_error when no descriptor is to be had.
  CompletionChannel();
  ~CompletionChannel();
  CompletionChannel(const CompletionChannel&) = delete;
  CompletionChannel& operator=(const CompletionChannel&) = delete;

  // Readable while an event waits. Owned by this object.
  [[nodiscard]] int fd() const;
  // Makes the next completion of `cq` (or the next solicited one) an event here. One-shot; poll `cq` again afterwards.
  // Takes the memory for that event, so that a completion needs none: throws std::bad_alloc when there is none.
  void arm(CompletionQueue& cq, CompletionQueue::Notify what = CompletionQueue::Notify::kNext);
  // The queue whose event is the oldest, of those that still exist; nullopt when there is none. Does not block.
  [[nodiscard]] std::optional<CompletionQueue*> next_event();

 private:
  class Events;

  std::shared_ptr<Events> events_;  // queues that are armed share it
};

}  // namespace iwarp::verbs
