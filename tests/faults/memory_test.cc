// Memory that is limited: by the gateway's own option, and by the system.
#include <csignal>
#include <thread>

#include "tests/cm/node.h"
#include "tests/faults/chain.h"
#include "tests/faults/process_facts.h"
#include "tests/faults/written.h"

namespace iwarp::faults {
namespace {

using namespace std::chrono_literals;
namespace samples = rpcrdma::test;

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr std::size_t kClients = 4;
constexpr std::uint32_t kCalls = 24;  // of each client

// A client that sends all its Calls as fast as they are taken, and somebody who reads the answers.
class Flood {
 public:
  explicit Flood(std::uint16_t port) : client_(port) {
    EXPECT_TRUE(client_.answered(samples::null_call(0)));  // before that one credit only
    sender_ = std::jthread([this] {
      for (std::uint32_t xid = 1; xid <= kCalls && client_.send(write_call(xid, xid, kMiB)); ++xid) ++sent_;
    });
  }
  [[nodiscard]] std::uint32_t sent() const { return sent_; }
  void expect_answers() {
    for (std::uint32_t n = 0; n < kCalls; ++n) ASSERT_TRUE(client_.receive()) << n << " of " << kCalls;
  }

 private:
  RpcClient client_;
  std::atomic<std::uint32_t> sent_{0};
  std::jthread sender_;
};

// A server that takes nothing for a while: what collects in the gateways is bounded, and nothing is lost.
TEST(GatewayMemory, StaysWithinItsOption) {
  if (kSanitized) GTEST_SKIP() << "memory cannot be limited under a sanitizer";
  Chain chain({"--connection-memory", "4"});
  std::array<std::size_t, 2> before{};
  const std::array<Chain::Process, 2> gateways{Chain::kRdmaFront, Chain::kTcpFront};
  for (std::size_t i = 0; i < 2; ++i) before[i] = memory(chain[gateways[i]].pid()).peak;
  std::vector<std::unique_ptr<Flood>> floods;
  for (std::size_t i = 0; i < kClients; ++i) floods.push_back(std::make_unique<Flood>(chain.port(Chain::kTcpFront)));
  chain[Chain::kStore].signal(SIGSTOP);
  const auto sent = [&] {
    std::uint32_t sum = 0;
    for (const auto& f : floods) sum += f->sent();
    return sum;
  };
  // Until everything stands still.
  for (std::uint32_t last = ~0U; last != sent();) {
    last = sent();
    std::this_thread::sleep_for(200ms);
  }
  chain[Chain::kStore].signal(SIGCONT);
  for (const auto& f : floods) f->expect_answers();
  for (std::size_t i = 0; i < 2; ++i) {
    const std::size_t grown = memory(chain[gateways[i]].pid()).peak - before[i];
    // For each client 4 MiB of Calls, 4 of Replies, and what a connection has besides.
    EXPECT_LT(grown, kClients * 10 * kMiB) << "process " << gateways[i];
    EXPECT_GT(grown, kMiB) << "the test did not press";
  }
  const auto lines = chain.applied();
  EXPECT_EQ(lines.size(), kClients * kCalls);
  for (const std::string& line : lines) EXPECT_TRUE(line.ends_with(" intact")) << line;
}

// The system gives no more memory: large messages wait for it, small ones are served, and when there is memory again
// nothing was lost.
TEST(GatewayMemory, WaitsWhenTheSystemGivesNone) {
  if (kSanitized) GTEST_SKIP() << "memory cannot be limited under a sanitizer";
  for (const Chain::Process which : {Chain::kRdmaFront, Chain::kTcpFront}) {
    SCOPED_TRACE(which);
    Chain chain;
    RpcClient small(chain.port(Chain::kTcpFront)), large(chain.port(Chain::kTcpFront));
    for (RpcClient* c : {&small, &large}) {
      for (std::uint32_t xid = 1; xid < 20; ++xid) EXPECT_TRUE(c->answered(samples::null_call(xid)));
    }
    test::Subprocess& gateway = chain[which];
    limit(gateway.pid(), RLIMIT_AS, memory(gateway.pid()).mapped + kMiB / 2);
    EXPECT_TRUE(large.send(write_call(20, 20, kMiB)));
    ASSERT_TRUE(gateway.wait_for("no memory for a message: it waits")) << gateway.output();
    for (std::uint32_t xid = 20; xid < 60; ++xid) EXPECT_TRUE(small.answered(samples::null_call(xid)));
    EXPECT_FALSE(large.receive(300));
    EXPECT_EQ(gateway.count("no memory for a message"), 1u);
    limit(gateway.pid(), RLIMIT_AS, RLIM_INFINITY);
    EXPECT_EQ(large.receive(), samples::write_reply(20));
    EXPECT_TRUE(small.answered(write_call(60, 60, kMiB)));
    for (const std::string& line : chain.applied()) EXPECT_TRUE(line.ends_with(" intact")) << line;
  }
}

}  // namespace
}  // namespace iwarp::faults
