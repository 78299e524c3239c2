// Engine: moves the octets of connections. It owns or borrows a Boost.Asio io_context and has one verbs::Context, its
// own or one that it shares with other engines.
//
// Who does the I/O:
//  - Automatic: a background thread, which the first listen, connect or async_poll starts. A thread in
//    CompletionQueue::wait_for() takes the I/O over for as long as it waits, because handing a message from thread to
//    thread costs more than the message. The background thread takes no signals. Before it sleeps it looks at the
//    sockets for 500 us (kUsualSpin) after the last octet, as long as that pays; meanwhile others are served every 250
//    us (50 us while TCP takes no more), and at once what those post who are told of something. So a thread whose
//    messages come less than 500 us apart keeps a processor busy. Where more engines of one Context have connections
//    than half of the processors, they do not look but sleep at once. A thread that polls a queue instead calls
//    poll(queue) each time: while it finds nothing it does the I/O itself, of the queue's connections first, and the
//    background thread keeps away. That one is back when the queue is armed, or 1 to 2 ms after the last such call. A
//    thread that waits for something else than a completion, of which a notifier tells it, calls wait_until().
//  - Manual: the caller, in poll() and wait_for(), and nobody else: lowest latency.
//  - Borrowed: the caller runs the io_context, in threads of its own. wait_for() only sleeps.
//
// Handlers that throw: the exception passes to the caller of wait_for() or poll() in whose thread the handler ran, as
// with io_context::run(); the next call goes on with the other handlers. In the background thread, and in the
// destructor, it ends the process (std::terminate). In automatic mode either thread may run a handler, so let handlers
// catch what they throw.
//
// Several engines, a thread each, may share one Context: the memory, the Protection Domains and the shared receive
// queues of it serve connections of all of them (RFC 5040 s8.1.1 leaves it open who moves a stream). A connection
// belongs to one engine, which moves its octets and runs its handlers. Completion queues take completions of any
// engine; wait_for() of one moves the I/O of its own engine, and sleeps for the others'.
//
// End: destroy the engine after everything that uses it, listeners and undecided requests above all. The destructor
// resets open connections (they report kAborted) and completes every operation that has not completed with kAborted:
// handlers go to their executors, and those without one run in the destructor. Of a Connection that outlives the engine
// only the inspecting calls may be used.
//
// fork(): in the child nothing of an engine moves, and what was made before fork() refuses every call: operations
// complete at once, inside the initiating call, with kInvalidArgument; waits and poll() return at once; destructors
// leave alone what the parent uses.
//
// Thread-safe.
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
#include "iwarp/cm/operations.h"
#include "iwarp/verbs/completion_queue.h"
#include "iwarp/verbs/context.h"
#include "iwarp/verbs/own_process.h"
#include "iwarp/verbs/queue_pair.h"

namespace iwarp::cm {

class Connection;

class Engine final : public verbs::Progress {
 public:
  // Who does the I/O, see above.
  enum class Mode : std::uint8_t { kAutomatic, kManual };

  // How long a thread in CompletionQueue::wait_for() looks at the sockets behind the last octet before it sleeps: twice
  // what a peer takes over a batch of a MiB with its CRC, as a thread that sleeps in the midst of a stream costs its
  // peer a wake-up in the midst of sending.
  static constexpr std::chrono::microseconds kUsualSpin{500};
  // `spin`: in place of kUsualSpin, 0 to 1 s (what lies beyond counts as the nearer of these). 0: it sleeps at once,
  // which spares the processor and costs a sleep and a wake-up for each message; for hosts with fewer idle processors
  // than waiting threads. Of no effect in manual mode and on a host with a single processor.
  // `context`: of another engine, to share it; null: one of its own.
  explicit Engine(Mode mode = Mode::kAutomatic, std::chrono::microseconds spin = kUsualSpin,
                  std::shared_ptr<verbs::Context> context = nullptr);
  // `io` must outlive the engine, and be run by the caller. `context`: as above.
  explicit Engine(boost::asio::io_context& io, std::shared_ptr<verbs::Context> context = nullptr);
  ~Engine() override;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // What its connections share, and those of other engines made with it; for ProtectionDomain.
  [[nodiscard]] const std::shared_ptr<verbs::Context>& context() const { return context_; }
  // Connections that it serves, and undecided requests that were moved to it (ConnectRequest::move_to()).
  [[nodiscard]] std::size_t load() const;
  // How long a waiting thread looks at the sockets before it sleeps. 0: it does not: as asked for, with one processor,
  // in manual mode, with a borrowed io_context, or, for now, as too many engines of the Context have connections.
  [[nodiscard]] std::chrono::microseconds spin() const;
  // Expires when the engine is destroyed.
  [[nodiscard]] std::weak_ptr<const void> life() const { return life_; }
  // The io_context that it owns or has borrowed. Not to be called in a forked child.
  [[nodiscard]] boost::asio::io_context& io() { return reactor_->io; }
  // Whether that is borrowed.
  [[nodiscard]] bool borrows() const { return borrowed_; }
  using executor_type = boost::asio::io_context::executor_type;  // of get_executor(), as Asio looks for it
  // Where handlers run that name no executor.
  [[nodiscard]] executor_type get_executor() { return reactor_->io.get_executor(); }

