#include "iwarp/stream/link.h"

namespace iwarp::stream {
using endpoint::Ending;
using endpoint::Phase;

LinkAction next(Link link, Phase phase, Ending ending, bool unsent) {
  if (link == Link::kReleased) return LinkAction::kNone;
  if (phase == Phase::kClosed && ending == Ending::kAbrupt) return LinkAction::kReset;
  if (unsent) return LinkAction::kNone;
  if (phase == Phase::kClosed) return LinkAction::kClose;
  return phase == Phase::kEndWait && link == Link::kOpen ? LinkAction::kShutdownWrite : LinkAction::kNone;
}

}  // namespace iwarp::stream
