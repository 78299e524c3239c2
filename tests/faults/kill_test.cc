// kill -9 of one process at a time, at every stage: the others say why the connection ended, and go on serving.
#include <gmock/gmock.h>

#include <csignal>
#include <sstream>

#include "tests/cm/node.h"
#include "tests/faults/chain.h"
#include "tests/faults/written.h"

namespace iwarp::faults {
namespace {

using test::Subprocess;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using Words = std::vector<std::string>;
namespace samples = rpcrdma::test;

// --- rping

class KilledRping : public ::testing::Test {
 protected:
  static Words server(const std::string& port) { return {"rping", "-s", "-P", "-v", "-a", "127.0.0.1", "-p", port}; }
  static Words client(std::uint16_t port, const Words& more) {
    Words w{"rping", "-c", "-a", "127.0.0.1", "-p", std::to_string(port)};
    w.insert(w.end(), more.begin(), more.end());
    return w;
  }
  static void expect_serving(std::uint16_t port) {
    const test::Finished f = test::run(client(port, {"-C", "2", "-V"}));
    EXPECT_EQ(f.code, 0) << f.output;
  }
  // Whatever it carries, up to this octet of the Reply.
  static Relay::Plan stalled_reply(std::size_t octet) { return {.down = {.cut = Way::Cut::kStall, .cut_at = octet}}; }
  // The last octet of a Request has come through.
  static void await_request(const Relay& relay) {
    EXPECT_TRUE(test::eventually([&] { return !relay.record().down.empty(); }));
  }

