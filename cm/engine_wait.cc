// How a thread waits: it leads, or follows whoever does.
#include <poll.h>

#include <algorithm>
#include <array>
#include <boost/asio/post.hpp>

#include "iwarp/cm/connection.h"
#include "iwarp/cm/engine.h"
#include "iwarp/cm/engine_pace.h"

namespace iwarp::cm {

using Clock = std::chrono::steady_clock;

// Precondition and, at its end, postcondition: mu_ held.
class Engine::Waiting {
 public:
  explicit Waiting(Engine& engine) : e_(engine) { ++e_.waiters_; }
  ~Waiting() {
    --e_.waiters_;
    e_.pass_on();
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

 private:
  Engine& e_;
};

// From its making, with the step into leadership done, to its end the lock is not held.
class Engine::Leading {
 public:
  // `cq`: whose completions must wake this thread, or null.
  Leading(Engine& engine, std::unique_lock<std::mutex>& lock, verbs::CompletionQueue* cq) : e_(engine), lock_(lock) {
    e_.leader_thread_.store(std::this_thread::get_id());
    e_.leader_cq_.store(cq);
    lock_.unlock();
  }
  ~Leading() {
    lock_.lock();
    e_.leader_cq_.store(nullptr);
    e_.leader_thread_.store({});
    const bool polled = e_.leader_.load() == Leader::kPoller;
    e_.step(LeaderInput::kLeaves);
    if (polled) e_.pass_on();  // who waits does so when its wait ends
    if (polled && e_.polling_.load() == Polling::kHandedOver) e_.reactor_->background_cv.notify_one();
  }
  Leading(const Leading&) = delete;
  Leading& operator=(const Leading&) = delete;

 private:
  Engine& e_;
  std::unique_lock<std::mutex>& lock_;
};

void Engine::pass_on() {
  if (future_followers_.load() > 0) {
    reactor_->followers_cv.notify_all();  // handlers have run, of which the last may have thrown
  } else if (waiters_ > 0) {
    reactor_->followers_cv.notify_one();
  }
  if (step(BackgroundInput::kTold)) reactor_->background_cv.notify_one();
}

bool Engine::wait(verbs::CompletionQueue& cq, Clock::time_point deadline) {
  return wait_until([&cq] { return !cq.empty(); }, &cq, true, deadline);
}

namespace {

// Counted from here on: who makes something true afterwards sees the waiting thread, else that sees what is true.
class Counted {
 public:
  explicit Counted(std::atomic<unsigned>* count) : count_(count) {
    if (count_ != nullptr) count_->fetch_add(1);
  }
  ~Counted() {
    if (count_ != nullptr) count_->fetch_sub(1);
  }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

