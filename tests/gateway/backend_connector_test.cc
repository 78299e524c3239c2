#include "iwarp/gateway/backend_connector.h"

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <vector>

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

SourcePorts preferring(std::uint16_t port) {
  return {ReservedPort::kOff, port, {}, 0};
}

TEST(BackendConnector, TakesThePreferredPort) {
  boost::asio::io_context io;
  tcp::acceptor server(io, {boost::asio::ip::address_v4::loopback(), 0});
  const std::uint16_t port = free_port(boost::asio::ip::address_v4::loopback());
  const Outcome outcome =
      connected({.server = {"127.0.0.1", server.local_endpoint().port()}, .source_ports = preferring(port)});
  EXPECT_EQ(outcome.error.code, Errc::kOk) << outcome.error.why;
  EXPECT_EQ(outcome.local.port(), port);
  EXPECT_EQ(outcome.remote, server.local_endpoint());
}

// TCP connects a socket to itself when its own port is the one where no server listens.
TEST(BackendConnector, IsNotItsOwnServer) {
  for (const char* host : {"127.0.0.1", "::1"}) {
    const auto address = boost::asio::ip::make_address(host);
    const std::uint16_t port = free_port(address);
    const Outcome outcome = connected({.server = {host, port},
                                       .source = address,
                                       .source_ports = preferring(port),
                                       .timeout = std::chrono::seconds(10)});
    EXPECT_EQ(outcome.error.code, Errc::kConnectionRefused) << host << " " << outcome.local << " " << outcome.remote;
  }
}

class ReservedPorts : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!may_bind_reserved_ports()) GTEST_SKIP() << "needs CAP_NET_BIND_SERVICE";
  }
  [[nodiscard]] HostPort server() const { return {"127.0.0.1", server_.local_endpoint().port()}; }

  boost::asio::io_context io_;
  tcp::acceptor server_{io_, {boost::asio::ip::address_v4::loopback(), 0}};
};

TEST_F(ReservedPorts, TakesOne) {
  for (const auto mode : {ReservedPort::kPrefer, ReservedPort::kRequire}) {
    const Outcome outcome = connected({.server = server(), .source_ports{mode, std::nullopt, {}, 77}});
    EXPECT_EQ(outcome.error.code, Errc::kOk) << outcome.error.why;
    EXPECT_GE(outcome.local.port(), kFirstReservedPort);
    EXPECT_LE(outcome.local.port(), kLastReservedPort);
  }
}

// All of them are in use towards this server: one with SO_REUSEADDR is bound all the same, but cannot connect.
TEST_F(ReservedPorts, TakesAHighOneOrNoneWhenTheyRunOut) {
  std::vector<tcp::socket> taken;
  for (std::uint16_t port = kFirstReservedPort; port <= kLastReservedPort; ++port) {
    tcp::socket s(io_, tcp::v4());
    s.set_option(boost::asio::socket_base::reuse_address(true));
    boost::system::error_code ec;
    s.bind({boost::asio::ip::address_v4::loopback(), port}, ec);
    if (!ec) s.connect(server_.local_endpoint(), ec);
    if (!ec) taken.push_back(std::move(s));
  }
  ASSERT_GT(taken.size(), kReservedPorts / 2);
  const auto loopback = boost::asio::ip::make_address("127.0.0.1");
  Outcome outcome =
      connected({.server = server(), .source = loopback, .source_ports{ReservedPort::kPrefer, std::nullopt, {}, 0}});
  EXPECT_EQ(outcome.error.code, Errc::kOk) << outcome.error.why;
  EXPECT_GT(outcome.local.port(), kLastReservedPort);
  outcome =
      connected({.server = server(), .source = loopback, .source_ports{ReservedPort::kRequire, std::nullopt, {}, 0}});
  EXPECT_EQ(outcome.error.code, Errc::kInvalidArgument) << outcome.local;
  EXPECT_STREQ(outcome.error.why, "no port from 512 to 1023 is to be had");
}

TEST_F(ReservedPorts, AServerThatIsNotThereIsNotAskedFromEachOfThem) {
  const std::uint16_t nobody = free_port(boost::asio::ip::address_v4::loopback());
  const Outcome outcome =
      connected({.server = {"127.0.0.1", nobody}, .source_ports{ReservedPort::kPrefer, std::nullopt, {}, 0}});
  EXPECT_EQ(outcome.error.code, Errc::kConnectionRefused);
}

}  // namespace
}  // namespace iwarp::gateway
