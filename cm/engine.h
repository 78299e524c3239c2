// Engine: makes connections go forward. Owns or borrows a Boost.Asio io_context and shares one verbs::Context.
//
// Automatic: a background thread, started by the first listen or connect, serves all connections; a thread that waits
// in CompletionQueue::wait_for() takes the I/O over for as long as it waits (leader/follower), because a hand-over
// between threads costs more than the message; before it sleeps it looks at the sockets for 500 us (kUsualSpin) behind
// the last octet, as long as that pays, and every 250 us (50 while TCP takes no more of what is to be sent) it serves
// the others: a thread whose messages come less than 500 us apart keeps a processor busy. Manual: nothing moves but in
// poll() and wait_for(), in the caller's thread: lowest latency. Borrowed: the caller runs its io_context, in threads
// of its own; wait_for() only sleeps.
//
// A handler that throws: the exception passes to the caller of wait_for() or poll() in whose thread it ran, as with
// io_context::run(), and the next call goes on; what was to be called besides is called then. One that throws in the
// background thread ends the process (std::terminate), as in any thread without a catch; so does one that is called by
// the destructor. A wait may be served by either thread: in automatic mode let handlers catch what they throw.
//
// Thread-safe. Destroy it after everything that uses it, listeners and undecided requests above all. Connections still
// open are reset then, and report kAborted; of a Connection that outlives the engine only the inspecting calls may be
// used. In a forked child nothing of it moves, and what is made before fork() refuses every call there: operations
// complete at once, inside the initiating call, with kInvalidArgument; waits and poll() return at once; destructors
// leave alone what the parent uses.
#pragma once

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <condition_variable>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>

#include "iwarp/cm/byte_tap.h"
#include "iwarp/cm/fallback_memory.h"
#include "iwarp/cm/leader.h"
#include "iwarp/verbs/completion_queue.h"
#include "iwarp/verbs/context.h"
#include "iwarp/verbs/own_process.h"

namespace iwarp::cm {

class Connection;

class Engine final : public verbs::Progress {
 public:
  enum class Mode : std::uint8_t { kAutomatic, kManual };

  // How long a thread in CompletionQueue::wait_for() looks at the sockets behind the last octet before it sleeps: twice
  // what a peer takes over a batch of a MiB with its CRC, as a thread that sleeps in the midst of a stream costs its
  // peer a wake-up in the midst of sending.
  static constexpr std::chrono::microseconds kUsualSpin{500};
  // `spin`: in place of kUsualSpin, 0 to 1 s (what lies beyond counts as the nearer of these). 0: it sleeps at once,
  // which spares the processor and costs a sleep and a wake-up for each message; for hosts with fewer idle processors
  // than waiting threads. Of no effect in manual mode and on a host with a single processor.
  explicit Engine(Mode mode = Mode::kAutomatic, std::chrono::microseconds spin = kUsualSpin);
  // `io` must outlive the engine, and be run by the caller.
  explicit Engine(boost::asio::io_context& io);
  ~Engine() override;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  [[nodiscard]] const std::shared_ptr<verbs::Context>& context() const { return context_; }
  // Expires when the engine is destroyed.
  [[nodiscard]] std::weak_ptr<const void> life() const { return life_; }
  [[nodiscard]] boost::asio::io_context& io() { return reactor_->io; }

  // From now on new connections are tapped. Call it before the first listen or connect.
  void set_tap_maker(TapMaker maker) { tap_maker_ = std::move(maker); }

  // Manual mode: does what can be done without blocking.
  void poll();
  // Sleeps until the future of an asynchronous call (async_connect() with boost::asio::use_future, say) is ready; false
  // on time-out. As in CompletionQueue::wait_for() the waiting thread takes the I/O over and runs handlers, which saves
  // two hand-overs between threads. Not to be called from a handler.
  template <class T>
  bool wait_for(const std::future<T>& future, std::chrono::nanoseconds timeout) {
    const auto ready = [&] { return future.wait_for(std::chrono::seconds{0}) == std::future_status::ready; };
    return wait_until(ready, nullptr, add_saturating(std::chrono::steady_clock::now(), timeout));
  }

