#include "iwarp/verbs/queue_pair_state.h"

#include <array>

namespace iwarp::verbs {
namespace {

using endpoint::Phase;
using enum QueuePairState;

struct Row {
  Phase phase;
  QueuePairState in_order, else_state;  // where it ends in order, and where it does not or is not ending
};
constexpr std::array kRows = {
    Row{Phase::kIdle, kInit, kInit},
    Row{Phase::kStartup, kRtr, kRtr},
    Row{Phase::kFull, kRts, kRts},
    Row{Phase::kDraining, kSqDrain, kSqDrain},
    Row{Phase::kTerminating, kError, kError},
    Row{Phase::kEndWait, kSqDrain, kError},
    Row{Phase::kLingering, kError, kError},
    Row{Phase::kClosed, kError, kError},
};
static_assert(kRows.size() == endpoint::kPhases);

// As iWARP devices have it: SQD closes the stream, ERR ends it with no Terminate. There is no way back, as the stream
// is gone.
struct MoveRow {
  QueuePairState from, to;
  Move move;
  const char* refused = nullptr;  // why it cannot be
};
constexpr std::array kMoves = {
    MoveRow{kInit, kInit, Move::kNone},
    MoveRow{kInit, kRtr, Move::kNone, "queue pair INIT -> RTR: connecting or accepting does that"},
    MoveRow{kInit, kRts, Move::kNone, "queue pair INIT -> RTS: connecting or accepting does that"},
    MoveRow{kInit, kSqDrain, Move::kNone, "queue pair INIT -> SQD: there is no connection to close"},
    MoveRow{kInit, kError, Move::kEnd},

    MoveRow{kRtr, kInit, Move::kNone, "queue pair RTR -> INIT: it serves one connection"},
    MoveRow{kRtr, kRtr, Move::kNone},
    MoveRow{kRtr, kRts, Move::kNone, "queue pair RTR -> RTS: the startup does that"},
    MoveRow{kRtr, kSqDrain, Move::kNone, "queue pair RTR -> SQD: there is no connection to close"},
    MoveRow{kRtr, kError, Move::kEnd},

    MoveRow{kRts, kInit, Move::kNone, "queue pair RTS -> INIT: it serves one connection"},
    MoveRow{kRts, kRtr, Move::kNone, "queue pair RTS -> RTR: it is connected"},
    MoveRow{kRts, kRts, Move::kNone},
    MoveRow{kRts, kSqDrain, Move::kClose},
    MoveRow{kRts, kError, Move::kEnd},

    MoveRow{kSqDrain, kInit, Move::kNone, "queue pair SQD -> INIT: it serves one connection"},
    MoveRow{kSqDrain, kRtr, Move::kNone, "queue pair SQD -> RTR: its end has begun"},
    MoveRow{kSqDrain, kRts, Move::kNone, "queue pair SQD -> RTS: its end has begun"},
    MoveRow{kSqDrain, kSqDrain, Move::kNone},
    MoveRow{kSqDrain, kError, Move::kEnd},

    MoveRow{kError, kInit, Move::kNone, "queue pair ERR -> INIT: it serves one connection"},
    MoveRow{kError, kRtr, Move::kNone, "queue pair ERR -> RTR: it serves one connection"},
    MoveRow{kError, kRts, Move::kNone, "queue pair ERR -> RTS: it serves one connection"},
    MoveRow{kError, kSqDrain, Move::kNone, "queue pair ERR -> SQD: there is no connection to close"},
    MoveRow{kError, kError, Move::kNone},
};
static_assert(kMoves.size() == kQueuePairStates * kQueuePairStates);

}  // namespace

QueuePairState state_of(Phase phase, endpoint::Ending ending) {
  for (const Row& r : kRows) {
    if (r.phase == phase) return ending == endpoint::Ending::kOrderly ? r.in_order : r.else_state;
  }
  return kError;
}

Result<Move> move_of(QueuePairState from, QueuePairState to) {
  for (const MoveRow& r : kMoves) {
    if (r.from != from || r.to != to) continue;
    if (r.refused != nullptr) return make_error(Errc::kInvalidArgument, r.refused);
    return r.move;
  }
  return make_error(Errc::kInvalidArgument, "no state of a queue pair");
}

const char* name(QueuePairState state) {
  constexpr std::array<const char*, kQueuePairStates> kNames = {"INIT", "RTR", "RTS", "SQD", "ERR"};
  return kNames[static_cast<std::size_t>(state)];
}

}  // namespace iwarp::verbs
