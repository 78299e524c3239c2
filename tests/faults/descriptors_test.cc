// A process that has no descriptor left: whoever is connected is served, whoever comes waits or is refused, one line of
// the log says so, and the processor rests.
#include <gmock/gmock.h>

#include <csignal>

#include "tests/cm/node.h"
#include "tests/faults/chain.h"
#include "tests/faults/process_facts.h"
#include "tests/gateway/rdma_client.h"

namespace iwarp::faults {
namespace {

using gateway::test::RdmaClient;
using test::Subprocess;
using ::testing::HasSubstr;
using namespace std::chrono_literals;
namespace samples = rpcrdma::test;

constexpr const char* kPaused = "short of resources: no file descriptor left";

// Over half a second.
void expect_idle(const Subprocess& process) {
  const auto before = cpu_time(process.pid());
  std::this_thread::sleep_for(500ms);  // what is tested is that nothing happens
  EXPECT_LT(cpu_time(process.pid()) - before, 100ms);
}

class NoDescriptors : public ::testing::Test {
 protected:
  boost::asio::ip::tcp::endpoint rdma_front() const {
    return {boost::asio::ip::address_v4::loopback(), chain_.port(Chain::kRdmaFront)};
  }
  std::unique_ptr<RdmaClient> rdma_client(std::chrono::milliseconds patience = 5s) {
    RdmaClient::Options o;
    o.policy.startup_timeout = patience;
    o.policy.allow_revision_1_fallback = false;
    return std::make_unique<RdmaClient>(loop_, engine_, o);
  }
  static void expect_served(RdmaClient& c, std::uint32_t xid) {
    c.call(samples::null_call(xid));
    EXPECT_EQ(c.await(xid).payload, samples::rpc_reply(xid));
  }
  static void expect_served(RpcClient& c, std::uint32_t xid) {
    EXPECT_TRUE(c.answered(samples::read_call(xid, 50'000)));
  }

  Chain chain_;
  gateway::test::Loop loop_;
  cm::Engine engine_{loop_.io};
};

TEST_F(NoDescriptors, RdmaFront) {
  if (kSanitized) GTEST_SKIP() << "descriptors cannot be limited under a sanitizer";
  Subprocess& gateway = chain_[Chain::kRdmaFront];
  const std::size_t full = descriptors(gateway.pid()) + 5;
  leave_descriptors(gateway.pid(), 5);  // two clients need two each
  auto one = rdma_client(), two = rdma_client(), three = rdma_client(), four = rdma_client(300ms);
  ASSERT_TRUE(one->connect(rdma_front()) && two->connect(rdma_front()));
  expect_served(*one, 1);
  expect_served(*two, 1);
  // One is left, but the connection to the server would need another one.
  EXPECT_FALSE(three->connect(rdma_front()));
  EXPECT_EQ(three->error().code, Errc::kPeerRejected) << three->error().why;
  EXPECT_TRUE(gateway.wait_for("is the limit of open files reached?")) << gateway.output();
  // Somebody takes it and says nothing: now nobody is even accepted.
  auto silent = test::RawTcp::connect(rdma_front().port());
  ASSERT_TRUE(test::eventually([&] { return descriptors(gateway.pid()) == full; }));
  EXPECT_FALSE(four->connect(rdma_front()));
  EXPECT_EQ(four->error().code, Errc::kStartupTimeout) << four->error().why;
  ASSERT_TRUE(gateway.wait_for(kPaused)) << gateway.output();
  auto waiting = test::RawTcp::connect(rdma_front().port());
  expect_idle(gateway);
  expect_served(*one, 2);
  expect_served(*two, 2);
  EXPECT_EQ(gateway.count(kPaused), 1u);
  // Room again.
  silent.close();
  waiting.close();
  one.reset();
  ASSERT_TRUE(gateway.wait_for("closed peer="));
  bool served = false;
  for (int i = 0; i < 50 && !served; ++i) {
    auto five = rdma_client();
    served = five->connect(rdma_front());
    if (served) expect_served(*five, 1);
  }
  EXPECT_TRUE(served);
  expect_served(*two, 3);
}

TEST_F(NoDescriptors, TcpFront) {
  if (kSanitized) GTEST_SKIP() << "descriptors cannot be limited under a sanitizer";
  Subprocess& gateway = chain_[Chain::kTcpFront];
  leave_descriptors(gateway.pid(), 4);
  const auto port = chain_.port(Chain::kTcpFront);
  auto one = std::make_unique<RpcClient>(port);
  expect_served(*one, 1);
  RpcClient two(port);
  expect_served(two, 1);
  RpcClient three(port);  // waits to be accepted
  EXPECT_TRUE(three.send(samples::null_call(3)));
  ASSERT_TRUE(gateway.wait_for(kPaused)) << gateway.output();
  expect_idle(gateway);
  expect_served(*one, 2);
  expect_served(two, 2);
  gateway.read_pending();
  EXPECT_EQ(gateway.count(kPaused), 1u);
  one.reset();
  EXPECT_EQ(three.receive(), samples::rpc_reply(3));
  expect_served(two, 3);
}

TEST_F(NoDescriptors, TcpFrontThatCannotReachTheServer) {
  if (kSanitized) GTEST_SKIP() << "descriptors cannot be limited under a sanitizer";
  Subprocess& gateway = chain_[Chain::kTcpFront];
  leave_descriptors(gateway.pid(), 3);
  const auto port = chain_.port(Chain::kTcpFront);
  RpcClient one(port);
  expect_served(one, 1);
  RpcClient two(port);
  EXPECT_NE(two.end(30s), test::RawTcp::End::kTimeout);
  ASSERT_TRUE(gateway.wait_for("reason=resource")) << gateway.output();
  expect_served(one, 2);
}

TEST(NoDescriptorsForRping, ServesWhoIsConnected) {
  if (kSanitized) GTEST_SKIP() << "descriptors cannot be limited under a sanitizer";
  Subprocess server({"rping", "-s", "-P", "-a", "127.0.0.1", "-p", "0"});
  const std::string port = server.listening_port();
  const std::vector<std::string> endless{"rping", "-c", "-a", "127.0.0.1", "-p", port, "-v", "-V"};
  leave_descriptors(server.pid(), 2);
  Subprocess one(endless), two(endless);
  ASSERT_TRUE(one.wait_for("rdma-ping-5: ") && two.wait_for("rdma-ping-5: "));
  Subprocess three(endless);
  ASSERT_TRUE(server.wait_for(kPaused)) << server.output();
  one.signal(SIGKILL);
  EXPECT_TRUE(three.wait_for("rdma-ping-5: ")) << three.output();
  EXPECT_EQ(server.count(kPaused), 1u);
  two.signal(SIGINT);
  EXPECT_EQ(two.wait(), 130) << two.output();
}

}  // namespace
}  // namespace iwarp::faults
