// Which pieces of a work request some octets of a message belong to.
#pragma once

#include <algorithm>
#include <cstdint>

#include "iwarp/rdmap/work_request.h"

namespace iwarp::rdmap {

// Calls `use` with each piece (STag, IOVA, octets) that the `left` octets from offset `skip` on belong to, in order,
// until it gives false. False then; what lies behind the last piece is passed over.
template <class Use>
[[nodiscard]] bool each_piece(const SgeList& sges, std::uint64_t skip, std::size_t left, const Use& use) {
  for (const Sge& sge : sges.view()) {
    if (left == 0) break;
    if (skip >= sge.length) {
      skip -= sge.length;
      continue;
    }
    const std::size_t n = std::min<std::size_t>(sge.length - skip, left);
    if (!use(sge.lkey, sge.at(skip), n)) return false;
    left -= n;
    skip = 0;
  }
  return true;
}

}  // namespace iwarp::rdmap
