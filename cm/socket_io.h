// One non-blocking system call that moves octets between a TCP socket and pieces of memory.
#pragma once

#include <optional>
#include <span>

#include "iwarp/base/bytes.h"
#include "iwarp/stream/connection.h"

namespace iwarp::cm {

// What came of it. Octets moved: `n`; 0 when receiving means that the other end has sent FIN. Else an errno in `error`.
struct Transfer {
  std::size_t n = 0;
  int error = 0;
  bool whole = false;  // all that was asked for
  [[nodiscard]] bool would_block() const;
};

// What a call that moved nothing, and would not have blocked, says of the connection. Null: none of these; the errno is
// the cause. When TCP gives up on a peer, after keepalive or TCP_USER_TIMEOUT, it reports ETIMEDOUT or a router's last
// word that the host or network is out of reach; other words of routers are causes of their own. Only ECONNRESET and
// EPIPE are the peer's.
[[nodiscard]] std::optional<stream::TcpEnd> end_of(const Transfer& failed);
// What that errno means, for Error::why.
[[nodiscard]] const char* cause_of(const Transfer& failed);

// How far a TCP connection has ended, though nothing is read from it.
struct SocketEnd {
  int error = 0;         // it is over: an errno, as of a call that moved nothing
  bool hung_up = false;  // over in both directions, by a reset or by a FIN each
  bool fin = false;      // the peer's FIN has come, behind what can be read
};
[[nodiscard]] SocketEnd end_behind(int fd);

// Neither blocks nor raises SIGPIPE. `pieces`: one at least; those beyond kMaxPieces are left out.
inline constexpr std::size_t kMaxPieces = 512;  // below IOV_MAX; a batch of the core has fewer
[[nodiscard]] Transfer send_pieces(int fd, std::span<const ConstBytes> pieces);
[[nodiscard]] Transfer receive_pieces(int fd, std::span<const MutBytes> pieces);

}  // namespace iwarp::cm
