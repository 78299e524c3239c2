#include "iwarp/gateway/session_life.h"

#include <array>

namespace iwarp::gateway {
namespace {

struct Row {
  Life from;
  LifeInput on;
  Life to;
};
using enum Life;
constexpr std::array kRows = {
    Row{kOpening, LifeInput::kEstablished, kServing},
    Row{kOpening, LifeInput::kClose, kClosing},
    Row{kOpening, LifeInput::kReleased, kOver},

    Row{kServing, LifeInput::kNoMoreCalls, kDraining},
    Row{kServing, LifeInput::kServerLeft, kDelivering},
    Row{kServing, LifeInput::kClose, kClosing},
    Row{kServing, LifeInput::kEnded, kRest},
    Row{kServing, LifeInput::kReleased, kOver},

    Row{kDraining, LifeInput::kServerLeft, kDelivering},
    Row{kDraining, LifeInput::kClose, kClosing},
    Row{kDraining, LifeInput::kEnded, kRest},
    Row{kDraining, LifeInput::kReleased, kOver},

    Row{kDelivering, LifeInput::kClose, kClosing},
    Row{kDelivering, LifeInput::kReleased, kOver},

    Row{kClosing, LifeInput::kEnded, kRest},
    Row{kClosing, LifeInput::kReleased, kOver},

    Row{kRest, LifeInput::kReleased, kOver},
};

}  // namespace

std::optional<Life> next(Life from, LifeInput on) {
  for (const Row& r : kRows) {
    if (r.from == from && r.on == on) return r.to;
  }
  return std::nullopt;
}

const char* name(Life life) {
  constexpr std::array<const char*, kLives> kNames = {"OPENING", "SERVING", "DRAINING", "DELIVERING",
                                                      "CLOSING", "REST",    "OVER"};
  return kNames[static_cast<std::size_t>(life)];
}

const char* name(LifeInput input) {
  constexpr std::array<const char*, kLifeInputs> kNames = {"established", "no more calls", "server left",
                                                           "close",       "ended",         "released"};
  return kNames[static_cast<std::size_t>(input)];
}

}  // namespace iwarp::gateway
