#include "iwarp/cm/engine.h"

#include <algorithm>
#include <array>
#include <boost/asio/post.hpp>

#include "iwarp/cm/connection.h"

namespace iwarp::cm {
namespace {

using Clock = std::chrono::steady_clock;

// While application threads come and go as leaders, the background thread looks this often whether it is needed; after
// kLooks without a change it sleeps until it is told.
constexpr std::chrono::milliseconds kLook{1};
constexpr unsigned kLooks = 5;
// Manual polling tries up to this many sockets directly; with more, epoll is the cheaper way.
constexpr std::size_t kHotConnections = 4;
// What only the reactor sees, such as new connections, waits so long.
constexpr std::chrono::microseconds kReactorEvery{50};
// After so many spins in vain it is tried ever more rarely, so an idle thread does not burn its processor.
constexpr unsigned kVainSpins = 4;
constexpr unsigned kMostSkipped = 1024;
constexpr std::chrono::microseconds kLongestSpin{1'000'000};
// A leader that spins gives the reactor a turn so often. Rarer than kReactorEvery, which it keeps to while TCP takes no
// more from a connection, as the sockets that it spins on make the turn cost some microseconds.
constexpr std::chrono::microseconds kReactorTurn{250};
constexpr std::chrono::milliseconds kBorrowedLook{1};
constexpr unsigned kHandlersPerTurn = 64;
// Asio cuts a longer run_one_until() into pieces of a second, and wakes after each.
constexpr std::chrono::seconds kLongestTimedRun{1};

}  // namespace

Engine::Engine(Mode mode, std::chrono::microseconds spin)
    : owned_io_(std::make_unique<boost::asio::io_context>()),
      io_(owned_io_.get()),
      work_(boost::asio::make_work_guard(*io_)),
      alarm_(*io_),
      mode_(mode),
      borrowed_(false),
      context_(std::make_shared<verbs::Context>()),
      spin_(mode == Mode::kAutomatic && std::thread::hardware_concurrency() > 1
                ? std::clamp(spin, std::chrono::microseconds{0}, kLongestSpin)
                : std::chrono::microseconds{0}) {}

Engine::Engine(boost::asio::io_context& io)
    : io_(&io),
      alarm_(io),
      mode_(Mode::kManual),
      borrowed_(true),
      context_(std::make_shared<verbs::Context>()),
      spin_(0) {}

Engine::~Engine() {
  if (!context_->alive()) {  // a forked child: the thread is the parent's, and so are the connections
    if (thread_.joinable()) thread_.detach();
    return;
  }
  {
    const std::lock_guard lock(mu_);
    stop_ = true;
    background_cv_.notify_all();
  }
  if (thread_.joinable()) {
    interrupt();
    thread_.join();
  }
  decltype(connections_) open;
  {
    const std::lock_guard lock(connections_mu_);
    open.swap(connections_);
  }
  for (const auto& [key, weak] : open) {
    if (auto connection = weak.lock()) connection->detach_from_engine();
  }
}

void Engine::start() {
  if (mode_ != Mode::kAutomatic) return;
  const std::lock_guard lock(mu_);
  if (!thread_.joinable() && !stop_) thread_ = std::thread([this] { background(); });
}

void Engine::interrupt() {
  boost::asio::post(*io_, [] {});
}

void Engine::background() {
  std::unique_lock lock(mu_);
  std::uint64_t seen = waits_;
  unsigned looks = 0;
  while (!stop_) {
    if (waiters_ > 0 || leading_ || seen != waits_) {
      looks = seen == waits_ ? looks + 1 : 0;
      seen = waits_;
      if (looks >= kLooks) {
        background_sleeps_ = true;
        background_cv_.wait(lock);
        background_sleeps_ = false;
        looks = 0;
      } else {
        background_cv_.wait_for(lock, kLook);
      }
      continue;
    }
    leading_ = background_leads_ = true;
    lock.unlock();
    io_->run_one();
    lock.lock();
    leading_ = background_leads_ = false;
    if (waiters_ > 0) followers_cv_.notify_one();
  }
}

bool Engine::wait(verbs::CompletionQueue& cq, Clock::time_point deadline) {
  return wait_until([&cq] { return !cq.empty(); }, &cq, deadline);
}

bool Engine::wait_until(const std::function<bool()>& ready, verbs::CompletionQueue* cq, Clock::time_point deadline) {
  if (!context_->alive()) return false;
  std::unique_lock lock(mu_);
  ++waiters_;
  while (!ready() && Clock::now() < deadline) {
    if (leading_ || borrowed_) {  // a borrowed context runs in the threads that its owner chose, and in no other
      if (background_leads_) interrupt();
      std::atomic<std::size_t>& kind = cq != nullptr ? followers_ : future_followers_;
      kind.fetch_add(1);
      // Of a future nobody tells us when its owner runs the context.
      const auto until = borrowed_ && cq == nullptr ? std::min(deadline, Clock::now() + kBorrowedLook) : deadline;
      if (!ready()) followers_cv_.wait_until(lock, until);
      kind.fetch_sub(1);
      continue;
    }
    leading_ = true;
    ++waits_;
    leader_.store(std::this_thread::get_id());
    leader_cq_.store(cq);
    future_leads_.store(cq == nullptr);
    lock.unlock();
    lead(ready, cq, deadline);
    lock.lock();
    future_leads_.store(false);
    leader_cq_.store(nullptr);
    leading_ = false;
  }
  --waiters_;
  if (waiters_ > 0) followers_cv_.notify_one();
  if (background_sleeps_) background_cv_.notify_one();
  lock.unlock();
  return ready();
}

void Engine::lead(const std::function<bool()>& ready, verbs::CompletionQueue* cq, Clock::time_point deadline) {
  Clock::time_point now;
  while (!ready() && (now = Clock::now()) < deadline) {
    if (spin_.count() > 0 && cq != nullptr) spin(*cq, now, deadline);
    if (ready()) continue;
    sleep(Clock::now(), deadline);  // a spin may have taken long, and have run the alarm
    tell_futures();
  }
}

void Engine::sleep(Clock::time_point now, Clock::time_point deadline) {
  if (deadline - now <= kLongestTimedRun) {
    io_->run_one_until(deadline);
    return;
  }
  // An alarm that comes too early costs one look. So many waits, each with a later deadline than the one before, have
  // set it once.
  const bool set = alarm_.expiry() > now && alarm_.expiry() <= deadline;
  if (!set && deadline != Clock::time_point::max()) {
    alarm_.expires_at(deadline);
    alarm_.async_wait([](boost::system::error_code) {});
  }
  io_->run_one();
}

void Engine::serve_reactor(Clock::time_point now) {
  reactor_polled_.store(now, std::memory_order_relaxed);
  for (unsigned n = 0; n < kHandlersPerTurn && io_->poll_one() != 0;) ++n;  // those may post others without end
}

void Engine::wake(verbs::CompletionQueue& cq) {
  // The leader sees its own completions when the handler that it runs returns; another thread's must get it out of
  // epoll.
  if (leader_cq_.load() == &cq && leader_.load() != std::this_thread::get_id()) interrupt();
  if (followers_.load() > 0) {
    const std::lock_guard lock(mu_);
    followers_cv_.notify_all();
  }
}

void Engine::tell_futures() {
  if (future_followers_.load() == 0) return;
  const std::lock_guard lock(mu_);
  followers_cv_.notify_all();
}

Engine::Looked Engine::drive_hot(Clock::time_point now) {
  std::array<std::shared_ptr<Connection>, kHotConnections> hot;
  std::size_t n = 0;
  {
    const std::lock_guard lock(connections_mu_);
    if (connections_.size() <= kHotConnections) {
      for (const auto& [key, weak] : connections_) {
        if (auto connection = weak.lock()) hot[n++] = std::move(connection);
      }
    }
  }
  Looked looked{.few = n != 0};
  for (std::size_t i = 0; i < n; ++i) {
    const Connection::Driven driven = hot[i]->drive(now);
    looked.moved = looked.moved || driven.moved;
    looked.blocked = looked.blocked || driven.blocked;
    looked.told = looked.told || driven.told;
  }
  return looked;
}

void Engine::spin(verbs::CompletionQueue& cq, Clock::time_point now, Clock::time_point deadline) {
  if (spins_to_skip_ > 0) {
    --spins_to_skip_;
    return;
  }
  bool useful = false;
  for (auto until = std::min(now + spin_, deadline); now < until;) {
    if (now - reactor_polled_.load(std::memory_order_relaxed) >= (blocked_ ? kReactorEvery : kReactorTurn)) {
      serve_reactor(now);
      tell_futures();
    }
    const Looked looked = drive_hot(now);
    if (!looked.few) break;
    blocked_ = looked.blocked;
    useful = useful || looked.moved;
    if (looked.told) tell_futures();
    if (!cq.empty()) {
      vain_spins_ = 0;
      return;
    }
    now = Clock::now();
    if (looked.moved) until = std::min(now + spin_, deadline);
  }
  if (useful) {
    vain_spins_ = 0;
  } else if (++vain_spins_ >= kVainSpins) {
    spins_to_skip_ = std::min(kMostSkipped, 1U << std::min(vain_spins_ - kVainSpins, 16U));
  }
}

void Engine::poll() {
  if (!context_->alive()) return;
  const auto now = Clock::now();
  const Looked looked = drive_hot(now);
  if (looked.told) {
    tell_futures();
    if (future_leads_.load()) interrupt();  // it may have looked before the handler came to its end
  }
  if (looked.few && now - reactor_polled_.load(std::memory_order_relaxed) < kReactorEvery) return;
  std::unique_lock lock(mu_);
  if (leading_) return;  // two threads in one io_context would take each other's wake-ups
  leading_ = true;
  lock.unlock();
  serve_reactor(now);
  tell_futures();
  lock.lock();
  leading_ = false;
  if (waiters_ > 0) followers_cv_.notify_one();
}

void Engine::add(const std::shared_ptr<Connection>& connection) {
  const std::lock_guard lock(connections_mu_);
  connections_.emplace(connection.get(), connection);
}

void Engine::remove(Connection* connection) {
  const std::lock_guard lock(connections_mu_);
  connections_.erase(connection);
}

}  // namespace iwarp::cm
