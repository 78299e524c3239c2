// The system gives no more memory to the library, to `iwarp rping`, or to a gateway in the middle of anything.
#include <gmock/gmock.h>
#include <malloc.h>
#include <unistd.h>

#include <csignal>

#include "tests/cm/node.h"
#include "tests/faults/process_facts.h"
#include "tests/faults/survivor.h"
#include "tests/faults/writer.h"
#include "tests/faults/written.h"

namespace iwarp::faults {
namespace {

using test::Subprocess;
using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr std::size_t kMiB = std::size_t{1} << 20;

// No more address space than now, for this process, while it lives.
class NoMoreMemory {
 public:
  NoMoreMemory() {
    ::malloc_trim(0);  // what earlier tests left
    limit(::getpid(), RLIMIT_AS, memory(::getpid()).mapped);
  }
  ~NoMoreMemory() { limit(::getpid(), RLIMIT_AS, RLIM_INFINITY); }
  NoMoreMemory(const NoMoreMemory&) = delete;
  NoMoreMemory& operator=(const NoMoreMemory&) = delete;
};

TEST(Shortage, ARegistrationThatFailsSaysWhy) {
  if (kSanitized) GTEST_SKIP() << "memory cannot be limited under a sanitizer";
  constexpr std::size_t kMost = std::size_t{1} << 21;  // their table takes more than an allocator has in reserve
  const auto context = std::make_shared<verbs::Context>();
  const verbs::ProtectionDomain pd(context);
  test::Bytes bytes(64);
  std::vector<verbs::MemoryRegion> regions;
  regions.reserve(kMost + 1);
  Error error;
  {
    const NoMoreMemory shortage;
    while (error.code == Errc::kOk && regions.size() < kMost) {
      auto region = verbs::MemoryRegion::register_memory(pd, bytes, {});
      region ? regions.push_back(std::move(*region)) : void(error = region.error());
    }
  }
  EXPECT_EQ(error.code, Errc::kResource);
  EXPECT_THAT(error.why, HasSubstr("memory"));
  for (const verbs::MemoryRegion& region : regions) ASSERT_TRUE(context->stags().valid(region.stag()));
  for (int i = 0; i < 10'000; ++i) {
    auto region = verbs::MemoryRegion::register_memory(pd, bytes, {});
    ASSERT_TRUE(region) << region.error().why;
    if (i == 0) regions.push_back(std::move(*region));
  }
}

// More clients than the server has memory for: they are refused, whoever is served goes on, and others come later.
TEST(Shortage, RpingServesWhomItCan) {
  if (kSanitized) GTEST_SKIP() << "memory cannot be limited under a sanitizer";
  Subprocess server({"rping", "-s", "-P", "-a", "127.0.0.1", "-p", "0"});
  const std::string port = server.listening_port();
  const std::vector<std::string> endless{"rping", "-c", "-a", "127.0.0.1", "-p", port, "-v", "-V"};
  Subprocess one(endless);
  ASSERT_TRUE(one.wait_for("rdma-ping-5: "));
  limit(server.pid(), RLIMIT_AS, memory(server.pid()).mapped + kMiB);
  for (const std::size_t round : {1u, 2u, 3u}) {
    Subprocess refused(endless);
    EXPECT_EQ(refused.wait(kNoticed), 1) << refused.output();
    EXPECT_THAT(refused.output(), HasSubstr("reason=peer_rejected"));
    ASSERT_TRUE(server.wait_for("client not served: ", round, kNoticed)) << server.output();
  }
  one.read_pending();
  const std::size_t pings = one.count("ping data");
  ASSERT_TRUE(one.wait_for("ping data", pings + 100)) << one.output();
  limit(server.pid(), RLIMIT_AS, RLIM_INFINITY);
  Subprocess two(endless);
  EXPECT_TRUE(two.wait_for("rdma-ping-5: ")) << two.output();
}

// Not one page more for a gateway that has Calls under way, and ever more clients: it refuses them, or ends because
// something has to be allocated.
TEST(Shortage, AGatewayWithoutMemoryLosesNoAcknowledgedWrite) {
  if (kSanitized) GTEST_SKIP() << "memory cannot be limited under a sanitizer";
  for (const Chain::Process which : {Chain::kRdmaFront, Chain::kTcpFront}) {
    SCOPED_TRACE(which);
    Chain chain;
    Writer writer(chain, 1);
    writer.run(50);
    limit(chain[which].pid(), RLIMIT_AS, 1);
    std::vector<std::unique_ptr<RpcClient>> clients;
    try {
      for (std::uint32_t i = 0; i < 200; ++i) {
        clients.push_back(std::make_unique<RpcClient>(chain.port(Chain::kTcpFront)));
        (void)clients.back()->send(write_call(i, 1'000'000 + i, 100'000));
      }
    } catch (const std::system_error&) {
      // It has ended already.
    }
    // As ARCHITECTURE.md says: exit status 1, or SIGABRT where nothing may be thrown. Else it refused all of them.
    chain[which].signal(SIGKILL);
    EXPECT_THAT(chain[which].wait(), AnyOf(1, 128 + SIGABRT, 128 + SIGKILL)) << chain[which].output();
    chain.start(which);
    clients.clear();
    writer.finish();
    writer.check();
  }
}

}  // namespace
}  // namespace iwarp::faults
