#include "iwarp/gateway/backend_connector.h"

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>

namespace iwarp::gateway {
namespace {

using boost::asio::ip::tcp;

struct Outcome {
  Error error;
  tcp::endpoint local, remote;
};

Outcome connected(const BackendRequest& request) {
  boost::asio::io_context io;
  std::optional<Outcome> outcome;
  connect_backend(io, request, [&](Error error, tcp::socket socket) {
    outcome = {std::move(error), {}, {}};
    if (outcome->error.code != Errc::kOk) return;
    outcome->local = socket.local_endpoint();
    outcome->remote = socket.remote_endpoint();
  });
  io.run();
  return outcome.value();
}

// A port where nothing listens.
std::uint16_t free_port(const boost::asio::ip::address& at) {
  boost::asio::io_context io;
  return tcp::acceptor(io, {at, 0}).local_endpoint().port();
}

TEST(BackendConnector, TakesThePreferredPort) {
  boost::asio::io_context io;
  tcp::acceptor server(io, {boost::asio::ip::address_v4::loopback(), 0});
  const std::uint16_t port = free_port(boost::asio::ip::address_v4::loopback());
  const Outcome outcome = connected({.server = {"127.0.0.1", server.local_endpoint().port()}, .source_port = port});
  EXPECT_EQ(outcome.error.code, Errc::kOk) << outcome.error.why;
  EXPECT_EQ(outcome.local.port(), port);
  EXPECT_EQ(outcome.remote, server.local_endpoint());
}

// TCP connects a socket to itself when its own port is the one where no server listens.
TEST(BackendConnector, IsNotItsOwnServer) {
  for (const char* host : {"127.0.0.1", "::1"}) {
    const auto address = boost::asio::ip::make_address(host);
    const std::uint16_t port = free_port(address);
    const Outcome outcome = connected(
        {.server = {host, port}, .source = address, .source_port = port, .timeout = std::chrono::seconds(10)});
    EXPECT_EQ(outcome.error.code, Errc::kSystem) << host << " " << outcome.local << " " << outcome.remote;
  }
}

}  // namespace
}  // namespace iwarp::gateway