  // From now on new connections are tapped. Call it before the first listen or connect.
  void set_tap_maker(TapMaker maker) { tap_maker_ = std::move(maker); }
  // Empty: they are not.
  [[nodiscard]] const TapMaker& tap_maker() const { return tap_maker_; }

  // Manual mode: does what can be done without blocking.
  void poll();
  // For a thread that polls `cq`, before each look at it: does nothing when a completion waits there, else as poll(),
  // in automatic mode too. From the 16th call that found the queue empty (pace::kEmptyPolls), each of these within 200
  // us of the one before, the background thread leaves the I/O to such calls, except while `cq` is armed. Any thread,
  // any number of them.
  void poll(verbs::CompletionQueue& cq);
  // For a thread that polls `cq` where others want its processor: sleeps until something comes for a connection of the
  // engine, 100 us at most (pace::kDoze), and counts as a poll. False, at once: there are no connections, or more than
  // 32, a completion waits, TCP does not take what is to be sent, or the background thread does the I/O. Any thread,
  // any number of them.
  // What comes by other ways, such as through memory that another thread or process writes, does not end it.
  bool doze(verbs::CompletionQueue& cq);
  // Sleeps until `ready` is true, or the deadline has passed; whether it is true. As in CompletionQueue::wait_for() the
  // waiting thread takes the I/O over meanwhile, and runs handlers. `ready` is asked often, in this thread, also with a
  // lock of the engine held: it looks at an atomic, or the like. Who makes it true, a notifier for example, calls
  // look_again() afterwards; who wants to cancel the wait makes it true. Not to be called from a handler.
  bool wait_until(const std::function<bool()>& ready, TimePoint deadline) {
    return wait_until(ready, nullptr, true, deadline);
  }
  // Whether the calling thread leads: it runs the io_context, or looks at sockets between two runs of it. What belongs
  // into the thread of the io_context may be done at once then.
  [[nodiscard]] bool leads_here() const;
  // Those in wait_until() are to ask again. Any thread, with any locks of queue pairs and completion queues held: a
  // Notifier may call it. Without anybody there it costs next to nothing.
  void look_again();
  // For a thread that was in wait_until(), or polled, and is about to sleep without the engine: the background thread
  // leads at once, not a millisecond or two later. Of no effect where it leads already, and while another thread waits.
  // Any thread; may be called at any time.
  void hand_over();
  // Sleeps until the future of an asynchronous call (async_connect() with boost::asio::use_future, say) is ready; false
  // on time-out. As in CompletionQueue::wait_for() the waiting thread takes the I/O over and runs handlers, which saves
  // two hand-overs between threads. Not to be called from a handler.
  template <class T>
  bool wait_for(const std::future<T>& future, std::chrono::nanoseconds timeout) {
    const auto ready = [&] { return future.wait_for(std::chrono::seconds{0}) == std::future_status::ready; };
    return wait_until(ready, nullptr, false, add_saturating(std::chrono::steady_clock::now(), timeout));
  }

  // --- For completion queues: verbs::Progress.
  bool wait(verbs::CompletionQueue& cq, TimePoint deadline) override;
  void wake(verbs::CompletionQueue& cq) override;
  void armed() override;

  // --- For cm.
  // Starts the background thread of automatic mode once.
  void start();
  [[nodiscard]] const std::shared_ptr<Operations>& operations() const { return operations_; }
  void add(const std::shared_ptr<Connection>& connection);
  // Its socket is released: it counts in load() no more.
  void ended(Connection* connection);
  void remove(Connection* connection);
  // kInvalidArgument: the queue pair is of another Context.
  [[nodiscard]] Result<void> serves(const verbs::QueuePair& qp) const;
  // Counts in load() as long as somebody holds it.
  [[nodiscard]] std::shared_ptr<void> take_place();
  [[nodiscard]] FallbackMemory& fallbacks() { return fallbacks_; }
  // Null: not tapped.
  [[nodiscard]] std::shared_ptr<ByteTap> make_tap(const TapTarget& target) const {
    return tap_maker_ ? tap_maker_(target) : nullptr;
  }

 private:
  struct Looked {
    bool few = false;                                                  // connections: else nothing was done
    bool moved = false, blocked = false, told = false, taken = false;  // Connection::Driven of any of them
  };

