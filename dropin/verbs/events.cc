#include "dropin/verbs/events.h"

#include <fcntl.h>

#include "dropin/verbs/per_process.h"

namespace iwarp::dropin {

namespace {

struct Events {
  std::mutex mutex;
  std::condition_variable changed;
};
PerProcess<Events> events;

}  // namespace

std::mutex& events_mutex() {
  return events.get().mutex;
}

std::condition_variable& events_changed() {
  return events.get().changed;
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

void wait_settled(const EventCount& one, const EventCount& other, std::unique_lock<std::mutex>& lock) {
  events_changed().wait(lock, [&] { return one.settled() && other.settled(); });
}

bool blocks(int fd) {
  return (::fcntl(fd, F_GETFL) & O_NONBLOCK) == 0;
}

void make_blocking(int fd) {
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags >= 0) (void)::fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
}

}  // namespace iwarp::dropin
