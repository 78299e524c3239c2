// CompletionChannel: one file descriptor (eventfd) for many completion queues, to sleep on in poll(2) or an event loop
// of one's own. The engine's threads must run for it to fire. Thread-safe.
#pragma once

#include <deque>
#include <mutex>
#include <optional>

#include "iwarp/base/result.h"
#include "iwarp/verbs/completion_queue.h"

namespace iwarp::verbs {

class CompletionChannel final : public Notifier {
 public:
  // Throws std::system_error when no descriptor is to be had.
  CompletionChannel();
  ~CompletionChannel() override;
  CompletionChannel(const CompletionChannel&) = delete;
  CompletionChannel& operator=(const CompletionChannel&) = delete;

  // Readable while an event waits. Owned by this object.
  [[nodiscard]] int fd() const { return fd_; }
  // Makes the next completion of `cq` (or the next solicited one) an event here. One-shot; poll `cq` again afterwards.
  void arm(CompletionQueue& cq, CompletionQueue::Notify what = CompletionQueue::Notify::kNext) { cq.arm(what, *this); }
  // The queue whose event is the oldest; nullopt when there is none. Does not block.
  [[nodiscard]] std::optional<CompletionQueue*> next_event();

  void notify(CompletionQueue& cq) noexcept override;

 private:
  int fd_;
  std::mutex mu_;
  std::deque<CompletionQueue*> events_;
};

}  // namespace iwarp::verbs