 private:
  std::atomic<unsigned>* const count_;
};

}  // namespace

bool Engine::wait_until(const std::function<bool()>& ready, verbs::CompletionQueue* cq, bool spins,
                        Clock::time_point deadline) {
  if (!context_->alive()) return false;
  const Counted counted(cq == nullptr && spins ? &askers_ : nullptr);
  const auto comes = cq != nullptr ? LeaderInput::kQueueWaiterComes : LeaderInput::kFutureWaiterComes;
  {
    std::unique_lock lock(mu_);
    const Waiting waiting(*this);
    while (!ready() && Clock::now() < deadline) {
      // A borrowed context runs in the threads that its owner chose, and in no other.
      if (borrowed_ || !step(comes)) {
        follow(lock, ready, cq != nullptr, deadline);
        continue;
      }
      ++waits_;
      const Leading leading(*this, lock, cq);
      lead(ready, spins, deadline);
    }
  }
  return ready();
}

void Engine::follow(std::unique_lock<std::mutex>& lock, const std::function<bool()>& ready, bool queue,
                    Clock::time_point deadline) {
  if (leader_.load() == Leader::kBackground) interrupt();
  std::atomic<std::size_t>& kind = queue ? followers_ : future_followers_;
  kind.fetch_add(1);
  // Of a future nobody tells us when its owner runs the context.
  const auto until = borrowed_ && !queue ? std::min(deadline, Clock::now() + pace::kBorrowedLook) : deadline;
  if (!ready()) reactor_->followers_cv.wait_until(lock, until);
  kind.fetch_sub(1);
}

bool Engine::leads_here() const {
  if (leader_thread_.load() == std::this_thread::get_id()) return true;
  return context_->alive() && reactor_->io.get_executor().running_in_this_thread();
}

// The caller may hold locks that are taken behind those of the engine, so that the context's thread does what needs
// one.
void Engine::look_again() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (!context_->alive() || askers_.load() == 0) return;
  // The background thread, and who runs a borrowed context, does not ask.
  if (leader_thread_.load() == std::this_thread::get_id())
    return ask_again_.store(true);  // it asks anyway, and tells the others behind what it does
  boost::asio::post(reactor_->io, [this] { tell_futures(); });
}

void Engine::lead(const std::function<bool()>& ready, bool spins, Clock::time_point deadline) {
  Clock::time_point now;
  while (!ready() && (now = Clock::now()) < deadline) {
    if (spin_.count() > 0 && spins) spin(ready, now, deadline);
    if (ready()) continue;
    sleep(Clock::now(), deadline);  // a spin may have taken long, and have run the alarm
    tell_futures();
  }
}

void Engine::sleep(Clock::time_point now, Clock::time_point deadline) {
  if (deadline - now <= pace::kLongestTimedRun) {
    reactor_->io.run_one_until(deadline);
    return;
  }
  // An alarm that comes too early costs one look. So many waits, each with a later deadline than the one before, have
  // set it once.
  boost::asio::steady_timer& alarm = reactor_->alarm;
  const bool set = alarm.expiry() > now && alarm.expiry() <= deadline;
  if (!set && deadline != Clock::time_point::max()) {
    alarm.expires_at(deadline);
    alarm.async_wait([](boost::system::error_code) {});
  }
  reactor_->io.run_one();
}

void Engine::serve_reactor(Clock::time_point now) {
  reactor_polled_.store(now, std::memory_order_relaxed);
  for (unsigned n = 0; n < pace::kHandlersPerTurn && reactor_->io.poll_one() != 0;)
    ++n;  // those may post others without end
}

void Engine::wake(verbs::CompletionQueue& cq) {
  // The leader sees its own completions when the handler that it runs returns; another thread's must get it out of
  // epoll.
  if (leader_cq_.load() == &cq && leader_thread_.load() != std::this_thread::get_id()) interrupt();
  if (followers_.load() > 0) {
    const std::lock_guard lock(mu_);
    reactor_->followers_cv.notify_all();
  }
}

void Engine::tell_futures() {
  ask_again_.store(false, std::memory_order_relaxed);
  if (future_followers_.load() == 0) return;
  const std::lock_guard lock(mu_);
  reactor_->followers_cv.notify_all();
}

Engine::Looked Engine::drive_hot(Clock::time_point now, verbs::CompletionQueue* cq) {
  std::array<std::shared_ptr<Connection>, pace::kHotConnections> hot;
  std::size_t n = 0;
  if (cq != nullptr) {
    std::array<std::shared_ptr<verbs::Driver>, pace::kHotConnections> next;
    std::size_t all = 0;
    const std::size_t some = cq->shared()->next_drivers(*this, next, all);
    if (all > pace::kPolledConnections) return {};
    // What joins by way of an engine is a connection of it.
    for (; n < some; ++n) hot[n] = std::static_pointer_cast<Connection>(std::move(next[n]));
  }
  if (n == 0) n = few_connections(hot);
  return drive_all(std::span(hot).first(n), now);
}

std::size_t Engine::few_connections(std::span<std::shared_ptr<Connection>> out) {
  const std::lock_guard lock(connections_mu_);
  if (connections_.size() > out.size()) return 0;
  std::size_t n = 0;
  for (const auto& [key, known] : connections_) {
    if (auto connection = known.connection.lock()) out[n++] = std::move(connection);
  }
  return n;
}

Engine::Looked Engine::drive_all(std::span<const std::shared_ptr<Connection>> some, Clock::time_point now) {
  Looked looked{.few = !some.empty()};
  for (const auto& connection : some) {
    const Connection::Driven driven = connection->drive(now);
    looked.moved = looked.moved || driven.moved;
    looked.blocked = looked.blocked || driven.blocked;
    looked.told = looked.told || driven.told;
    looked.taken = looked.taken || driven.taken;
  }
  return looked;
}

std::chrono::microseconds Engine::spin() const {
  const bool crowded = context_->busy_engines().load(std::memory_order_relaxed) > pace::spinning_engines();
  return crowded ? std::chrono::microseconds{0} : spin_;
}

void Engine::spin(const std::function<bool()>& ready, Clock::time_point now, Clock::time_point deadline) {
  if (spins_to_skip_ > 0) {
    --spins_to_skip_;
    return;
  }
  if (spin().count() == 0) return;
  bool useful = false;
  for (auto until = std::min(now + spin_, deadline); now < until;) {
    if (now - reactor_polled_.load(std::memory_order_relaxed) >=
        (blocked_ ? pace::kReactorEvery : pace::kReactorTurn)) {
      serve_reactor(now);
      tell_futures();
    }
    const Looked looked = drive_hot(now);
    if (!looked.few) break;
    blocked_ = looked.blocked;
    useful = useful || looked.moved;
    if (looked.told || ask_again_.load(std::memory_order_relaxed)) tell_futures();
    if (ready()) {
      vain_spins_ = 0;
      return;
    }
    // Who was told may have posted handlers, such as coroutines that answer.
    if (looked.told) {
      serve_reactor(now);
      tell_futures();
    }
    if (looked.taken) std::this_thread::yield();  // who has it may be waiting for this processor
    now = Clock::now();
    if (looked.moved) until = std::min(now + spin_, deadline);
  }
  if (useful) {
    vain_spins_ = 0;
  } else if (++vain_spins_ >= pace::kVainSpins) {
    spins_to_skip_ = std::min(pace::kMostSkipped, 1U << std::min(vain_spins_ - pace::kVainSpins, 16U));
  }
}

void Engine::poll(verbs::CompletionQueue& cq) {
  if (!context_->alive()) return;
  if (!cq.seems_empty()) return;  // who finds something does not poll any less
  const auto now = Clock::now();
  if (mode_ == Mode::kAutomatic && !cq.armed() && polls_in_a_row(now) >= pace::kEmptyPolls) {
    polls_.fetch_add(1, std::memory_order_relaxed);
    if (leader_.load() == Leader::kBackground && step(PollingInput::kEvict)) interrupt();
  }
  move(now, &cq);
}

bool Engine::doze(verbs::CompletionQueue& cq) {
  // What the background thread has read already, this one would wait for in vain.
  if (!context_->alive() || leader_.load() == Leader::kBackground || !cq.seems_empty()) return false;
  std::array<std::shared_ptr<Connection>, pace::kPolledConnections> some;
  std::array<pollfd, pace::kPolledConnections> sockets;
  const std::size_t n = few_connections(some);
  for (std::size_t i = 0; i < n; ++i) {
    const int socket = some[i]->quiet_socket();
    if (socket < 0) return false;
    sockets[i] = {.fd = socket, .events = POLLIN | POLLRDHUP, .revents = 0};
  }
  if (n == 0) return false;
  const timespec most{.tv_sec = 0, .tv_nsec = std::chrono::nanoseconds(pace::kDoze).count()};
  // The next poll looks at all of them.
  if (::ppoll(sockets.data(), n, &most, nullptr) > 0) reactor_polled_.store({}, std::memory_order_relaxed);
  polls_.fetch_add(1, std::memory_order_relaxed);
  empty_poll_.store(Clock::now(), std::memory_order_relaxed);
  return true;
}

unsigned Engine::polls_in_a_row(TimePoint now) {
  if (now - empty_poll_.exchange(now, std::memory_order_relaxed) > pace::kPollsApart)
    empty_polls_.store(0, std::memory_order_relaxed);
  return empty_polls_.fetch_add(1, std::memory_order_relaxed) + 1;
}

void Engine::armed() {
  empty_polls_.store(0, std::memory_order_relaxed);
  if (mode_ != Mode::kAutomatic || polls_.load(std::memory_order_relaxed) == 0) return;
  if (background_leads()) return;
  const std::lock_guard lock(mu_);
  if (waiters_ > 0 || background_leads()) return;  // it may have begun to meanwhile
  // Who waits in the engine now and then takes the I/O over again.
  const std::uint64_t most = waits_ * pace::kArmingsOfAWait;
  armings_ = std::clamp(armings_ + 1, most - std::min(most, pace::kArmingsOfAWait - 1), most + 1);
  if (armings_ > most) call_background();
}

void Engine::hand_over() {
  if (mode_ != Mode::kAutomatic || !context_->alive() || background_leads()) return;
  const std::lock_guard lock(mu_);
  if (waiters_ == 0 && !background_leads()) call_background();
}

void Engine::call_background() {
  step(PollingInput::kArm);
  reactor_->background_cv.notify_one();
}

void Engine::poll() {
  if (context_->alive()) move(Clock::now(), nullptr);
}

void Engine::move(Clock::time_point now, verbs::CompletionQueue* cq) {
  const auto hear = [&] {
    tell_futures();
    // It may have looked before the handler came to its end.
    if (leader_.load() == Leader::kFutureWaiter) interrupt();
  };
  Looked looked;
  try {
    looked = drive_hot(now, cq);
  } catch (...) {
    hear();
    throw;
  }
  if (looked.told) hear();
  if (looked.few && now - reactor_polled_.load(std::memory_order_relaxed) < pace::kReactorEvery) return;
  std::unique_lock lock(mu_);
  if (!step(LeaderInput::kPollerComes)) return;
  const Leading leading(*this, lock, nullptr);
  serve_reactor(now);
  tell_futures();
}

}  // namespace iwarp::cm