  Subprocess server_{server("0")};
  std::uint16_t port_ = static_cast<std::uint16_t>(std::stoul(server_.listening_port()));
  Relay relay_{port_};
};

TEST_F(KilledRping, ClientDuringStartup) {
  for (const std::size_t octet : {0u, 10u}) {
    relay_.set(stalled_reply(octet));
    Subprocess victim(client(relay_.port(), {}));
    await_request(relay_);
    victim.signal(SIGKILL);
    victim.wait();
    ASSERT_TRUE(server_.wait_for("connect failed peer=127.0.0.1:", octet == 0 ? 1 : 2)) << server_.output();
  }
  EXPECT_EQ(server_.count("reason=connection_lost") + server_.count("reason=peer_closed"), 2u) << server_.output();
  expect_serving(port_);
}

TEST_F(KilledRping, ClientInTheMiddle) {
  for (const std::size_t round : {1u, 2u, 3u}) {
    Subprocess victim(client(port_, {"-S", round == 2 ? "65535" : "64"}));
    ASSERT_TRUE(server_.wait_for("rdma-ping-20: ", round)) << server_.output();
    victim.signal(SIGKILL);
    victim.wait();
    ASSERT_TRUE(server_.wait_for("closed peer=127.0.0.1:", round)) << server_.output();
  }
  EXPECT_EQ(server_.count("reason=connection_lost") + server_.count("reason=peer_closed"), 3u) << server_.output();
  expect_serving(port_);
}

TEST_F(KilledRping, ServerDuringStartup) {
  relay_.set(stalled_reply(10));
  Subprocess waiting(client(relay_.port(), {}));
  await_request(relay_);
  relay_.set({});
  server_.signal(SIGKILL);
  server_.wait();
  relay_.reset_all();  // what the stall held back
  EXPECT_EQ(waiting.wait(), 1);
  EXPECT_THAT(waiting.output(), HasSubstr("connect failed peer=127.0.0.1:"));
}

TEST_F(KilledRping, ServerInTheMiddle) {
  Subprocess pinging(client(port_, {"-S", "65535"}));
  ASSERT_TRUE(server_.wait_for("rdma-ping-20: "));
  server_.signal(SIGKILL);
  server_.wait();
  EXPECT_EQ(pinging.wait(), 1);
  EXPECT_THAT(pinging.output(), AnyOf(HasSubstr("reason=connection_lost"), HasSubstr("reason=peer_closed")));
  Subprocess next(server(std::to_string(port_)));
  ASSERT_TRUE(next.wait_for("listening on")) << next.output();
  expect_serving(port_);
}

// --- The gateways and what is behind them

class KilledChain : public ::testing::Test {
 protected:
  // A client with a Call that the store keeps.
  std::unique_ptr<RpcClient> waiting_client() {
    auto c = std::make_unique<RpcClient>(chain_.port(Chain::kTcpFront));
    EXPECT_TRUE(c->answered(write_call(1, 1, 100'000)));
    EXPECT_TRUE(c->send(samples::readdir_call(2)));
    EXPECT_TRUE(chain_[Chain::kStore].wait_for("holding", ++held_));
    return c;
  }
  void expect_serving() {
    RpcClient c(chain_.port(Chain::kTcpFront));
    EXPECT_TRUE(c.answered(write_call(1, 1, 70'000)));
    EXPECT_TRUE(c.answered(samples::read_call(2, 70'000)));
  }
  // Lines of the log that hold this, each with what the end of a process looks like from outside.
  void expect_cause(Chain::Process who, const std::string& what, std::size_t lines) {
    ASSERT_TRUE(chain_[who].wait_for(what, lines)) << chain_[who].output();
    std::size_t found = 0;
    std::istringstream log(chain_[who].output());
    for (std::string line; std::getline(log, line);) {
      if (line.find(what) == std::string::npos) continue;
      found += line.find("reason=connection_lost") != std::string::npos ||
               line.find("reason=peer_closed") != std::string::npos || line.find("reason=aborted") != std::string::npos;
    }
    EXPECT_GE(found, lines) << chain_[who].output();
  }
  // Ended by us, the client has to come back.
  static void expect_ended(RpcClient& c) { EXPECT_NE(c.end(), test::RawTcp::End::kTimeout); }

  Chain chain_;
  std::size_t held_ = 0;
};

TEST_F(KilledChain, ServerInTheMiddleOfACall) {
  for (const std::size_t round : {1u, 2u}) {
    const auto c = waiting_client();
    chain_.kill(Chain::kStore);
    held_ = 0;
    expect_ended(*c);
    ASSERT_TRUE(chain_[Chain::kRdmaFront].wait_for("server closed tcp_peer=127.0.0.1:", round));
    expect_cause(Chain::kRdmaFront, " closed peer=127.0.0.1:", round);
    // While it is down clients are turned away, and told why.
    RpcClient early(chain_.port(Chain::kTcpFront));
    expect_ended(early);
    EXPECT_TRUE(chain_[Chain::kTcpFront].wait_for("reason=peer_rejected", round)) << chain_[Chain::kTcpFront].output();
    EXPECT_TRUE(chain_[Chain::kRdmaFront].wait_for("cannot connect to the TCP server: is it running?", round));
    chain_.start(Chain::kStore);
    expect_serving();
  }
}

TEST_F(KilledChain, RdmaFrontInTheMiddleOfACall) {
  for (const std::size_t round : {1u, 2u}) {
    const auto c = waiting_client();
    chain_.kill(Chain::kRdmaFront);
    expect_ended(*c);
    expect_cause(Chain::kTcpFront, " closed peer=127.0.0.1:", round);
    chain_.start(Chain::kRdmaFront);
    expect_serving();
  }
}

TEST_F(KilledChain, TcpFrontInTheMiddleOfACall) {
  for (const std::size_t round : {1u, 2u}) {
    const auto c = waiting_client();
    chain_.kill(Chain::kTcpFront);
    expect_ended(*c);
    expect_cause(Chain::kRdmaFront, " closed peer=127.0.0.1:", round);
    chain_.start(Chain::kTcpFront);
    expect_serving();
  }
}

TEST_F(KilledChain, GatewaysDuringStartup) {
  const auto stalled = [&](std::size_t octet) {
    chain_.relay().set({.down = {.cut = Way::Cut::kStall, .cut_at = octet}});
    auto c = std::make_unique<RpcClient>(chain_.port(Chain::kTcpFront));
    EXPECT_TRUE(c->send(samples::null_call(1)));
    EXPECT_TRUE(test::eventually([&] { return !chain_.relay().record().down.empty(); }));
    chain_.relay().set({});
    return c;
  };
  {
    const auto c = stalled(5);
    chain_.kill(Chain::kTcpFront);
    expect_ended(*c);
    expect_cause(Chain::kRdmaFront, "handshake failed peer=127.0.0.1:", 1);
    chain_.start(Chain::kTcpFront);
    expect_serving();
  }
  const auto c = stalled(5);
  chain_.kill(Chain::kRdmaFront);
  chain_.relay().reset_all();  // what the stall held back
  expect_ended(*c);
  ASSERT_TRUE(chain_[Chain::kTcpFront].wait_for("refused tcp_peer=127.0.0.1:"));
  chain_.start(Chain::kRdmaFront);
  expect_serving();
}

}  // namespace
}  // namespace iwarp::faults