  // verbs::Progress
  bool wait(verbs::CompletionQueue& cq, TimePoint deadline) override;
  void wake(verbs::CompletionQueue& cq) override;

  // --- For cm.
  // Starts the background thread of automatic mode once.
  void start();
  void add(const std::shared_ptr<Connection>& connection);
  void remove(Connection* connection);
  [[nodiscard]] FallbackMemory& fallbacks() { return fallbacks_; }
  // Null: not tapped.
  [[nodiscard]] std::shared_ptr<ByteTap> make_tap(const TapTarget& target) const {
    return tap_maker_ ? tap_maker_(target) : nullptr;
  }

 private:
  struct Looked {
    bool few = false;                                   // connections: else nothing was done
    bool moved = false, blocked = false, told = false;  // Connection::Driven of any of them
  };

  // What a forked child may not touch: locks of threads that it does not have, sockets that are its parent's as well.
  struct Reactor {
    explicit Reactor(boost::asio::io_context* borrowed);

    std::unique_ptr<boost::asio::io_context> owned;
    boost::asio::io_context& io;
    std::optional<boost::asio::executor_work_guard<boost::asio::io_context::executor_type>> work;
    boost::asio::steady_timer alarm;       // ends a long sleep; the leader's
    std::condition_variable followers_cv;  // waiting threads that do not lead
    std::condition_variable background_cv;
  };
  // A thread among the waiters, and one at the head of them: what they changed is put right when they end, with an
  // exception too.
  class Waiting;
  class Leading;

  void background();
  // Precondition of these two: mu_ held. False when the table has no such transition.
  bool step(LeaderInput on);
  bool step(BackgroundInput on);
  // Somebody else may lead now. Precondition: mu_ held.
  void pass_on();
  // Until there is something to look at again.
  void follow(std::unique_lock<std::mutex>& lock, const std::function<bool()>& ready, bool queue, TimePoint deadline);
  void interrupt();
  // Drives the connections without asking the reactor, when they are few.
  Looked drive_hot(TimePoint now);
  // The leader's: waits until `ready`. Whatever is busy, the reactor gets its turns.
  void lead(const std::function<bool()>& ready, verbs::CompletionQueue* cq, TimePoint deadline);
  // Looks at the sockets until there is a completion, or nothing comes; the reactor gets its turns.
  void spin(verbs::CompletionQueue& cq, TimePoint now, TimePoint deadline);
  // Until a handler has run, or the deadline.
  void sleep(TimePoint now, TimePoint deadline);
  void serve_reactor(TimePoint now);
  // A handler that just ran may have made one ready.
  void tell_futures();
  // `cq`: the queue that `ready` asks about, or null.
  bool wait_until(const std::function<bool()>& ready, verbs::CompletionQueue* cq, TimePoint deadline);

  verbs::OwnProcess<Reactor> reactor_;
  Mode mode_;
  bool borrowed_;
  std::shared_ptr<verbs::Context> context_;
  TapMaker tap_maker_;
  std::shared_ptr<const void> life_ = std::make_shared<char>();

  std::mutex mu_;
  std::atomic<Leader> leader_{Leader::kNobody};  // changed with mu_ held
  Background background_ = Background::kNone;
  std::size_t waiters_ = 0;
  std::uint64_t waits_ = 0;  // waits that led, to tell one long wait from many short ones
  std::atomic<std::size_t> followers_{0};
  std::atomic<std::size_t> future_followers_{0};             // those of them that no completion will wake
  std::atomic<verbs::CompletionQueue*> leader_cq_{nullptr};  // a kQueueWaiter's
  std::atomic<std::thread::id> leader_thread_{};             // of a waiting thread
  std::thread thread_;
  const std::chrono::microseconds spin_;  // 0: never
  unsigned vain_spins_ = 0;               // in a row; these three belong to the leader
  unsigned spins_to_skip_ = 0;
  bool blocked_ = false;  // TCP took no more at the last look

  FallbackMemory fallbacks_;
  std::mutex connections_mu_;
  std::unordered_map<Connection*, std::weak_ptr<Connection>> connections_;
  std::atomic<TimePoint> reactor_polled_{};
};

}  // namespace iwarp::cm
