#include "iwarp/cm/engine.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <csignal>
#include <utility>

#include "iwarp/cm/connection.h"
#include "iwarp/cm/engine_pace.h"

namespace iwarp::cm {
namespace {

std::shared_ptr<verbs::Context> or_new(std::shared_ptr<verbs::Context> context) {
  return context != nullptr ? std::move(context) : std::make_shared<verbs::Context>();
}

// A thread that is made meanwhile takes no signal, ever: they are for the application's threads.
class WithoutSignals {
 public:
  WithoutSignals() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~WithoutSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  WithoutSignals(const WithoutSignals&) = delete;
  WithoutSignals& operator=(const WithoutSignals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace

Engine::Reactor::Reactor(boost::asio::io_context* borrowed)
    : owned(borrowed == nullptr ? std::make_unique<boost::asio::io_context>() : nullptr),
      io(borrowed == nullptr ? *owned : *borrowed),
      alarm(io) {
  if (borrowed == nullptr) work.emplace(boost::asio::make_work_guard(io));
}

Engine::Engine(Mode mode, std::chrono::microseconds spin, std::shared_ptr<verbs::Context> context)
    : reactor_(std::in_place, nullptr),
      mode_(mode),
      borrowed_(false),
      context_(or_new(std::move(context))),
      operations_(std::make_shared<Operations>(reactor_->io)),
      spin_(mode == Mode::kAutomatic && std::thread::hardware_concurrency() > 1
                ? std::clamp(spin, std::chrono::microseconds{0}, pace::kLongestSpin)
                : std::chrono::microseconds{0}) {}

Engine::Engine(boost::asio::io_context& io, std::shared_ptr<verbs::Context> context)
    : reactor_(std::in_place, &io),
      mode_(Mode::kManual),
      borrowed_(true),
      context_(or_new(std::move(context))),
      operations_(std::make_shared<Operations>(reactor_->io)),
      spin_(0) {}

Engine::~Engine() {
  if (!context_->alive()) {  // a forked child: the thread is the parent's, and so are the connections
    if (thread_.joinable()) thread_.detach();
    return;
  }
  {
    const std::lock_guard lock(mu_);
    step(BackgroundInput::kStop);
    reactor_->background_cv.notify_all();
  }
  if (thread_.joinable()) {
    interrupt();
    thread_.join();
  }
  detach_connections();
  operations_->close();
  if (borrowed_) return;
  run_last_handlers();
  detach_connections();
}

void Engine::detach_connections() {
  decltype(connections_) open;
  {
    const std::lock_guard lock(connections_mu_);
    for (auto& [key, known] : connections_) count_out(known);
    open.swap(connections_);
  }
  for (const auto& [key, known] : open) {
    if (auto connection = known.connection.lock()) connection->detach_from_engine();
  }
}

void Engine::run_last_handlers() {
  // Those of handlers may post others without end.
  constexpr unsigned kMost = 1U << 16;
  for (unsigned n = 0; n < kMost && reactor_->io.poll_one() != 0;) ++n;
}

void Engine::start() {
  if (mode_ != Mode::kAutomatic || !context_->alive()) return;
  const std::lock_guard lock(mu_);
  if (background_ != Background::kNone) return;
  {
    const WithoutSignals without;
    thread_ = std::thread([this] { background(); });
  }
  step(BackgroundInput::kStart);
}

void Engine::interrupt() {
  boost::asio::post(reactor_->io, [] {});
}

bool Engine::step(LeaderInput on) {
  const auto to = next(leader_.load(), on);
  if (to) leader_.store(*to);
  return to.has_value();
}

bool Engine::step(BackgroundInput on) {
  const auto to = next(background_, on);
  if (to) background_ = *to;
  return to.has_value();
}

bool Engine::step(PollingInput on) {
  Polling was = polling_.load();
  for (;;) {
    const auto to = next(was, on);
    if (!to) return false;
    if (polling_.compare_exchange_weak(was, *to)) return true;
  }
}

void Engine::background() {
  std::unique_lock lock(mu_);
  std::uint64_t seen = busy();
  unsigned looks = 0;
  while (background_ != Background::kStopping) {
    const bool quiet = seen == busy();
    const bool wanted = quiet || polling_.load() == Polling::kHandedOver;
    if (waiters_ == 0 && wanted && step(LeaderInput::kBackgroundComes)) {
      step(PollingInput::kBackgroundLeads);
      seen = busy();
      step(BackgroundInput::kFree);
      lock.unlock();
      reactor_->io.run_one();
      lock.lock();
      step(LeaderInput::kLeaves);
      step(BackgroundInput::kServed);
      if (waiters_ > 0) reactor_->followers_cv.notify_one();
      continue;
    }
    looks = quiet ? looks + 1 : 0;
    seen = busy();
    if (looks < pace::kLooks) {
      reactor_->background_cv.wait_for(lock, pace::kLook);
      continue;
    }
    looks = 0;
    step(BackgroundInput::kQuiet);
    reactor_->background_cv.wait(lock, [&] { return background_ != Background::kAsleep; });
  }
}

void Engine::add(const std::shared_ptr<Connection>& connection) {
  const std::lock_guard lock(connections_mu_);
  connections_.emplace(connection.get(), Known{connection});
  if (live_++ == 0) context_->busy_engines().fetch_add(1);
}

void Engine::count_out(Known& known) {
  if (std::exchange(known.live, false) && --live_ == 0) context_->busy_engines().fetch_sub(1);
}

void Engine::ended(Connection* connection) {
  const std::lock_guard lock(connections_mu_);
  if (const auto at = connections_.find(connection); at != connections_.end()) count_out(at->second);
}

void Engine::remove(Connection* connection) {
  const std::lock_guard lock(connections_mu_);
  const auto at = connections_.find(connection);
  if (at == connections_.end()) return;
  count_out(at->second);
  connections_.erase(at);
}

Result<void> Engine::serves(const verbs::QueuePair& qp) const {
  if (qp.pd().context() == context_) return {};
  return make_error(Errc::kInvalidArgument, "the queue pair is of another Context than the engine");
}

std::size_t Engine::load() const {
  if (!context_->alive()) return 0;
  const std::lock_guard lock(connections_mu_);
  return live_ + places_->load();
}

std::shared_ptr<void> Engine::take_place() {
  places_->fetch_add(1);
  return {nullptr, [places = places_](void*) { places->fetch_sub(1); }};
}

}  // namespace iwarp::cm
