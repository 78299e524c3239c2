#include "dropin/verbs/events.h"

#include <fcntl.h>
#include <poll.h>

#include <cerrno>

namespace iwarp::dropin {

std::mutex& events_mutex() {
  static auto* const kMutex = new std::mutex;
  return *kMutex;
}

std::condition_variable& events_changed() {
  static auto* const kChanged = new std::condition_variable;
  return *kChanged;
}

void acknowledge(EventCount& count, unsigned n) {
  {
    const std::lock_guard lock(events_mutex());
    count.acknowledged += n;
  }
  events_changed().notify_all();
}

void wait_settled(const EventCount& count, std::unique_lock<std::mutex>& lock) {
  events_changed().wait(lock, [&] { return count.settled(); });
}

bool sleep_for_event(int fd) {
  if ((::fcntl(fd, F_GETFL) & O_NONBLOCK) != 0) {
    errno = EAGAIN;
    return false;
  }
  pollfd one{.fd = fd, .events = POLLIN, .revents = 0};
  while (::poll(&one, 1, -1) < 0 && errno == EINTR) {
  }
  return true;
}

void make_blocking(int fd) {
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags >= 0) (void)::fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
}

}  // namespace iwarp::dropin
