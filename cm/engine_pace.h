// How often an engine does what: for engine.cc and engine_wait.cc.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <thread>

namespace iwarp::cm::pace {

// While application threads come and go as leaders, the background thread looks this often whether it is needed; after
// kLooks without a change it sleeps until it is told.
inline constexpr std::chrono::milliseconds kLook{1};
inline constexpr unsigned kLooks = 5;
// Manual polling tries up to this many sockets directly; with more, epoll is the cheaper way.
inline constexpr std::size_t kHotConnections = 4;
// Who polls a queue tries that many of the queue's sockets each time, in turn, as long as it has no more than this.
inline constexpr std::size_t kPolledConnections = 32;
// Before pollers drive the background thread away: who looks at a queue now and then, and watches memory meanwhile,
// needs that thread.
inline constexpr unsigned kEmptyPolls = 16;
// In a row are those that come no longer apart than this.
inline constexpr std::chrono::microseconds kPollsApart{200};
// Of one doze(): less than kPollsApart, so that the polls around it are in a row.
inline constexpr std::chrono::microseconds kDoze{100};
// A thread that waits in the engine arms so many queues at most for each wait, as a program has one for what it sends
// and one for what it receives. Who arms more of them sleeps elsewhere.
inline constexpr std::uint64_t kArmingsOfAWait = 8;
// What only the reactor sees, such as new connections, waits so long.
inline constexpr std::chrono::microseconds kReactorEvery{50};
// After so many spins in vain it is tried ever more rarely, so an idle thread does not burn its processor.
inline constexpr unsigned kVainSpins = 4;
inline constexpr unsigned kMostSkipped = 1024;
inline constexpr std::chrono::microseconds kLongestSpin{1'000'000};
// Engines of a Context that may spin: with more of them busy none does, as each would keep a processor from a peer of
// this host or from another engine.
inline unsigned spinning_engines() {
  static const unsigned most = std::max(1U, std::thread::hardware_concurrency() / 2);
  return most;
}
// A leader that spins gives the reactor a turn so often. Rarer than kReactorEvery, which it keeps to while TCP takes no
// more from a connection, as the sockets that it spins on make the turn cost some microseconds.
inline constexpr std::chrono::microseconds kReactorTurn{250};
inline constexpr std::chrono::milliseconds kBorrowedLook{1};
inline constexpr unsigned kHandlersPerTurn = 64;
// Asio cuts a longer run_one_until() into pieces of a second, and wakes after each.
inline constexpr std::chrono::seconds kLongestTimedRun{1};

}  // namespace iwarp::cm::pace
