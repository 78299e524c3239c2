#include "iwarp/verbs/completion_queue.h"

#include <algorithm>
#include <new>
#include <thread>
#include <utility>

#include "iwarp/verbs/own_process.h"

namespace iwarp::verbs {

// --- What is shared

CompletionQueue::Shared::Shared(CompletionQueue& queue, std::size_t capacity, Progress* progress)
    : entries_(capacity),
      queue_(&queue),
      progress_(progress),
      arrived_(progress == nullptr ? std::make_unique<std::condition_variable>() : nullptr) {}

CompletionQueue::Shared::~Shared() {
  // In a child it would wait for the threads of its parent that sleep on it.
  if (!process_.alive()) (void)arrived_.release();
}

CompletionQueue* CompletionQueue::Shared::queue() const {
  const std::lock_guard lock(mu_);
  return queue_;
}

void CompletionQueue::Shared::arm(Notify what, Notifier* notifier) {
  {
    const std::lock_guard lock(mu_);
    replace(what, notifier, nullptr);
    if (notifier == nullptr || progress_ == nullptr || queue_ == nullptr) return;
    waking_.fetch_add(1, std::memory_order_relaxed);
  }
  tell_armed();
}

bool CompletionQueue::Shared::arm(Notify what, std::shared_ptr<SharedNotifier> notifier) {
  bool first = false;
  {
    const std::lock_guard lock(mu_);
    first = shared_notifier_ != notifier;
    Notifier* const plain = notifier.get();
    replace(what, plain, std::move(notifier));
    if (plain == nullptr || progress_ == nullptr || queue_ == nullptr) return first;
    waking_.fetch_add(1, std::memory_order_relaxed);
  }
  tell_armed();
  return first;
}

// The queue waits for it in close(): progress_ is there.
void CompletionQueue::Shared::tell_armed() {
  progress_->armed();
  waking_.fetch_sub(1, std::memory_order_release);
}

void CompletionQueue::Shared::replace(Notify what, Notifier* notifier, std::shared_ptr<SharedNotifier> shared) {
  // The stronger of two requests stands, as with ibv_req_notify_cq().
  if (notifier_ == nullptr || what == Notify::kNext) notify_what_ = what;
  if (notifier_ == nullptr) held_ = 0;
  set_notifier(notifier);
  const auto before = std::exchange(shared_notifier_, std::move(shared));
  if (before != nullptr && before != shared_notifier_) before->let_go();
}

void CompletionQueue::Shared::forget(const SharedNotifier& notifier) {
  std::shared_ptr<SharedNotifier> forgotten;  // it may hold the last reference to this
  const std::lock_guard lock(mu_);
  if (shared_notifier_.get() != &notifier) return;
  forgotten = std::move(shared_notifier_);
  set_notifier(nullptr);
}

std::optional<std::size_t> CompletionQueue::Shared::poll(std::span<Completion> out) {
  const std::lock_guard lock(mu_);
  if (queue_ == nullptr) return std::nullopt;
  std::size_t n = 0;
  for (; n < out.size() && !entries_.empty(); entries_.drop()) out[n++] = entries_.front();
  count();
  return n;
}

void CompletionQueue::Shared::join(const Progress& engine, const std::weak_ptr<Driver>& driver, const Driver* key) {
  const std::lock_guard lock(mu_);
  if (queue_ == nullptr || std::ranges::find(drivers_, key, &Joined::key) != drivers_.end()) return;
  drivers_.push_back({&engine, key, driver});
}

void CompletionQueue::Shared::part(const Driver* key) {
  const std::lock_guard lock(mu_);
  std::erase_if(drivers_, [&](const Joined& joined) { return joined.key == key; });
}

std::size_t CompletionQueue::Shared::next_drivers(const Progress& engine, std::span<std::shared_ptr<Driver>> out,
                                                  std::size_t& all) {
  const std::lock_guard lock(mu_);
  all = drivers_.size();
  std::size_t n = 0;
  for (std::size_t looked = 0; looked < all && n < out.size(); ++looked) {
    turn_ = turn_ + 1 < all ? turn_ + 1 : 0;
    if (drivers_[turn_].engine == &engine && (out[n] = drivers_[turn_].driver.lock()) != nullptr) ++n;
  }
  return n;
}

bool CompletionQueue::Shared::push(std::span<const Completion> completions, std::size_t promised,
                                   std::atomic<std::uint64_t>* last_good) {
  bool all = true;
  CompletionQueue* wake = nullptr;
  bool waited_for = false;
  {
    const std::lock_guard lock(mu_);
    if (queue_ == nullptr) return true;
    promised_ -= promised;
    for (const Completion& c : completions) {
      Completion* const added = entries_.size() + promised_ < entries_.capacity() ? entries_.add() : nullptr;
      all = added != nullptr;
      if (!all) break;
      *added = c;
      ++pushed_;
      if (last_good != nullptr && c.status == Errc::kOk) last_good->store(pushed_, std::memory_order_relaxed);
      count();  // before anybody is told
      const bool wanted = notify_what_ == Notify::kNext || c.solicited || c.status != Errc::kOk;
      if (notifier_ != nullptr && wanted && !hold_back(c)) tell();
    }
    if (!all) tell_if_held();  // there is no room for what would complete their number
    // Who counts itself later finds the entries.
    waited_for = waiters_.load(std::memory_order_relaxed) > 0;
    if (waited_for && progress_ != nullptr) {
      wake = queue_;
      waking_.fetch_add(1, std::memory_order_relaxed);
    }
  }
  if (waited_for && progress_ == nullptr) arrived_->notify_all();
  if (wake != nullptr) {
    progress_->wake(*wake);
    waking_.fetch_sub(1, std::memory_order_release);
  }
  return all;
}

// Under the lock, so that disarm() guarantees silence when it returns.
void CompletionQueue::Shared::tell() {
  Notifier* const told = notifier_;
  set_notifier(nullptr);
  told->notify(*queue_);
  shared_notifier_.reset();
}

void CompletionQueue::Shared::tell_if_held() {
  if (std::exchange(held_, 0) > 0 && notifier_ != nullptr && !entries_.empty()) tell();
}

bool CompletionQueue::Shared::hold_back(const Completion& c) {
  if (most_held_ <= 1 || c.solicited || c.status != Errc::kOk) return false;
  if (++held_ >= most_held_ || entries_.full()) return false;
  if (held_ > 1 || most_period_.count() == 0) return true;
  held_until_ = add_saturating(std::chrono::steady_clock::now(), most_period_);
  return alarm_->set(held_until_);
}

void CompletionQueue::Shared::period_over() {
  if (!process_.alive()) return;
  const std::lock_guard lock(mu_);
  if (queue_ == nullptr || notifier_ == nullptr || held_ == 0 || most_period_.count() == 0) return;
  if (std::chrono::steady_clock::now() < held_until_ && alarm_->set(held_until_)) return;  // of an earlier one
  if (entries_.empty()) {
    held_ = 0;  // polled meanwhile: the next one is the first
    return;
  }
  tell();
}

std::size_t CompletionQueue::Shared::promise(std::size_t most) {
  const std::lock_guard lock(mu_);
  if (queue_ == nullptr) return most;
  const std::size_t kept = std::min(most, entries_.capacity() - entries_.size() - promised_);
  promised_ += kept;
  return kept;
}

void CompletionQueue::Shared::overflowed(const std::shared_ptr<AsyncEvents>& events, std::uint32_t qp_number) {
  const std::lock_guard lock(mu_);
  if (queue_ == nullptr) return;
  overflow_.raise(events, {.type = AsyncEventType::kCqOverflow, .qp_number = qp_number, .cq = queue_});
}

bool CompletionQueue::Shared::wait(CompletionQueue& queue, TimePoint deadline) {
  waiters_.fetch_add(1, std::memory_order_relaxed);
  bool come = false;
  if (progress_ != nullptr) {
    come = progress_->wait(queue, deadline);
  } else {
    std::unique_lock lock(mu_);
    come = arrived_->wait_until(lock, deadline, [&] { return !entries_.empty(); });
  }
  waiters_.fetch_sub(1, std::memory_order_relaxed);
  return come;
}

bool CompletionQueue::Shared::polled(std::uint64_t position) const {
  if (!process_.alive()) return true;
  const std::lock_guard lock(mu_);
  return queue_ == nullptr || entries_.empty() || pushed_ - entries_.size() >= position;
}

void CompletionQueue::Shared::close() {
  {
    const std::lock_guard lock(mu_);
    queue_ = nullptr;
    overflow_.withdraw();
    replace(Notify::kNext, nullptr, nullptr);
    alarm_.reset();
    entries_ = ChunkedRing<Completion>(0);
    count();
    drivers_.clear();
  }
  while (waking_.load(std::memory_order_acquire) > 0) std::this_thread::yield();
}

// --- The queue

CompletionQueue::CompletionQueue(std::size_t capacity, Progress* progress)
    : shared_(std::make_shared<Shared>(*this, capacity, progress)) {}

CompletionQueue::~CompletionQueue() {
  if (shared_->process_.alive()) shared_->close();
}

std::size_t CompletionQueue::poll(std::span<Completion> out) {
  if (!shared_->process_.alive() || seems_empty()) return 0;
  return shared_->poll(out).value_or(0);
}

bool CompletionQueue::empty() const {
  if (!shared_->process_.alive()) return true;
  const std::lock_guard lock(shared_->mu_);
  return shared_->entries_.empty();
}

bool CompletionQueue::seems_empty() const {
  return shared_->count_.load(std::memory_order_acquire) == 0;
}

std::size_t CompletionQueue::capacity() const {
  if (!shared_->process_.alive()) return 0;
  const std::lock_guard lock(shared_->mu_);
  return shared_->entries_.capacity();
}

std::size_t CompletionQueue::drop(std::uint32_t qp_number) {
  if (!shared_->process_.alive()) return 0;
  const std::lock_guard lock(shared_->mu_);
  ChunkedRing<Completion>& entries = shared_->entries_;
  const std::size_t n = entries.size();
  std::size_t kept = 0;
  for (std::size_t i = 0; i < n; ++i) {
    if (entries.at(i).qp_number != qp_number) entries.at(kept++) = entries.at(i);
  }
  for (std::size_t i = kept; i < n; ++i) entries.undo_add();
  shared_->pushed_ -= n - kept;
  shared_->count();
  return n - kept;
}

bool CompletionQueue::armed() const {
  return shared_->process_.alive() && shared_->notifies_.load(std::memory_order_acquire);
}

Result<void> CompletionQueue::resize(std::size_t capacity) {
  if (!shared_->process_.alive()) return used_after_fork();
  if (capacity == 0 || capacity > kMostCapacity)
    return make_error(Errc::kInvalidArgument, "the capacity of a completion queue must be 1 to 268435456");
  const Error no_memory = make_error(Errc::kResource, "no memory for another capacity of the completion queue");
  std::optional<ChunkedRing<Completion>> other;  // goes without the lock
  try {
    other.emplace(capacity);
  } catch (const std::bad_alloc&) {
    return no_memory;
  }
  const std::lock_guard lock(shared_->mu_);
  ChunkedRing<Completion>& entries = shared_->entries_;
  if (entries.size() + shared_->promised_ > capacity)
    return make_error(Errc::kInvalidArgument, "more completions wait than the completion queue is to hold");
  if (!other->reserve(entries.size())) return no_memory;
  for (std::size_t i = 0; i < entries.size(); ++i) *other->add() = entries.at(i);
  std::swap(entries, *other);
  if (entries.full()) shared_->tell_if_held();
  return {};
}

Result<void> CompletionQueue::moderate(std::size_t count, std::chrono::microseconds period) {
  if (!shared_->process_.alive()) return used_after_fork();
  if (period.count() < 0)
    return make_error(Errc::kInvalidArgument, "the period of a completion queue's moderation is not below 0");
  const std::lock_guard lock(shared_->mu_);
  if (period.count() > 0 && shared_->alarm_ == nullptr)
    return make_error(Errc::kInvalidArgument, "moderation with a period is for completion queues of an engine");
  shared_->most_held_ = count;
  shared_->most_period_ = period;
  shared_->tell_if_held();
  return {};
}

void CompletionQueue::set_alarm(std::shared_ptr<Alarm> alarm) {
  const std::lock_guard lock(shared_->mu_);
  shared_->alarm_.swap(alarm);
}

void CompletionQueue::arm(Notify what, Notifier& notifier) {
  if (shared_->process_.alive()) shared_->arm(what, &notifier);
}

void CompletionQueue::disarm() {
  if (shared_->process_.alive()) shared_->arm(Notify::kNext, static_cast<Notifier*>(nullptr));
}

bool CompletionQueue::push(std::span<const Completion> completions) {
  return shared_->push(completions);
}

bool CompletionQueue::wait_for(std::chrono::nanoseconds timeout) {
  if (!empty()) return true;
  if (!shared_->process_.alive()) return false;
  return shared_->wait(*this, add_saturating(std::chrono::steady_clock::now(), timeout));
}

}  // namespace iwarp::verbs
