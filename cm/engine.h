// Engine: makes connections go forward. Owns or borrows a Boost.Asio io_context and shares one verbs::Context.
//
// Automatic: a background thread, started by the first listen or connect, serves all connections; a thread that waits
// in CompletionQueue::wait_for() takes the I/O over for as long as it waits (leader/follower), because a hand-over
// between threads costs more than the message. Manual: nothing moves but in poll() and wait_for(), in the caller's
// thread: lowest latency. Borrowed: the caller runs its io_context, in threads of its own; wait_for() only sleeps.
//
// Thread-safe. Destroy it after everything that uses it, listeners and undecided requests above all. Connections still
// open are reset then, and report kAborted; of a Connection that outlives the engine only the inspecting calls may be
// used. In a forked child nothing of it moves.
#pragma once

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>

#include "iwarp/cm/byte_tap.h"
#include "iwarp/verbs/completion_queue.h"
#include "iwarp/verbs/context.h"

namespace iwarp::cm {

class Connection;

class Engine final : public verbs::Progress {
 public:
  enum class Mode : std::uint8_t { kAutomatic, kManual };

  explicit Engine(Mode mode = Mode::kAutomatic);
  // `io` must outlive the engine, and be run by the caller.
  explicit Engine(boost::asio::io_context& io);
  ~Engine() override;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  [[nodiscard]] const std::shared_ptr<verbs::Context>& context() const { return context_; }
  // Expires when the engine is destroyed.
  [[nodiscard]] std::weak_ptr<const void> life() const { return life_; }
  [[nodiscard]] boost::asio::io_context& io() { return *io_; }

  // From now on new connections are tapped. Call it before the first listen or connect.
  void set_tap_maker(TapMaker maker) { tap_maker_ = std::move(maker); }

  // Manual mode: does what can be done without blocking.
  void poll();

  // verbs::Progress
  bool wait(verbs::CompletionQueue& cq, std::chrono::steady_clock::time_point deadline) override;
  void wake(verbs::CompletionQueue& cq) override;

  // --- For cm.
  // Starts the background thread of automatic mode once.
  void start();
  void add(const std::shared_ptr<Connection>& connection);
  void remove(Connection* connection);
  // Null: not tapped.
  [[nodiscard]] std::shared_ptr<ByteTap> make_tap(const TapTarget& target) const {
    return tap_maker_ ? tap_maker_(target) : nullptr;
  }

 private:
  void background();
  void interrupt();

  std::unique_ptr<boost::asio::io_context> owned_io_;
  boost::asio::io_context* io_;
  std::optional<boost::asio::executor_work_guard<boost::asio::io_context::executor_type>> work_;
  Mode mode_;
  bool borrowed_;
  std::shared_ptr<verbs::Context> context_;
  TapMaker tap_maker_;
  std::shared_ptr<const void> life_ = std::make_shared<char>();

  std::mutex mu_;
  std::condition_variable followers_cv_;  // waiting threads that do not lead
  std::condition_variable background_cv_;
  bool leading_ = false;  // some thread runs the io_context
  bool background_leads_ = false;
  bool background_sleeps_ = false;  // until told: a thread has been waiting for long
  bool stop_ = false;
  std::size_t waiters_ = 0;
  std::uint64_t waits_ = 0;  // waits begun, to tell one long wait from many short ones
  std::atomic<std::size_t> followers_{0};
  std::atomic<verbs::CompletionQueue*> leader_cq_{nullptr};
  std::atomic<std::thread::id> leader_{};
  std::thread thread_;

  std::mutex connections_mu_;
  std::unordered_map<Connection*, std::weak_ptr<Connection>> connections_;
  std::atomic<unsigned> polls_{0};
};

}  // namespace iwarp::cm
