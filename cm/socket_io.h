// One non-blocking system call that moves octets between a TCP socket and pieces of memory.
#pragma once

#include <span>

#include "iwarp/base/bytes.h"

namespace iwarp::cm {

// What came of it. Octets moved: `n`; 0 when receiving means that the other end has sent FIN. Else an errno in `error`.
struct Transfer {
  std::size_t n = 0;
  int error = 0;
  bool whole = false;  // all that was asked for
  [[nodiscard]] bool would_block() const;
};

// Neither blocks nor raises SIGPIPE. `pieces`: one at least; those beyond kMaxPieces are left out.
inline constexpr std::size_t kMaxPieces = 512;  // below IOV_MAX; a batch of the core has fewer
[[nodiscard]] Transfer send_pieces(int fd, std::span<const ConstBytes> pieces);
[[nodiscard]] Transfer receive_pieces(int fd, std::span<const MutBytes> pieces);

}  // namespace iwarp::cm
