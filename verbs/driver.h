// What the object model needs from the engine below the socket, implemented by cm and sctp_cm.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace iwarp::verbs {

class CompletionQueue;

// Moves the bytes of one queue pair.
class Driver {
 public:
  virtual ~Driver() = default;
  // Something was posted: send what can be sent now. Called in the posting thread with the queue pair's lock held; must
  // not block, and must not call back into the application. Should it throw std::bad_alloc the connection is ended, and
  // it is called again.
  virtual void kick() = 0;

  // What was agreed on with the peer; nullopt: nothing yet. With the queue pair's lock held.
  struct Agreed {
    std::uint16_t ird = 0, ord = 0;
    std::size_t mulpdu = 0;
    // Of MPA.
    bool crc = false, markers_sent = false, markers_received = false;
  };
  [[nodiscard]] virtual std::optional<Agreed> agreed() const { return std::nullopt; }
};

// Makes I/O go forward while a thread waits for a completion queue.
class Progress {
 public:
  virtual ~Progress() = default;
  // Returns when `cq` is not empty or the deadline has passed; true if it is not empty. Any thread.
  virtual bool wait(CompletionQueue& cq, std::chrono::steady_clock::time_point deadline) = 0;
  // A completion was added to `cq`, on which a thread may be waiting. Any thread; must not block.
  virtual void wake(CompletionQueue& cq) = 0;
  // Somebody is to be notified of the next completion of a queue, and may poll no more before. Any thread, with no lock
  // of the queue held; must not block.
  virtual void armed() {}
};

// Tells the time to a completion queue that holds a notification back.
class Alarm {
 public:
  virtual ~Alarm() = default;
  // CompletionQueue::Shared::period_over() is to be called at `when` or soon after, in a thread that holds no lock;
  // takes the place of what was set before. Any thread, with the locks of a queue pair and of the completion queue
  // held; must not block. False: it cannot.
  [[nodiscard]] virtual bool set(std::chrono::steady_clock::time_point when) noexcept = 0;
};

}  // namespace iwarp::verbs
