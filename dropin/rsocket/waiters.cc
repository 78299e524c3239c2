#include "dropin/rsocket/waiters.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "dropin/verbs/uncancelled.h"

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
  const int error = errno;  // of a call that is about to end
  sleepers_.wake();
  if (count_.load() > 0) {
    const std::lock_guard lock(mutex_);
    for (Alarm* const alarm : alarms_) alarm->ring();
  }
  errno = error;
}

bool Waiters::sleep(std::uint32_t seen) {
  const Uncancelled awake;
  return sleepers_.wait(seen);
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
