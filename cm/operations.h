// The asynchronous operations of one engine whose handlers have not run yet, so that an engine that goes can complete
// them, and the means to cancel some of them. Thread-safe.
#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/intrusive/list.hpp>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "iwarp/verbs/fork_guard.h"

namespace iwarp::cm {

class Operations {
 public:
  using Hook = boost::intrusive::list_base_hook<boost::intrusive::link_mode<boost::intrusive::normal_link>>;
  class Operation : public Hook, public std::enable_shared_from_this<Operation> {
   public:
    Operation() = default;
    virtual ~Operation() = default;
    Operation(const Operation&) = delete;
    Operation& operator=(const Operation&) = delete;
    // Called by abandon() when it has not completed. To be set once, while it is being started.
    void set_before_abandon(std::function<void()> act) { before_abandon_ = std::move(act); }

   protected:
    // Completes it with kAborted. If it has completed, and its handler has not run, takes its results away: they go
    // before this returns, and the handler hears kAborted.
    virtual void abandon() = 0;
    void before_abandon() {
      if (before_abandon_) before_abandon_();
    }

   private:
    friend class Operations;
    std::function<void()> before_abandon_;
    bool listed_ = false;  // guarded by the lock of the list
  };

  explicit Operations(boost::asio::io_context& io) : io_(io) {}

  // Where handlers run that name no executor. Not to be used when closed().
  [[nodiscard]] boost::asio::io_context& io() const { return io_; }
  // False in a forked child.
  [[nodiscard]] bool alive() const { return process_.alive(); }
  // The engine is going, or gone.
  [[nodiscard]] bool closed() const { return closed_.load(std::memory_order_acquire); }

  // False: closed, and nothing was done. `operation` is to be removed before it is destroyed.
  [[nodiscard]] bool add(Operation& operation);
  // Harmless when it is not in here.
  void remove(Operation& operation);
  // Abandons all.
  void close();

 private:
  boost::asio::io_context& io_;
  const verbs::ForkGuard process_;
  std::atomic<bool> closed_{false};
  std::mutex mu_;
  boost::intrusive::list<Operation> under_way_;
};

// Joins an operation to whoever may cancel it.
class Canceller {
 public:
  // By the operation, once it is under way: what cancels it. Called at once if that was asked for already, else once at
  // most, without a lock; not after drop().
  void set(std::function<void()> act);
  void cancel();
  // The operation has completed.
  void drop();

 private:
  std::mutex mu_;
  std::function<void()> act_;
  bool asked_ = false, over_ = false;
};

// Cancels all operations that an object has started.
class Cancellers {
 public:
  // A new one.
  [[nodiscard]] std::shared_ptr<Canceller> make();
  void cancel();

 private:
  std::mutex mu_;
  std::vector<std::weak_ptr<Canceller>> all_;
};

}  // namespace iwarp::cm
