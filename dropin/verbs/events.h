// Events that were given to the application and not acknowledged: an object is destroyed when all are. One lock for all
// objects guards the counts, and that no event names an object that is being destroyed.
#pragma once

#include <condition_variable>
#include <mutex>

namespace iwarp::dropin {

struct EventCount {
  unsigned given = 0, acknowledged = 0;

  [[nodiscard]] bool settled() const { return given == acknowledged; }
};

// The lock of all counts. It is taken before any lock of the core.
[[nodiscard]] std::mutex& events_mutex();
// Told when something was acknowledged.
[[nodiscard]] std::condition_variable& events_changed();
// `n` events of that count are acknowledged. Takes the lock.
void acknowledge(EventCount& count, unsigned n);
// Waits until all events of that count are; of two, until there is none of either.
void wait_settled(const EventCount& count, std::unique_lock<std::mutex>& lock);
void wait_settled(const EventCount& one, const EventCount& other, std::unique_lock<std::mutex>& lock);

// Whether who finds no event at that descriptor sleeps: the application may have set O_NONBLOCK.
[[nodiscard]] bool blocks(int fd);
// Clears it, as the core sets it.
void make_blocking(int fd);

}  // namespace iwarp::dropin
