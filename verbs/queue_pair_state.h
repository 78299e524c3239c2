// States of a queue pair in the words of libibverbs, and which of them an application may ask for, as data. An iWARP
// queue pair lives for one connection: making it brings the queue pair to kRts, and the end of it to kError for good.
#pragma once

#include <cstddef>
#include <cstdint>

#include "iwarp/base/result.h"
#include "iwarp/endpoint/news.h"
#include "iwarp/endpoint/phase.h"

namespace iwarp::verbs {

// Where a queue pair is in its life.
enum class QueuePairState : std::uint8_t {
  kInit,     // not connected: what is posted waits for the connection (IBV_QPS_INIT)
  kRtr,      // the startup is under way; posts wait (IBV_QPS_RTR)
  kRts,      // agreed on: connected, or a Responder that may not send before the peer's first FPDU (IBV_QPS_RTS)
  kSqDrain,  // closes in order: what was posted before is still done, a post_send() is flushed, and Receives get what
             // the peer sends until its end (IBV_QPS_SQD)
  kError,    // over, or ending by an error: all requests complete as kFlushed (IBV_QPS_ERR)
};

inline constexpr std::size_t kQueuePairStates = 5;  // number of states

// The state of a queue pair whose endpoint is in `phase`; `ending`: how it ends, which tells an orderly wait for the
// peer's end from one behind a Terminate.
[[nodiscard]] QueuePairState state_of(endpoint::Phase phase, endpoint::Ending ending);

// What the move of a queue pair that an application asks for takes.
enum class Move : std::uint8_t {
  kNone,   // it is there
  kClose,  // the orderly end
  kEnd,    // the abrupt end
};
// kInvalidArgument, which names both states: an application cannot bring it there.
[[nodiscard]] Result<Move> move_of(QueuePairState from, QueuePairState to);

// "INIT", "RTR", "RTS", "SQD", "ERR"; for logs.
[[nodiscard]] const char* name(QueuePairState state);

}  // namespace iwarp::verbs
