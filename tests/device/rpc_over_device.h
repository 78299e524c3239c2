// A Server and a device of JoinedVerbs, for Clients over it.
#pragma once

#include <memory>
#include <optional>

#include "iwarp/rpc/device_transport.h"
#include "iwarp/rpc/rdma_device.h"
#include "tests/device/joined_verbs.h"
#include "tests/rpc/program.h"

namespace iwarp::rpc::test {

using device::test::JoinedVerbs;

inline constexpr auto kAddress = [](std::uint16_t port = 20049) {
  return boost::asio::ip::tcp::endpoint(boost::asio::ip::address_v4({10, 0, 0, 1}), port);
};

class RpcOverDevice : public ::testing::Test {
 protected:
  void serve(ServerOptions options = {.threads = 2}) {
    server.emplace(engine, options);
    server->serve(kProgram, 1, program.handler());
    const auto at = on_device(device, {.endpoint = kAddress()});
    server->listen(at).value();
    EXPECT_EQ(at->local(), kAddress());
  }
  [[nodiscard]] std::shared_ptr<ClientTransport> to_server() { return over_device(device, {.host = "10.0.0.1"}); }
  void TearDown() override {
    if (!released) release();
  }
  void release() {
    released = true;
    program.let_go.set_value();
  }

  JoinedVerbs verbs;
  cm::Engine engine;
  Program program;
  std::shared_ptr<RdmaDevice> device = HomeDevice::open(engine, "fake0", verbs.table()).device;
  std::optional<Server> server;
  bool released = false;
};

}  // namespace iwarp::rpc::test
