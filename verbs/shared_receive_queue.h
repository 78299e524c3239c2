// SharedReceiveQueue: Receives for the messages of any number of queue pairs, of any connections and threads (an SRQ of
// libibverbs). A queue pair is made with it (QueuePair::Options::srq); a message takes the oldest Receive when its
// first segment has come, and completes it in the receive queue's completion queue of its queue pair. Thread-safe.
//
// A message that finds none ends its connection, as one does that finds no Receive of its own queue pair, or waits, as
// its queue pair was made (StreamOptions::receive_wait): a peer that
// sends much can use up what others need (RFC 5042 s6.4.3.1). set_limit() warns before, the completions and
// QueuePair::receives_taken() tell who takes how many, and QueuePair::abort() ends who takes too many. A connection
// holds one Receive at a time whose message has not come whole.
//
// It may be destroyed before its queue pairs, and at any time when no other thread is in a call of it. What was not
// taken then never completes, and nothing reads or writes its memory; to its queue pairs it is empty from there on. In
// a forked child its calls fail or do nothing.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <span>

#include "iwarp/base/result.h"
#include "iwarp/rdmap/shared_receives.h"
#include "iwarp/verbs/async_event.h"
#include "iwarp/verbs/context.h"

namespace iwarp::verbs {

class QueuePair;

class SharedReceiveQueue {
 public:
  struct Options {
    // Receives that may be posted and not taken, 1 to 2^24. Memory is taken for as many as there ever are at a time,
    // 1.1 KiB for eight.
    std::size_t depth = 256;
  };
  // What queue pairs share with it.
  class Shared;
  class Waiter;

  // For the queue pairs of that Protection Domain. With options that usable() refuses it takes no post.
  SharedReceiveQueue(const ProtectionDomain& pd, const Options& options);
  // Waits while a Receive is being taken; that does not block.
  ~SharedReceiveQueue();
  SharedReceiveQueue(const SharedReceiveQueue&) = delete;
  SharedReceiveQueue& operator=(const SharedReceiveQueue&) = delete;

  // kInvalidArgument: the depth is out of range. A queue pair with such a queue is not usable either.
  [[nodiscard]] const Result<void>& usable() const { return usable_; }

  // kQueueFull, kInvalidArgument (4 GiB or more, used after fork()), kResource (no memory for another one). The memory
  // named must stay registered and untouched until the completion. That it is not registered for local write ends the
  // connection whose message takes it.
  [[nodiscard]] Result<void> post_recv(const rdmap::RecvWr& wr) { return post_recv(std::span{&wr, 1}); }
  // A list. On error the requests before the refused one stay posted; `posted` (if given) tells how many.
  [[nodiscard]] Result<void> post_recv(std::span<const rdmap::RecvWr> list, std::size_t* posted = nullptr);

  // kSrqLimitReached follows, once, when fewer than `limit` are posted: at once if it is so already. 0 (as at first):
  // never; else at most depth(). Replaces what was set before, but an event that waits is told. kInvalidArgument: more
  // than depth(), used after fork(). As ibv_modify_srq() with IBV_SRQ_LIMIT.
  [[nodiscard]] Result<void> set_limit(std::size_t limit);
  // What is set and was not reached; 0: nothing.
  [[nodiscard]] std::size_t limit() const;
  // Receives posted and not taken.
  [[nodiscard]] std::size_t posted() const;
  [[nodiscard]] std::size_t depth() const { return depth_; }        // as asked for; 0: usable() says why
  [[nodiscard]] const ProtectionDomain& pd() const { return pd_; }  // that of its queue pairs

  // For queue pairs, which may outlive it.
  [[nodiscard]] const std::shared_ptr<Shared>& shared() const { return shared_; }

 private:
  [[nodiscard]] Result<void> may_use() const;

  ProtectionDomain pd_;
  Result<void> usable_;
  std::size_t depth_;
  std::shared_ptr<Shared> shared_;
};

// A queue pair of which a message waits for a Receive (StreamOptions::receive_wait). Thread-safe.
class SharedReceiveQueue::Waiter {
 public:
  // By the queue pair that waits.
  explicit Waiter(QueuePair& qp) : qp_(&qp) {}
  // The queue pair goes.
  void let_go() {
    const std::lock_guard lock(mu_);
    qp_ = nullptr;
  }
  // Receives were posted. Without a lock.
  void tell();

 private:
  friend class SharedReceiveQueue::Shared;
  enum class Place : std::uint8_t { kNone, kInLine, kServed };  // kServed: it may take one, before all in the line

  std::mutex mu_;  // taken before the queue pair's
  QueuePair* qp_;
  Place place_ = Place::kNone;  // guarded by the queue's
};

// Lives as long as anybody holds it. Thread-safe.
class SharedReceiveQueue::Shared {
 public:
  // By the queue, whose part it is.
  Shared(SharedReceiveQueue& queue, std::size_t depth);

  // As rdmap::ReceiveSource::take(). False when the queue is gone, too. Where there is none, or others wait for one,
  // `waiter` hears when it is its turn. Null: it does not wait, nor for others.
  [[nodiscard]] bool take(rdmap::RecvWr& wr, const std::shared_ptr<Waiter>& waiter);
  // It waits no more.
  void forget(Waiter& waiter);

 private:
  friend class SharedReceiveQueue;

  // Without the lock: lets those take who wait, as long as there are Receives.
  void serve_waiters();
  [[nodiscard]] bool stand_in_line(const std::shared_ptr<Waiter>& waiter);  // precondition: mu_ held
  // Precondition of these: mu_ held, by a member of the queue or before it is gone.
  [[nodiscard]] Result<void> post(const rdmap::RecvWr& wr);
  void warn();
  void close();

  mutable std::mutex mu_;
  rdmap::SharedReceives receives_;
  // In the order in which their messages came. While there are any, or any is served, and Receives too, a thread is in
  // serve_waiters(), or about to be.
  std::deque<std::shared_ptr<Waiter>> waiters_;
  std::size_t served_ = 0;     // those taken from it that have still to take a Receive
  SharedReceiveQueue* queue_;  // null: it is gone
  AsyncEvents::Source limit_reached_;
};

}  // namespace iwarp::verbs
