// A gateway with an RDMA front before a scriptable TCP server, all in one thread on loopback.
#pragma once

#include <gtest/gtest.h>

#include "iwarp/gateway/rdma_front.h"
#include "tests/gateway/log_text.h"
#include "tests/gateway/rdma_client.h"
#include "tests/gateway/relay.h"
#include "tests/gateway/rpc_server.h"

namespace iwarp::gateway::test {

namespace samples = rpcrdma::test;
using iwarp::test::operator+;
using iwarp::test::pattern;

class FrontFixture : public ::testing::Test {
 protected:
  FrontFixture();
  ~FrontFixture() override;

  // For a front of `engine`, with `options`. With more workers than one in IWARP_TEST_WORKERS those serve all clients,
  // and none is left to the test's thread.
  [[nodiscard]] std::shared_ptr<Process> process_for(cm::Engine& engine);
  // With `options`, on 127.0.0.1, in front of `server`.
  void open();
  void open(const HostPort& backend, const std::string& address = "127.0.0.1");
  [[nodiscard]] std::unique_ptr<RdmaClient> client() { return client({}); }
  // Connected, or a failure.
  [[nodiscard]] std::unique_ptr<RdmaClient> client(RdmaClient::Options with);

  [[nodiscard]] Stats::Messages messages(MessageKind kind) const { return front->snapshot().of(kind); }
  [[nodiscard]] std::uint64_t dropped(MessageKind kind, DropReason why) const {
    return messages(kind).dropped[static_cast<std::size_t>(why)];
  }
  [[nodiscard]] std::uint64_t refused(RefuseReason why) const {
    return front->snapshot().refused[static_cast<std::size_t>(why)];
  }
  // Runs until the workers have done with sessions that have ended: these give back their memory there.
  void settle();
  // A client that does everything right is still served.
  void expect_still_serving();
  // received == forwarded + dropped, for every kind.
  void expect_nothing_pending() const;
  // Lines logged so far that contain `text`.
  [[nodiscard]] std::size_t log_lines(const std::string& text) const;
  // Waits for them: a worker may log an end after the client has seen it.
  [[nodiscard]] testing::AssertionResult logged(const std::string& text, std::size_t lines);
  [[nodiscard]] testing::AssertionResult logged_at_least(const std::string& text, std::size_t lines);

  Loop loop;
  RpcServer server{loop};
  cm::Engine gateway_engine{loop.io};
  cm::Engine client_engine{loop.io};
  Options options;
  std::unique_ptr<RdmaFront> front;
  std::weak_ptr<Process> process_of_front;  // the last one of process_for()
  LogText log;
  std::vector<std::shared_ptr<const void>> seats;  // that keep clients away from the test's thread
};

}  // namespace iwarp::gateway::test