  struct Known {
    std::weak_ptr<Connection> connection;
    bool live = true;  // its socket is open
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
  // Runs the handlers that are ready, for the last time.
  void run_last_handlers();
  void detach_connections();
  // Precondition: connections_mu_ held.
  void count_out(Known& known);
  // Precondition of these two: mu_ held. False when the table has no such transition.
  bool step(LeaderInput on);
  bool step(BackgroundInput on);
  // The same, but no lock is needed: pollers take none.
  bool step(PollingInput on);
  // Somebody else may lead now. Precondition: mu_ held.
  void pass_on();
  // Whether the background thread leads, and goes on.
  [[nodiscard]] bool background_leads() const {
    return leader_.load() == Leader::kBackground && polling_.load() == Polling::kSettled;
  }
  // It is to lead now. Precondition: mu_ held.
  void call_background();
  // Until there is something to look at again.
  void follow(std::unique_lock<std::mutex>& lock, const std::function<bool()>& ready, bool queue, TimePoint deadline);
  void interrupt();
  // Drives connections without asking the reactor: all, when they are few, or some of those of `cq`.
  Looked drive_hot(TimePoint now, verbs::CompletionQueue* cq = nullptr);
  // All of them, or none when `out` has no room.
  std::size_t few_connections(std::span<std::shared_ptr<Connection>> out);
  [[nodiscard]] Looked drive_all(std::span<const std::shared_ptr<Connection>> some, TimePoint now);
  // poll() of either kind; `cq` may be null.
  void move(TimePoint now, verbs::CompletionQueue* cq);
  // The leader's: waits until `ready`. Whatever is busy, the reactor gets its turns.
  void lead(const std::function<bool()>& ready, bool spins, TimePoint deadline);
  // Looks at the sockets until it is ready, or nothing comes; the reactor gets its turns.
  void spin(const std::function<bool()>& ready, TimePoint now, TimePoint deadline);
  // Until a handler has run, or the deadline.
  void sleep(TimePoint now, TimePoint deadline);
  void serve_reactor(TimePoint now);
  // Counts one that found its queue empty.
  unsigned polls_in_a_row(TimePoint now);
  // Waits and polls so far: where that number stands still, the background thread is needed.
  [[nodiscard]] std::uint64_t busy() const { return waits_ + polls_.load(std::memory_order_relaxed); }
  // A handler that just ran may have made one ready.
  void tell_futures();
  // `cq`: the queue that `ready` asks about, or null. `spins`: it looks at the sockets before it sleeps.
  bool wait_until(const std::function<bool()>& ready, verbs::CompletionQueue* cq, bool spins, TimePoint deadline);

  verbs::OwnProcess<Reactor> reactor_;
  Mode mode_;
  bool borrowed_;
  std::shared_ptr<verbs::Context> context_;
  std::shared_ptr<Operations> operations_;
  TapMaker tap_maker_;
  std::shared_ptr<const void> life_ = std::make_shared<char>();

  std::mutex mu_;
  std::atomic<Leader> leader_{Leader::kNobody};  // changed with mu_ held
  Background background_ = Background::kNone;
  std::size_t waiters_ = 0;
  std::uint64_t waits_ = 0;               // waits that led, to tell one long wait from many short ones
  std::atomic<std::uint64_t> polls_{0};   // that kept the background thread away
  std::atomic<unsigned> empty_polls_{0};  // in a row
  std::atomic<TimePoint> empty_poll_{};   // the last of them
  std::atomic<Polling> polling_{Polling::kSettled};
  std::uint64_t armings_ = 0;           // that waits_ make up for: pace::kArmingsOfAWait each
  std::atomic<unsigned> askers_{0};     // threads in wait_until() of something else than queues and futures
  std::atomic<bool> ask_again_{false};  // a note of the leading thread to itself, by look_again()
  std::atomic<std::size_t> followers_{0};
  std::atomic<std::size_t> future_followers_{0};             // those of them that no completion will wake
  std::atomic<verbs::CompletionQueue*> leader_cq_{nullptr};  // a kQueueWaiter's
  std::atomic<std::thread::id> leader_thread_{};             // of one that waits or polls; of none when it has left
  std::thread thread_;
  const std::chrono::microseconds spin_;  // 0: never
  unsigned vain_spins_ = 0;               // in a row; these three belong to the leader
  unsigned spins_to_skip_ = 0;
  bool blocked_ = false;  // TCP took no more at the last look

  FallbackMemory fallbacks_;
  mutable std::mutex connections_mu_;  // guards these two
  std::unordered_map<Connection*, Known> connections_;
  std::size_t live_ = 0;  // of them
  const std::shared_ptr<std::atomic<std::size_t>> places_ = std::make_shared<std::atomic<std::size_t>>(0);
  std::atomic<TimePoint> reactor_polled_{};
};

}  // namespace iwarp::cm
