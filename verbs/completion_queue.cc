#include "iwarp/verbs/completion_queue.h"

#include <utility>

#include "iwarp/base/time.h"

namespace iwarp::verbs {

std::size_t CompletionQueue::poll(std::span<Completion> out) {
  const std::lock_guard lock(mu_);
  std::size_t n = 0;
  for (; n < out.size() && !entries_.empty(); entries_.drop()) out[n++] = entries_.front();
  return n;
}

bool CompletionQueue::empty() const {
  const std::lock_guard lock(mu_);
  return entries_.empty();
}

void CompletionQueue::arm(Notify what, Notifier& notifier) {
  const std::lock_guard lock(mu_);
  // The stronger of two requests stands, as with ibv_req_notify_cq().
  if (notifier_ == nullptr || what == Notify::kNext) notify_what_ = what;
  notifier_ = &notifier;
}

void CompletionQueue::disarm() {
  const std::lock_guard lock(mu_);
  notifier_ = nullptr;
}

bool CompletionQueue::push(std::span<const Completion> completions) {
  bool all = true;
  {
    const std::lock_guard lock(mu_);
    for (const Completion& c : completions) {
      Completion* const added = entries_.add();
      all = added != nullptr;
      if (!all) break;
      *added = c;
      const bool wanted = notify_what_ == Notify::kNext || c.solicited || c.status != Errc::kOk;
      // Told under the lock, so that disarm() guarantees silence when it returns.
      if (notifier_ != nullptr && wanted) std::exchange(notifier_, nullptr)->notify(*this);
    }
  }
  if (progress_ != nullptr) {
    progress_->wake(*this);
  } else {
    arrived_.notify_all();
  }
  return all;
}

bool CompletionQueue::wait_for(std::chrono::nanoseconds timeout) {
  if (!empty()) return true;
  const TimePoint deadline = add_saturating(std::chrono::steady_clock::now(), timeout);
  if (progress_ != nullptr) return progress_->wait(*this, deadline);
  std::unique_lock lock(mu_);
  return arrived_.wait_until(lock, deadline, [&] { return !entries_.empty(); });
}

}  // namespace iwarp::verbs
