// Posting a list of libibverbs: it is translated piece by piece into memory of the thread, and each piece is posted
// with one call, which transmits once.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "dropin/verbs/translate.h"
#include "iwarp/base/result.h"

namespace iwarp::dropin {

inline constexpr std::size_t kPostedAtOnce = 64;

// Posts the list that begins with `list`. `translate(wr, out)` gives 0 or an errno value; `post(span, &posted)` is the
// core's. Stops at the first request that is refused: `*bad` is that, and those before it are posted. 0 or an errno
// value.
template <class Request, class Wr, class Translate, class Post>
[[nodiscard]] int post_list(Wr* list, Wr** bad, Translate&& translate, Post&& post) {
  thread_local std::array<Request, kPostedAtOnce> requests;
  Wr* at = list;
  while (at != nullptr) {
    Wr* const first = at;
    *bad = first;  // whatever happens, what is before it is posted
    std::size_t n = 0;
    int refused = 0;
    for (; at != nullptr && n < requests.size(); at = at->next, ++n) {
      refused = translate(*at, requests[n]);
      if (refused != 0) break;
    }
    if (n > 0) {
      std::size_t posted = 0;
      const Result<void> done = post(std::span{requests}.first(n), &posted);
      if (!done) {
        at = first;
        for (std::size_t i = 0; i < posted; ++i) at = at->next;
        *bad = at;
        return to_errno(done.error().code);
      }
    }
    if (refused != 0) {
      *bad = at;
      return refused;
    }
  }
  return 0;
}

}  // namespace iwarp::dropin
