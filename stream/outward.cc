#include "iwarp/stream/outward.h"

namespace iwarp::stream {

News next(Told told, Heard heard, Heard opener, Phase phase) {
  switch (told) {
    case Told::kNothing:
      if (heard != Heard::kNothing && heard >= opener) return News::kEstablished;  // req: RFC6581-3-4
      [[fallthrough]];
    case Told::kEstablished:
      return phase == Phase::kClosed ? News::kDisconnected : News::kNone;
    case Told::kDisconnected:
      break;
  }
  return News::kNone;
}

LinkAction next(Link link, Phase phase, Ending ending, bool unsent) {
  if (link == Link::kReleased) return LinkAction::kNone;
  if (phase == Phase::kClosed && ending == Ending::kReset) return LinkAction::kReset;
  if (unsent) return LinkAction::kNone;
  if (phase == Phase::kClosed) return LinkAction::kClose;
  return phase == Phase::kFinWait && link == Link::kOpen ? LinkAction::kShutdownWrite : LinkAction::kNone;
}

}  // namespace iwarp::stream
