// A thread that serves connections of a gateway: an event loop with an engine, turns of bulk work and a part of the
// memory budget. The first worker of a process is the thread of the process itself, which also accepts clients and owns
// the fronts; the others have threads of their own. A session lives on one worker, in its thread alone. The thread of
// the process may wait for a worker; a worker waits for nobody.
#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <cstddef>
#include <future>
#include <memory>
#include <thread>
#include <utility>

#include "iwarp/cm/engine.h"
#include "iwarp/gateway/turn_queue.h"
#include "iwarp/rpcrdma/memory_budget.h"

namespace iwarp::gateway {

class Worker {
 public:
  // In the thread that runs the io_context of `engine`, which must outlive the worker.
  Worker(cm::Engine& engine, std::shared_ptr<rpcrdma::MemoryBudget> memory);
  // In a thread of its own, from start() on. Its engine shares the Context of `first`, and has its taps.
  struct OwnThread {};
  Worker(OwnThread, const cm::Engine& first, std::shared_ptr<rpcrdma::MemoryBudget> memory);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Nothing, as end(), where the thread is that of the process. `number`: of the worker, for the thread's name.
  void start(std::size_t number);
  // Waits for the handler that its thread is in, and runs no other.
  void end();

  [[nodiscard]] cm::Engine& engine() const { return engine_; }
  [[nodiscard]] const std::shared_ptr<TurnQueue>& turns() const { return turns_; }
  // Its own part of that of the process.
  [[nodiscard]] const std::shared_ptr<rpcrdma::MemoryBudget>& memory() const { return memory_; }

  // Whether the calling thread is the worker's. Any thread that is no worker's counts as that of the process.
  [[nodiscard]] bool here() const { return current_ == (own_engine_ ? this : nullptr); }
  // Runs `task` in the worker's thread: at once if that is this one, else later, in the order of the calls.
  template <class Task>
  void run(Task task) {
    if (here()) return task();
    boost::asio::post(engine_.io(), std::move(task));
  }
  // The same, and waits. In the thread of the process only, and not after end().
  template <class Task>
  void run_and_wait(Task task) {
    if (here()) return task();
    std::promise<void> done;
    const auto is_done = done.get_future();
    boost::asio::post(engine_.io(), [&task, done = std::move(done)]() mutable {
      task();
      done.set_value();
    });
    is_done.wait();
  }
  // Has its connections give back the memory that they hold unused, later. Any thread.
  void ask_for_memory();

  // A client that it serves, or will: counted until this is destroyed. Any thread.
  [[nodiscard]] std::shared_ptr<const void> take_seat();
  [[nodiscard]] std::size_t seats() const { return *seats_; }

 private:
  static thread_local const Worker* current_;

  std::unique_ptr<boost::asio::io_context> own_io_;  // these two are null in the thread of the process
  std::unique_ptr<cm::Engine> own_engine_;
  cm::Engine& engine_;
  std::shared_ptr<TurnQueue> turns_;
  std::shared_ptr<rpcrdma::MemoryBudget> memory_;
  std::shared_ptr<std::atomic<bool>> asked_ = std::make_shared<std::atomic<bool>>(false);
  std::shared_ptr<std::atomic<std::size_t>> seats_ = std::make_shared<std::atomic<std::size_t>>(0);
  std::thread thread_;
};

}  // namespace iwarp::gateway
