#include "iwarp/verbs/async_event.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>

namespace iwarp::verbs {
namespace {

void set(int fd) {
  const std::uint64_t one = 1;
  while (::write(fd, &one, sizeof one) < 0 && errno == EINTR) {
  }
}

void clear(int fd) {
  std::uint64_t count = 0;
  while (::read(fd, &count, sizeof count) < 0 && errno == EINTR) {
  }
}

}  // namespace

AsyncEvents::~AsyncEvents() {
  if (fd_ >= 0) ::close(fd_);
}

std::optional<AsyncEvent> AsyncEvents::poll() {
  if (!process_.alive()) return std::nullopt;
  const std::lock_guard lock(mu_);
  if (oldest_ == nullptr) return std::nullopt;
  const AsyncEvent event = oldest_->event_;
  remove(*oldest_);
  return event;
}

Result<int> AsyncEvents::fd() {
  if (!process_.alive()) return make_error(Errc::kInvalidArgument, "context used after fork()");
  const std::lock_guard lock(mu_);
  if (fd_ < 0) fd_ = ::eventfd(oldest_ != nullptr ? 1 : 0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (fd_ < 0) return make_error(Errc::kResource, "no descriptor for asynchronous events");
  return fd_;
}

void AsyncEvents::silence() {
  if (!process_.alive()) return;
  const std::lock_guard lock(mu_);
  bell_ = nullptr;
}

void AsyncEvents::add(Source& source) noexcept {
  source.before_ = newest_;
  source.behind_ = nullptr;
  source.waits_ = true;
  (newest_ != nullptr ? newest_->behind_ : oldest_) = &source;
  newest_ = &source;
  if (fd_ >= 0 && oldest_ == newest_) set(fd_);
  if (bell_ != nullptr) bell_->ring();
}

void AsyncEvents::remove(Source& source) noexcept {
  (source.before_ != nullptr ? source.before_->behind_ : oldest_) = source.behind_;
  (source.behind_ != nullptr ? source.behind_->before_ : newest_) = source.before_;
  source.waits_ = false;
  if (fd_ >= 0 && oldest_ == nullptr) clear(fd_);
}

void AsyncEvents::Source::raise(const std::shared_ptr<AsyncEvents>& to, const AsyncEvent& event) noexcept {
  if (!to->process_.alive()) return;
  if (events_ != nullptr && events_ != to) {  // of a completion queue with queue pairs of several contexts
    const std::lock_guard lock(events_->mu_);
    if (waits_) return;
  }
  events_ = to;
  const std::lock_guard lock(events_->mu_);
  if (waits_) return;
  event_ = event;
  events_->add(*this);
}

void AsyncEvents::Source::withdraw() noexcept {
  // In a forked child a thread of the parent may have held the lock.
  if (events_ == nullptr || !events_->process_.alive()) return;
  const std::lock_guard lock(events_->mu_);
  if (waits_) events_->remove(*this);
}

}  // namespace iwarp::verbs
