// Servers and clients that die again and again: the gateways between them do not grow.
#include "tests/cm/node.h"
#include "tests/faults/chain.h"
#include "tests/faults/survivor.h"
#include "tests/faults/written.h"

namespace iwarp::faults {
namespace {

namespace samples = rpcrdma::test;

constexpr std::uint32_t kTransfer = 1 << 20;
constexpr int kWarmUp = 10, kRounds = 20;
// Octets over kRounds, for what an allocator leaves unused: less than a third of them may have left a connection
// behind.
constexpr std::size_t kLimit = 8u << 20;

class Growth : public ::testing::Test {
 protected:
  // Address space of both gateways.
  std::size_t mapped() {
    std::size_t sum = 0;
    for (const Chain::Process p : {Chain::kRdmaFront, Chain::kTcpFront}) sum += memory(chain_[p].pid()).mapped;
    return sum;
  }
  // Long messages both ways, and a Call that stays unanswered.
  std::unique_ptr<RpcClient> busy_client() {
    auto c = std::make_unique<RpcClient>(chain_.port(Chain::kTcpFront));
    EXPECT_TRUE(c->answered(write_call(1, 1, kTransfer)));
    EXPECT_TRUE(c->answered(samples::read_call(2, kTransfer)));
    const std::size_t held = chain_[Chain::kStore].count("holding");
    EXPECT_TRUE(c->send(samples::readdir_call(3)));
    EXPECT_TRUE(chain_[Chain::kStore].wait_for("holding", held + 1));
    return c;
  }
  void await_rest() {
    for (const Chain::Process p : {Chain::kRdmaFront, Chain::kTcpFront})
      ASSERT_TRUE(test::eventually([&] { return chain_.at_rest(p); }, kFreed)) << chain_[p].output();
  }
  void kill_client_and_server() {
    busy_client()->reset();
    await_rest();
    const auto c = busy_client();
    chain_.kill(Chain::kStore);
    chain_.start(Chain::kStore);
    await_rest();
  }

  Chain chain_;
};

TEST_F(Growth, NothingIsLeftOfClientsAndServersThatDied) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer keeps freed memory";
  for (int i = 0; i < kWarmUp; ++i) kill_client_and_server();
  const std::size_t before = mapped();
  for (int i = 0; i < kRounds; ++i) kill_client_and_server();
  EXPECT_LT(mapped(), before + kLimit);
}

// The check itself: a connection left over from each round would show.
TEST_F(Growth, ShowsWhatIsKept) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer keeps freed memory";
  for (int i = 0; i < kWarmUp; ++i) kill_client_and_server();
  const std::size_t before = mapped();
  std::vector<std::unique_ptr<RpcClient>> kept;
  for (int i = 0; i < kRounds; ++i) kept.push_back(busy_client());
  EXPECT_GT(mapped(), before + kLimit);
}

}  // namespace
}  // namespace iwarp::faults
