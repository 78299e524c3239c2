#include "dropin/rsocket/waiters.h"

#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

namespace iwarp::dropin::rsockets {

Alarm::Alarm() : descriptor_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (descriptor_ < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
}

Alarm::~Alarm() {
  (void)::close(descriptor_);
}

void Alarm::ring() noexcept {
  const std::uint64_t one = 1;
  while (::write(descriptor_, &one, sizeof one) < 0 && errno == EINTR) {
  }
}

void Alarm::silence() noexcept {
  std::uint64_t count = 0;
  while (::read(descriptor_, &count, sizeof count) < 0 && errno == EINTR) {
  }
}

void Waiters::wake() noexcept {
  sleepers_.wake();
  if (count_.load() == 0) return;
  const std::lock_guard lock(mutex_);
  for (Alarm* const alarm : alarms_) alarm->ring();
}

bool Waiters::sleep(std::uint32_t seen) {
  int before = 0;
  ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
  const bool woken = sleepers_.sleep(seen);
  const int error = errno;
  ::pthread_setcancelstate(before, nullptr);
  errno = error;
  return woken;
}

void Waiters::add(Alarm& alarm) {
  const std::lock_guard lock(mutex_);
  alarms_.push_back(&alarm);
  count_.store(static_cast<unsigned>(alarms_.size()));
}

void Waiters::remove(Alarm& alarm) {
  const std::lock_guard lock(mutex_);
  std::erase(alarms_, &alarm);
  count_.store(static_cast<unsigned>(alarms_.size()));
}

}  // namespace iwarp::dropin::rsockets
