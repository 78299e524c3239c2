// A PortMemory for each TCP server: listeners in front of the same server share one, since a port towards it is used
// once. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "iwarp/gateway/options.h"
#include "iwarp/gateway/port_memory.h"

namespace iwarp::gateway {

class PortMemories {
 public:
  // Servers remembered, in use or not. For one more, of() forgets the one that nobody uses and that was asked for
  // longest ago: a bound on what a file can bring.
  static constexpr std::size_t kMaxServers = 64;

  // By the server as the operator writes it: "host:port".
  [[nodiscard]] std::shared_ptr<PortMemory> of(const HostPort& server) { return of(server.to_string()); }
  [[nodiscard]] std::shared_ptr<PortMemory> of(const std::string& server);

  [[nodiscard]] const std::map<std::string, std::shared_ptr<PortMemory>>& all() const { return by_server_; }

 private:
  void forget_one();

  std::map<std::string, std::shared_ptr<PortMemory>> by_server_;
  std::map<std::string, std::uint64_t> asked_;  // when each was last, by number
  std::uint64_t asks_ = 0;
};

}  // namespace iwarp::gateway
