#include "iwarp/device/life.h"

#include <array>

namespace iwarp::device {
namespace {

struct Row {
  Life from;
  LifeInput on;
  Life to;
};

using L = Life;
using I = LifeInput;

constexpr std::array kRows = {
    Row{L::kNew, I::kConnect, L::kAddress},
    Row{L::kNew, I::kAccept, L::kAccepting},
    Row{L::kNew, I::kEnd, L::kOver},
    Row{L::kAddress, I::kAddressResolved, L::kRoute},
    Row{L::kAddress, I::kEnd, L::kOver},
    Row{L::kRoute, I::kRouteResolved, L::kConnecting},
    Row{L::kRoute, I::kEnd, L::kOver},
    Row{L::kConnecting, I::kEstablished, L::kUp},
    Row{L::kConnecting, I::kPeerLeft, L::kOver},
    Row{L::kConnecting, I::kEnd, L::kOver},
    Row{L::kAccepting, I::kEstablished, L::kUp},
    Row{L::kAccepting, I::kPeerLeft, L::kOver},
    Row{L::kAccepting, I::kEnd, L::kOver},
    Row{L::kUp, I::kDisconnect, L::kFinishing},
    Row{L::kUp, I::kFlushed, L::kSuspect},
    Row{L::kUp, I::kPeerLeft, L::kOver},
    Row{L::kUp, I::kEnd, L::kOver},
    Row{L::kFinishing, I::kAllSent, L::kLeaving},
    Row{L::kFinishing, I::kFlushed, L::kSuspect},
    Row{L::kFinishing, I::kPeerLeft, L::kOver},
    Row{L::kFinishing, I::kEnd, L::kOver},
    Row{L::kLeaving, I::kPeerLeft, L::kOver},  // what is flushed now is the Receives, by this end's own wish
    Row{L::kLeaving, I::kEnd, L::kOver},
    Row{L::kSuspect, I::kPeerLeft, L::kOver},
    Row{L::kSuspect, I::kEnd, L::kOver},
};

}  // namespace

std::optional<Life> next(Life from, LifeInput on) {
  for (const Row& row : kRows) {
    if (row.from == from && row.on == on) return row.to;
  }
  return std::nullopt;
}

const char* name(Life life) {
  static constexpr std::array kNames = {"new", "address",   "route",   "connecting", "accepting",
                                        "up",  "finishing", "leaving", "suspect",    "over"};
  static_assert(kNames.size() == kLives);
  return kNames[static_cast<std::size_t>(life)];
}

const char* name(LifeInput input) {
  static constexpr std::array kNames = {"connect",    "accept",   "address_resolved", "route_resolved", "established",
                                        "disconnect", "all_sent", "flushed",          "peer_left",      "end"};
  static_assert(kNames.size() == kLifeInputs);
  return kNames[static_cast<std::size_t>(input)];
}

}  // namespace iwarp::device
