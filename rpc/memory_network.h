// Connections inside this process, for tests of programs that use Client and Server: no sockets, no other host. All
// rules of RDMA hold: memory is reached through registrations alone, a Send needs a Receive, and who breaks a rule
// loses the connection. Faults come when the test wants them.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <cstdint>
#include <memory>

#include "iwarp/rpc/channel.h"

namespace iwarp::rpc {

// One server, any number of clients. Thread-safe.
class MemoryNetwork {
 public:
  // `where`: what its handlers run on, such as engine.get_executor(); it must outlive this object's connections.
  explicit MemoryNetwork(boost::asio::any_io_executor where);
  ~MemoryNetwork();
  MemoryNetwork(const MemoryNetwork&) = delete;
  MemoryNetwork& operator=(const MemoryNetwork&) = delete;

  // For a Client. May outlive this object.
  [[nodiscard]] std::shared_ptr<ClientTransport> client();
  // For the Server; one at a time listens.
  [[nodiscard]] std::shared_ptr<ServerTransport> server();

  // Ends all connections there are: both ends see them lost. How many there were.
  std::size_t cut();
  // From now on the n-th Send counted from here ends its connection, in place of reaching the peer; once. 1 is the
  // next.
  void cut_at_send(std::uint64_t n);
  // Whether connections are refused from now on, as by a host whose server is gone.
  void refuse(bool refused);

  class State;  // what the ends share

 private:
  std::shared_ptr<State> state_;
};

}  // namespace iwarp::rpc
