#include "iwarp/endpoint/news.h"

namespace iwarp::endpoint {

News next(Told told, Heard heard, Heard opener, Phase phase) {
  switch (told) {
    case Told::kNothing:
      if (heard != Heard::kNothing && heard >= opener) return News::kEstablished;  // req: RFC6581-3-4
      [[fallthrough]];
    case Told::kEstablished:
      return phase == Phase::kClosed ? News::kEnded : News::kNone;
    case Told::kEnded:
      break;
  }
  return News::kNone;
}

}  // namespace iwarp::endpoint
