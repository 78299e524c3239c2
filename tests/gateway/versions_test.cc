// Versions of RPC-over-RDMA between two gateways.
#include "iwarp/gateway/version_memory.h"

#include "tests/gateway/chained.h"
#include "tests/support/covers.h"

namespace iwarp::gateway::test {
namespace {

using namespace std::chrono_literals;

struct Versions {
  std::uint32_t client = 1, server = 1;
};

class ChainedVersions : public Chained, public ::testing::WithParamInterface<Versions> {
 protected:
  void SetUp() override {
    options.inline_bytes = 1024;
    options.rpcrdma_version = GetParam().server;
    open();
    options.rpcrdma_version = GetParam().client;
    open_tcp(front->local());
  }
};

TEST_P(ChainedVersions, CarryEverySize) {
  COVERS("V2-5-1");
  COVERS("V2-5.1-2");
  COVERS("V2-5.2-5");
  const bool both_2 = GetParam().client == 2 && GetParam().server == 2;
  for (int connection = 0; connection < 2; ++connection) {
    auto c = warm_client();
    c->send(samples::write_call(2, pattern(700)));
    EXPECT_EQ(await(*c), samples::write_reply(2));
    const auto reads = [&] { return front->snapshot().rdma_bytes[static_cast<std::size_t>(RdmaOperation::kRead)][0]; };
    const auto before = reads();
    c->send(samples::write_call(3, pattern(3000)));  // in line only with the sizes of version 2
    EXPECT_EQ(await(*c), samples::write_reply(3));
    EXPECT_EQ(reads() == before, both_2);
    for (const std::uint32_t size : {1u, 4000u, 4097u, 300'000u}) {
      const Bytes call = samples::read_call(4, size);
      c->send(call);
      EXPECT_TRUE(await(*c) == serve(call)) << size;
    }
    c->close();
  }
  expect_tcp_front_adds_up();
}

INSTANTIATE_TEST_SUITE_P(Each, ChainedVersions,
                         ::testing::Values(Versions{1, 1}, Versions{1, 2}, Versions{2, 1}, Versions{2, 2}));

TEST(VersionMemory, LowersWhatIsAskedForAWhile) {
  COVERS("V2-5.2-3");
  const TimePoint begin{std::chrono::hours(1)};
  VersionMemory memory;
  EXPECT_EQ(memory.highest("a:1", 2, begin), 2u);
  memory.learned("a:1", 1, begin);
  EXPECT_EQ(memory.highest("a:1", 2, begin), 1u);
  EXPECT_EQ(memory.highest("b:1", 2, begin), 2u);
  EXPECT_EQ(memory.highest("a:1", 2, begin + VersionMemory::kFor + 1s), 2u);
}

TEST(VersionMemory, IsBounded) {
  const TimePoint begin{std::chrono::hours(1)};
  VersionMemory memory;
  for (std::size_t i = 0; i <= VersionMemory::kServers; ++i) {
    memory.learned(std::to_string(i), 1, begin + i * 1s);
  }
  EXPECT_EQ(memory.highest("0", 2, begin + 80s), 2u);
  EXPECT_EQ(memory.highest("1", 2, begin + 80s), 1u);
}

}  // namespace
}  // namespace iwarp::gateway::test
