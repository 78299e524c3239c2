// Who runs an engine's io_context, what its background thread does, and what threads that poll have told it, as data:
// which input moves each of them where. An absent pair means that it may not: who comes then follows, or goes away.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace iwarp::cm {

// One thread at a time: two in one io_context would take each other's wake-ups.
enum class Leader : std::uint8_t {
  kNobody,
  kBackground,    // the background thread, asleep in the reactor or in a handler
  kQueueWaiter,   // a thread that waits for a completion queue: completions of that queue wake it
  kFutureWaiter,  // a thread that waits for a future: it looks after each handler
  kPoller,        // a thread in Engine::poll()
};
enum class LeaderInput : std::uint8_t {
  kBackgroundComes,
  kQueueWaiterComes,
  kFutureWaiterComes,
  kPollerComes,
  kLeaves
};

enum class Background : std::uint8_t {
  kNone,      // no thread: nothing was started, or the mode has none
  kWatching,  // waiting threads come and go: it looks now and then whether it is needed
  kLeading,
  kAsleep,  // a thread has been leading for long: this one sleeps until it is told
  kStopping,
};
enum class BackgroundInput : std::uint8_t {
  kStart,
  kFree,    // nobody leads, nobody waits
  kServed,  // a handler has run
  kQuiet,   // the same thread has been leading for some looks
  kTold,    // the last wait has ended
  kStop,
};

// Between the threads that poll a queue and the background thread.
enum class Polling : std::uint8_t {
  kSettled,     // nothing is to be told
  kEvicting,    // the background thread was asked to let the pollers lead
  kHandedOver,  // the pollers are about to sleep: the background thread is to lead at once
};
enum class PollingInput : std::uint8_t {
  kEvict,            // a poller finds the background thread leading: it is asked once
  kArm,              // the queue is armed
  kBackgroundLeads,  // it has begun to
};

inline constexpr std::size_t kLeaders = 5, kLeaderInputs = 5, kBackgrounds = 5, kBackgroundInputs = 6, kPollings = 3,
                             kPollingInputs = 3;

[[nodiscard]] std::optional<Leader> next(Leader from, LeaderInput on);
[[nodiscard]] std::optional<Background> next(Background from, BackgroundInput on);
[[nodiscard]] std::optional<Polling> next(Polling from, PollingInput on);
[[nodiscard]] const char* name(Leader leader);
[[nodiscard]] const char* name(LeaderInput input);
[[nodiscard]] const char* name(Background background);
[[nodiscard]] const char* name(BackgroundInput input);
[[nodiscard]] const char* name(Polling polling);
[[nodiscard]] const char* name(PollingInput input);

}  // namespace iwarp::cm
