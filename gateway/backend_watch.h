// Tells the log of servers behind the gateway that cannot be reached, before a client finds out: at the start, when the
// settings change, and until they can be. Connections look names up by themselves. One thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "iwarp/gateway/service.h"

namespace iwarp::gateway {

struct BackendWatchOptions {
  // How often a server that was not reached is looked at again.
  std::chrono::milliseconds every{30000};
  // How long it may take to answer.
  std::chrono::milliseconds patience{5000};
};

class BackendWatch {
 public:
  // `io` must outlive it.
  explicit BackendWatch(boost::asio::io_context& io, const BackendWatchOptions& options = {});
  ~BackendWatch();
  BackendWatch(const BackendWatch&) = delete;
  BackendWatch& operator=(const BackendWatch&) = delete;

  // Looks at the servers that are new, and forgets those that are no more. A TCP server is connected to. Of an
  // RPC-over-RDMA server only the name is looked up: Linux siw closes its listening socket when a connection ends
  // before its MPA Request.
  void watch(const std::vector<ListenerSettings>& listeners);

  // Servers that are not known to be well.
  [[nodiscard]] std::size_t unknown() const { return looks_.size(); }

 private:
  class Look;
  using Key = std::pair<Direction, std::string>;

  boost::asio::io_context& io_;
  BackendWatchOptions options_;
  std::map<Key, std::shared_ptr<Look>> looks_;  // not well yet
  std::set<Key> known_;                         // all
};

}  // namespace iwarp::gateway
