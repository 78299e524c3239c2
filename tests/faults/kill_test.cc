// kill -9 of one process at a time: the others say in time why the connection ended, free everything, and go on
// serving.
#include <gmock/gmock.h>

#include <csignal>

#include "tests/cm/node.h"
#include "tests/faults/chain.h"
#include "tests/faults/survivor.h"
#include "tests/faults/written.h"

namespace iwarp::faults {
namespace {

using test::Subprocess;
using ::testing::HasSubstr;
using Words = std::vector<std::string>;
namespace samples = rpcrdma::test;

// --- rping

class KilledRping : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(listens_) << server_.output(); }
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
  // The server has no more open than before any client came.
  void expect_freed() {
    EXPECT_TRUE(test::eventually([&] { return descriptors(server_.pid()) == descriptors_; }, kFreed))
        << descriptors(server_.pid()) << " descriptors, " << descriptors_ << " at the start";
  }
  // Whatever it carries, up to this octet of the Reply.
  static Relay::Plan held_reply(std::size_t octet) { return {.down = {.cut = Way::Cut::kHold, .cut_at = octet}}; }
  // The last octet of a Request has come through.
  static void await_request(const Relay& relay) {
    EXPECT_TRUE(test::eventually([&] { return !relay.record().down.empty(); }));
  }

  const HeldPort held_;
  const std::uint16_t port_ = held_.port();
  Subprocess server_{server(std::to_string(port_))};
  Relay relay_{port_};
  const bool listens_ = server_.wait_for("listening on ");
  const std::size_t descriptors_ = descriptors_at_rest(server_.pid());
};

TEST_F(KilledRping, ClientDuringStartup) {
  for (std::size_t round = 0; const std::size_t octet : {0u, 10u}) {
    relay_.set(held_reply(octet));
    Subprocess victim(client(relay_.port(), {}));
    await_request(relay_);
    EXPECT_NE(descriptors(server_.pid()), descriptors_) << "the check sees nothing";
    victim.signal(SIGKILL);
    victim.wait();
    expect_cause(server_, "connect failed peer=127.0.0.1:", ++round);
    expect_freed();
  }
  expect_serving(port_);
}

TEST_F(KilledRping, ClientInTheMiddle) {
  for (const std::size_t round : {1u, 2u, 3u}) {
    Subprocess victim(client(port_, {"-S", round == 2 ? "65535" : "64"}));
    ASSERT_TRUE(server_.wait_for("rdma-ping-20: ", round)) << server_.output();
    EXPECT_NE(descriptors(server_.pid()), descriptors_) << "the check sees nothing";
    victim.signal(SIGKILL);
    victim.wait();
    expect_cause(server_, "closed peer=127.0.0.1:", round);
    expect_freed();
  }
  expect_serving(port_);
}

TEST_F(KilledRping, ServerBeforeItsFirstOctet) {
  server_.signal(SIGSTOP);  // the system accepts in its place
  Subprocess waiting(client(relay_.port(), {}));
  ASSERT_TRUE(test::eventually([&] { return !relay_.record().up.empty(); }));
  EXPECT_TRUE(relay_.record().down.empty());
  server_.signal(SIGKILL);
  EXPECT_EQ(waiting.wait(kNoticed), 1) << waiting.output();
  EXPECT_THAT(waiting.output(), HasSubstr("connect failed peer=127.0.0.1:"));
}

TEST_F(KilledRping, ServerInItsReply) {
  relay_.set(held_reply(10));
  Subprocess waiting(client(relay_.port(), {}));
  await_request(relay_);
  server_.signal(SIGKILL);
  EXPECT_EQ(waiting.wait(kNoticed), 1) << waiting.output();
  EXPECT_THAT(waiting.output(), HasSubstr("connect failed peer=127.0.0.1:"));
}

TEST_F(KilledRping, ServerInTheMiddle) {
  Subprocess pinging(client(port_, {"-S", "65535"}));
  ASSERT_TRUE(server_.wait_for("rdma-ping-20: "));
  server_.signal(SIGKILL);
  server_.wait();
  EXPECT_EQ(pinging.wait(kNoticed), 1);
  expect_cause(pinging, "closed peer=127.0.0.1:", 1);
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
  // Ended by us, the client has to come back.
  static void expect_ended(RpcClient& c) { EXPECT_NE(c.end(kNoticed), test::RawTcp::End::kTimeout); }

  Chain chain_;
  std::size_t held_ = 0;
};

TEST_F(KilledChain, ServerInTheMiddleOfACall) {
  for (const std::size_t round : {1u, 2u}) {
    const auto c = waiting_client();
    chain_.kill(Chain::kStore);
    held_ = 0;
    expect_ended(*c);
    expect_cause(chain_[Chain::kRdmaFront], "server closed peer=127.0.0.1:", round);
    expect_cause(chain_[Chain::kRdmaFront], " closed peer=127.0.0.1:", round);
    expect_at_rest(chain_, Chain::kRdmaFront);
    expect_at_rest(chain_, Chain::kTcpFront);
    // While it is down clients are turned away, and told why.
    RpcClient early(chain_.port(Chain::kTcpFront));
    expect_ended(early);
    EXPECT_TRUE(chain_[Chain::kTcpFront].wait_for("reason=peer_rejected", round)) << chain_[Chain::kTcpFront].output();
    EXPECT_TRUE(chain_[Chain::kRdmaFront].wait_for("Connection refused: nothing listens there", round));
    chain_.start(Chain::kStore);
    expect_serving(chain_);
  }
}

TEST_F(KilledChain, RdmaFrontInTheMiddleOfACall) {
  for (const std::size_t round : {1u, 2u}) {
    const auto c = waiting_client();
    chain_.kill(Chain::kRdmaFront);
    expect_ended(*c);
    expect_cause(chain_[Chain::kTcpFront], " closed peer=127.0.0.1:", round);
    expect_at_rest(chain_, Chain::kTcpFront);
    chain_.start(Chain::kRdmaFront);
    expect_serving(chain_);
  }
}

TEST_F(KilledChain, TcpFrontInTheMiddleOfACall) {
  for (const std::size_t round : {1u, 2u}) {
    const auto c = waiting_client();
    chain_.kill(Chain::kTcpFront);
    expect_ended(*c);
    expect_cause(chain_[Chain::kRdmaFront], " closed peer=127.0.0.1:", round);
    expect_at_rest(chain_, Chain::kRdmaFront);
    chain_.start(Chain::kTcpFront);
    expect_serving(chain_);
  }
}

TEST_F(KilledChain, GatewaysDuringStartup) {
  const auto stalled = [&](std::size_t octet) {
    chain_.relay().set({.down = {.cut = Way::Cut::kHold, .cut_at = octet}});
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
    // With A=0 the connection is established for a responder when its Reply has left.
    expect_cause(chain_[Chain::kRdmaFront], "closed peer=127.0.0.1:", 1);
    expect_at_rest(chain_, Chain::kRdmaFront);
    chain_.start(Chain::kTcpFront);
    expect_serving(chain_);
  }
  const auto c = stalled(5);
  chain_.kill(Chain::kRdmaFront);
  expect_ended(*c);
  expect_cause(chain_[Chain::kTcpFront], "refused tcp_peer=127.0.0.1:", 1);
  expect_at_rest(chain_, Chain::kTcpFront);
  chain_.start(Chain::kRdmaFront);
  expect_serving(chain_);
}

}  // namespace
}  // namespace iwarp::faults
