// A Requester and a Responder of iwarp, joined by endpoints that execute by memcpy.
#pragma once

#include "iwarp/rpcrdma/requester.h"
#include "tests/rpcrdma/fake_endpoint.h"

namespace iwarp::rpcrdma::test {

class Pair {
 public:
  explicit Pair(RequesterOptions c = {}, ResponderOptions s = {}, const BufferPool::Options* server_memory = nullptr,
                std::size_t client_queue_depth = 16)
      : client_end(0x100, client_queue_depth),
        client_pool(client_end, pool_options(c)),
        server_pool(server_end, server_memory != nullptr ? *server_memory : pool_options(s)),
        client(client_end, client_pool, negotiate(private_data(c), private_data(s)), c),
        server(server_end, server_pool, negotiate(private_data(c), private_data(s)), s) {
    FakeEndpoint::join(client_end, server_end);
    client_end.deliver = [this](const Completion& x) { client.on_completion(x); };
    server_end.deliver = [this](const Completion& x) { server.on_completion(x); };
    EXPECT_TRUE(client.start().ok());
    EXPECT_TRUE(server.start().ok());
  }
  ~Pair() {
    client_end.disconnect();
    server_end.disconnect();
    while (client.poll_event()) {
    }
    while (server.poll_event()) {
    }
  }
  void run() { test::run(client_end, server_end); }

  FakeEndpoint client_end;
  FakeEndpoint server_end{0x900};
  BufferPool client_pool;
  BufferPool server_pool;
  Requester client;
  Responder server;
};

}  // namespace iwarp::rpcrdma::test
