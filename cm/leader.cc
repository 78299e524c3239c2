#include "iwarp/cm/leader.h"

#include <array>

namespace iwarp::cm {
namespace {

template <class State, class Input>
struct Row {
  State from;
  Input on;
  State to;
};

using L = Leader;
using LI = LeaderInput;
constexpr std::array kLeaderRows = {
    Row<L, LI>{L::kNobody, LI::kBackgroundComes, L::kBackground},
    Row<L, LI>{L::kNobody, LI::kQueueWaiterComes, L::kQueueWaiter},
    Row<L, LI>{L::kNobody, LI::kFutureWaiterComes, L::kFutureWaiter},
    Row<L, LI>{L::kNobody, LI::kPollerComes, L::kPoller},
    Row<L, LI>{L::kBackground, LI::kLeaves, L::kNobody},
    Row<L, LI>{L::kQueueWaiter, LI::kLeaves, L::kNobody},
    Row<L, LI>{L::kFutureWaiter, LI::kLeaves, L::kNobody},
    Row<L, LI>{L::kPoller, LI::kLeaves, L::kNobody},
};

using B = Background;
using BI = BackgroundInput;
constexpr std::array kBackgroundRows = {
    Row<B, BI>{B::kNone, BI::kStart, B::kWatching},
    Row<B, BI>{B::kWatching, BI::kFree, B::kLeading},
    Row<B, BI>{B::kWatching, BI::kQuiet, B::kAsleep},
    Row<B, BI>{B::kLeading, BI::kServed, B::kWatching},
    Row<B, BI>{B::kAsleep, BI::kTold, B::kWatching},
    // A stopped engine starts no thread.
    Row<B, BI>{B::kNone, BI::kStop, B::kStopping},
    Row<B, BI>{B::kWatching, BI::kStop, B::kStopping},
    Row<B, BI>{B::kLeading, BI::kStop, B::kStopping},
    Row<B, BI>{B::kAsleep, BI::kStop, B::kStopping},
};

using P = Polling;
using PI = PollingInput;
constexpr std::array kPollingRows = {
    Row<P, PI>{P::kSettled, PI::kEvict, P::kEvicting},
    Row<P, PI>{P::kSettled, PI::kArm, P::kHandedOver},
    Row<P, PI>{P::kEvicting, PI::kArm, P::kHandedOver},
    Row<P, PI>{P::kHandedOver, PI::kArm, P::kHandedOver},
    Row<P, PI>{P::kSettled, PI::kBackgroundLeads, P::kSettled},
    Row<P, PI>{P::kEvicting, PI::kBackgroundLeads, P::kSettled},
    Row<P, PI>{P::kHandedOver, PI::kBackgroundLeads, P::kSettled},
};

template <class State, class Input, std::size_t kRows>
std::optional<State> find(const std::array<Row<State, Input>, kRows>& rows, State from, Input on) {
  for (const auto& row : rows) {
    if (row.from == from && row.on == on) return row.to;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Leader> next(Leader from, LeaderInput on) {
  return find(kLeaderRows, from, on);
}
std::optional<Background> next(Background from, BackgroundInput on) {
  return find(kBackgroundRows, from, on);
}
std::optional<Polling> next(Polling from, PollingInput on) {
  return find(kPollingRows, from, on);
}

const char* name(Leader leader) {
  constexpr std::array<const char*, kLeaders> kNames = {"NOBODY", "BACKGROUND", "QUEUE_WAITER", "FUTURE_WAITER",
                                                        "POLLER"};
  return kNames[static_cast<std::size_t>(leader)];
}
const char* name(LeaderInput input) {
  constexpr std::array<const char*, kLeaderInputs> kNames = {"background comes", "queue waiter comes",
                                                             "future waiter comes", "poller comes", "leaves"};
  return kNames[static_cast<std::size_t>(input)];
}
const char* name(Background background) {
  constexpr std::array<const char*, kBackgrounds> kNames = {"NONE", "WATCHING", "LEADING", "ASLEEP", "STOPPING"};
  return kNames[static_cast<std::size_t>(background)];
}
const char* name(BackgroundInput input) {
  constexpr std::array<const char*, kBackgroundInputs> kNames = {"start", "free", "served", "quiet", "told", "stop"};
  return kNames[static_cast<std::size_t>(input)];
}
const char* name(Polling polling) {
  constexpr std::array<const char*, kPollings> kNames = {"SETTLED", "EVICTING", "HANDED_OVER"};
  return kNames[static_cast<std::size_t>(polling)];
}
const char* name(PollingInput input) {
  constexpr std::array<const char*, kPollingInputs> kNames = {"evict", "arm", "background leads"};
  return kNames[static_cast<std::size_t>(input)];
}

}  // namespace iwarp::cm
