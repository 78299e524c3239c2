// What the log is told of servers that cannot be reached, and when they can be.
#include "iwarp/gateway/backend_watch.h"

#include "tests/gateway/front_fixture.h"

namespace iwarp::gateway::test {
namespace {

using namespace std::chrono_literals;

class Backends : public FrontFixture {
 protected:
  static ListenerSettings before(const HostPort& backend, Direction direction = Direction::kRdmaToTcp) {
    ListenerSettings s;
    s.name = "nfs";
    s.direction = direction;
    s.server = backend;
    return s;
  }
  // A port of this host where nobody listens.
  std::uint16_t free_port() {
    return tcp::acceptor(loop.io, {boost::asio::ip::make_address("127.0.0.1"), 0}).local_endpoint().port();
  }

  BackendWatch watch{loop.io, {.every = 5ms, .patience = 30s}};
};

TEST_F(Backends, SaysNothingOfServersThatAnswer) {
  watch.watch({before(server.host_port())});
  EXPECT_EQ(watch.unknown(), 1u);
  EXPECT_TRUE(loop.until([&] { return watch.unknown() == 0; }));
  EXPECT_EQ(log.str(), "");
}

TEST_F(Backends, WarnsOnceAndTellsWhenTheServerIsThere) {
  const std::uint16_t port = free_port();
  watch.watch({before({"127.0.0.1", port})});
  ASSERT_TRUE(loop.until([&] { return log_lines("refused; clients will be refused") == 1; }));
  EXPECT_EQ(log_lines("nfs: the server 127.0.0.1:" + std::to_string(port) +
                      " is not ready: it cannot be connected to: Connection refused"),
            1u);
  loop.run_for(30ms);
  EXPECT_TRUE(logged("is not ready", 1));
  const RpcServer late(loop, "127.0.0.1", port);
  EXPECT_TRUE(loop.until([&] { return watch.unknown() == 0; }));
  EXPECT_TRUE(logged("is ready now", 1));
}

TEST_F(Backends, NamesThatDoNotResolveAreLookedUpAgain) {
  watch.watch({before({"nowhere.invalid", 2049}), before({"nowhere.invalid", 20049}, Direction::kTcpToRdma)});
  EXPECT_TRUE(loop.until([&] { return log_lines("its name cannot be looked up: ") == 2; }, 60s));
  EXPECT_EQ(watch.unknown(), 2u);
}

TEST_F(Backends, DoesNotConnectToRdmaServers) {
  watch.watch({before(server.host_port(), Direction::kTcpToRdma)});
  EXPECT_TRUE(loop.until([&] { return watch.unknown() == 0; }));
  loop.run_for(10ms);
  EXPECT_TRUE(server.peers.empty());
  EXPECT_EQ(log.str(), "");
}

TEST_F(Backends, AServerThatDoesNotAnswerIsNotWaitedForWithoutEnd) {
  tcp::acceptor deaf(loop.io);  // its queue is full: it drops SYNs
  deaf.open(tcp::v4());
  deaf.bind({boost::asio::ip::make_address("127.0.0.1"), 0});
  deaf.listen(0);
  std::vector<tcp::socket> queue;
  for (int i = 0; i < 4; ++i) {
    queue.emplace_back(loop.io);
    queue.back().async_connect(deaf.local_endpoint(), [](boost::system::error_code) {});
  }
  BackendWatch impatient(loop.io, {.every = 30s, .patience = 50ms});
  impatient.watch({before({"127.0.0.1", deaf.local_endpoint().port()})});
  EXPECT_TRUE(loop.until([&] { return log_lines("is not ready: it does not answer") == 1; }));
}

TEST_F(Backends, ForgetsServersThatAreNoMore) {
  const auto gone = before({"127.0.0.1", free_port()});
  watch.watch({gone});
  ASSERT_TRUE(loop.until([&] { return log_lines("is not ready") == 1; }));
  watch.watch({});
  EXPECT_EQ(watch.unknown(), 0u);
  loop.run_for(30ms);
  EXPECT_TRUE(logged("is not ready", 1));
  watch.watch({gone});  // it is new again
  EXPECT_TRUE(loop.until([&] { return log_lines("is not ready") == 2; }));
}

}  // namespace
}  // namespace iwarp::gateway::test
