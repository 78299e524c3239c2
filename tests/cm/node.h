// One application on a real engine: queue pair, completion queue and memory; and what it takes to connect two of them
// over loopback. Every wait is bounded: what does not come fails the test instead of hanging it.
#pragma once

#include <gtest/gtest.h>

#include <boost/asio/use_future.hpp>
#include <future>
#include <stdexcept>

#include "iwarp/cm/connector.h"
#include "iwarp/cm/listener.h"
#include "iwarp/verbs/memory_region.h"
#include "tests/support/covers.h"
#include "tests/support/eventually.h"
#include "tests/support/hex.h"

namespace iwarp::test {

using namespace std::chrono_literals;

// The result of an operation that must end.
template <class T>
T get(std::future<T> result) {
  if (result.wait_for(kPatience) != std::future_status::ready) throw std::runtime_error("operation never ended");
  return result.get();
}

class Node {
 public:
  explicit Node(cm::Engine& engine, const stream::Options& options = {}, std::size_t bytes = 4096);
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  cm::Engine& engine;
  const stream::MpaOptions mpa;  // that its connections are made with
  verbs::ProtectionDomain pd;
  verbs::CompletionQueue cq;
  Bytes in, out;  // `in` takes everything from the peer, `out` is a pattern of this node's own
  verbs::MemoryRegion in_mr, out_mr;
  std::shared_ptr<verbs::QueuePair> qp;

  // Posts; the test fails when that is refused.
  void recv(std::uint64_t id = 0, std::size_t offset = 0, std::size_t length = ~std::size_t{0});
  void send(std::uint64_t id, std::size_t length, std::size_t offset = 0);
  void write(std::uint64_t id, const Node& to, std::size_t length);
  void read(std::uint64_t id, const Node& from, std::size_t length);
  // The next completion; waits for it.
  [[nodiscard]] verbs::Completion next();
  // The next completion must be that one.
  void expect(verbs::WcOp op, std::uint64_t id, Errc status = Errc::kOk);
};

struct Outcome {
  Error error;
  std::shared_ptr<cm::Connection> connection;
};
using Connecting = std::future<std::tuple<Error, std::shared_ptr<cm::Connection>>>;
Outcome get_outcome(Connecting result);

// On 127.0.0.1 unless `options` says otherwise, at a free port.
std::unique_ptr<cm::Listener> listen(cm::Engine& engine, cm::ListenOptions options = {});
cm::ConnectOptions to(const cm::Listener& listener, const mpa::Policy& policy = {});
cm::ConnectOptions to_port(std::uint16_t port, const mpa::Policy& policy = {});
Connecting start_connect(Node& node, const cm::ConnectOptions& options);
std::unique_ptr<cm::ConnectRequest> next_request(cm::Listener& listener);
// Waits for the end of the connection.
stream::Disconnected ending(cm::Connection& connection);

// Both ends of one connection.
struct Ends {
  Outcome client, server;
};
Ends join(Node& client, Node& server, cm::Listener& listener, const cm::ConnectOptions& options,
          const cm::ConnectRequest::AcceptOptions& accept = {});
inline Ends join(Node& client, Node& server, cm::Listener& listener) {
  return join(client, server, listener, to(listener));
}

// A message each way, compared.
void ping_pong(Node& client, Node& server);

// Open descriptors and threads of this process.
std::size_t open_descriptors();
std::size_t threads();

}  // namespace iwarp::test
