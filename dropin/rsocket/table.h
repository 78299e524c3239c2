// Which descriptors are rsockets. A descriptor is open for as long as its rsocket, so that its number is nobody else's;
// poll(2) finds it never ready. A program that closes it by close() instead of rclose() has lost the rsocket.
#pragma once

#include <poll.h>

#include <memory>
#include <shared_mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "dropin/rsocket/socket.h"

namespace iwarp::dropin::rsockets {

// Thread-safe.
class Table {
 public:
  // The new descriptor. Throws std::system_error: there is none.
  [[nodiscard]] int add(std::shared_ptr<Socket> socket);
  // Null, with errno EBADF: it is no rsocket.
  [[nodiscard]] std::shared_ptr<Socket> find(int descriptor);
  // Those of all of `watched`, null where it is none; empty: there are none at all.
  [[nodiscard]] std::vector<std::shared_ptr<Socket>> find(std::span<const pollfd> watched);
  // Likewise, and the descriptor belongs to nobody: it is still open, and to be closed by the caller.
  [[nodiscard]] std::shared_ptr<Socket> remove(int descriptor);

 private:
  std::shared_mutex mutex_;
  std::unordered_map<int, std::shared_ptr<Socket>> sockets_;
};

// That of the process. A forked child begins with an empty one.
[[nodiscard]] Table& table();

}  // namespace iwarp::dropin::rsockets
