#include "iwarp/rpc/callers.h"

#include <cerrno>
#include <unordered_map>

namespace iwarp::rpc {

void Callers::Caller::tell(cm::Engine& engine) {
  if (state_.exchange(State::kTold) == State::kAsleep) {
    wake();
  } else {
    engine.look_again();
  }
}

void Callers::Caller::sleep() {
  while (::sem_wait(&woken_) != 0 && errno == EINTR) {
  }
}

std::shared_ptr<Callers> Callers::of(cm::Engine& engine) {
  static std::mutex mu;
  static std::unordered_map<cm::Engine*, std::weak_ptr<Callers>> all;
  const std::lock_guard lock(mu);
  if (auto there = all[&engine].lock()) return there;
  std::erase_if(all, [](const auto& known) { return known.second.expired(); });
  auto made = std::make_shared<Callers>(engine);
  all[&engine] = made;
  return made;
}

class Callers::PassesOn {
 public:
  explicit PassesOn(Callers& callers) : callers_(callers) {}
  ~PassesOn() { callers_.pass_on(); }
  PassesOn(const PassesOn&) = delete;
  PassesOn& operator=(const PassesOn&) = delete;

 private:
  Callers& callers_;
};

void Callers::wait(Caller& caller) {
  {
    std::unique_lock lock(mu_);
    Caller::State was = Caller::State::kAsleep;
    if (!io_ && (passes_on_ || asleep_.empty())) {
      if (!caller.state_.compare_exchange_strong(was, Caller::State::kDoesIo)) return;  // told already
      io_ = true;
    } else {
      if (caller.state_.load() == Caller::State::kTold) return;
      asleep_.push_back(caller);
      lock.unlock();
      caller.sleep();
      lock.lock();
      if (caller.is_linked()) {
        asleep_.erase(asleep_.iterator_to(caller));
        return;
      }
    }
  }
  const PassesOn after(*this);  // a handler of the application may throw
  const auto told = [&] { return caller.state_.load() == Caller::State::kTold; };
  if (polling_.until(told, engine_.spin())) return;
  while (!engine_.wait_until(told, TimePoint::max())) {
  }
}

void Callers::pass_on() {
  const std::lock_guard lock(mu_);
  if (!passes_on_) {
    if (!asleep_.empty()) engine_.hand_over();
    io_ = false;
    return;
  }
  for (Caller& next : asleep_) {
    Caller::State was = Caller::State::kAsleep;
    if (!next.state_.compare_exchange_strong(was, Caller::State::kDoesIo)) continue;  // told, and on its way out
    asleep_.erase(asleep_.iterator_to(next));
    next.wake();
    return;
  }
  io_ = false;
}

}  // namespace iwarp::rpc
