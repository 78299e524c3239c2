// The threads of a Server in which handlers run, as an executor of Asio. A handler that is suspended in something else,
// such as a timer of the engine, comes back to its threads whenever that is over, so the executor keeps alive what it
// needs: after stop() whatever comes is destroyed in place of being run. Internal to rpc.
#pragma once

#include <boost/asio/execution.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace iwarp::rpc {

// Thread-safe.
class HandlerThreads final : public std::enable_shared_from_this<HandlerThreads> {
 public:
  class Executor;

  // So many, 1 or more. Ended by stop() alone: they keep the object alive. Throws std::system_error: no thread is to be
  // had.
  [[nodiscard]] static std::shared_ptr<HandlerThreads> start(unsigned threads);
  ~HandlerThreads();
  HandlerThreads(const HandlerThreads&) = delete;
  HandlerThreads& operator=(const HandlerThreads&) = delete;

  [[nodiscard]] Executor get_executor();
  // Nothing begins or goes on here from now. What waits here is destroyed by the thread that ends last; what comes
  // later by that thread too, or by who brings it. Harmless when repeated.
  void stop();
  // Waits until all threads have ended. In one of these it returns at once: they end by themselves after stop().
  void join();
  // Whether this is one of the threads.
  [[nodiscard]] bool here() const;

 private:
  // What came after stop().
  struct Late {
    virtual ~Late() = default;
  };
  template <class F>
  struct LateAct final : Late {
    explicit LateAct(F&& a) : act(std::move(a)) {}
    F act;
  };
  struct Context final : boost::asio::io_context {
    using io_context::io_context;
    void drop_everything() { shutdown(); }
  };

  explicit HandlerThreads(unsigned threads) : io_(static_cast<int>(threads)), work_(io_.get_executor()) {}
  void run();
  void drop();
  template <class F>
  void post(F act);

  Context io_;
  const boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  std::mutex mu_;
  std::condition_variable ended_;
  std::vector<std::thread> threads_;
  std::vector<std::unique_ptr<Late>> late_;
  unsigned running_ = 0;
  bool open_ = true;
  bool dropped_ = false;  // after the last thread's drop()
};

// Nothing is run inside execute() but by dispatch() in one of the threads.
class HandlerThreads::Executor {
 public:
  explicit Executor(std::shared_ptr<HandlerThreads> threads) : threads_(std::move(threads)) {}

  template <class F>
  void execute(F&& f) const {
    std::decay_t<F> act(std::forward<F>(f));
    if (in_place_ && threads_->here()) {
      act();
    } else {
      threads_->post(std::move(act));
    }
  }

  // As boost::asio::any_io_executor asks for them.
  [[nodiscard]] boost::asio::execution_context& query(boost::asio::execution::context_t) const noexcept {
    return threads_->io_;
  }
  [[nodiscard]] boost::asio::execution::blocking_t query(boost::asio::execution::blocking_t) const noexcept {
    if (in_place_) return boost::asio::execution::blocking.possibly;
    return boost::asio::execution::blocking.never;
  }
  [[nodiscard]] Executor require(boost::asio::execution::blocking_t::possibly_t) const { return {threads_, true}; }
  [[nodiscard]] Executor require(boost::asio::execution::blocking_t::never_t) const { return {threads_, false}; }
  friend bool operator==(const Executor&, const Executor&) noexcept = default;

 private:
  Executor(std::shared_ptr<HandlerThreads> threads, bool in_place)
      : threads_(std::move(threads)), in_place_(in_place) {}

  std::shared_ptr<HandlerThreads> threads_;
  bool in_place_ = true;
};

inline HandlerThreads::Executor HandlerThreads::get_executor() {
  return Executor(shared_from_this());
}

template <class F>
void HandlerThreads::post(F act) {
  const std::unique_lock lock(mu_);
  if (open_) {
    boost::asio::require(io_.get_executor(), boost::asio::execution::blocking.never).execute(std::move(act));
  } else if (!dropped_) {
    late_.push_back(std::make_unique<LateAct<F>>(std::move(act)));
  }
  // Else `act` goes, behind the lock.
}

}  // namespace iwarp::rpc
