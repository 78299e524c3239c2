// Memory that is deregistered by another thread than the one that places segments, also those that come early.
#include <algorithm>
#include <optional>

#include "tests/sctp_cm/service_net.h"
#include "tests/support/covers.h"

namespace iwarp::sctp_cm {
namespace {

constexpr std::uint32_t kBytes = 60000;
constexpr std::byte kOwn{0x5A};  // of the application, once the memory is its own again

TEST_F(BadSctpService, MemoryIsTheApplicationsOnceItIsDeregistered) {
  COVERS("RFC5041-8.3-2");
  listen(fast<ListenOptions>());
  std::uint64_t early = 0;
  for (unsigned round = 0; round < 12; ++round) {
    End x(engine, pd), y(engine, pd);
    join(x, y, fast(to_listener()));
    std::vector<std::byte> target(kBytes);
    std::optional mr(verbs::MemoryRegion::register_memory(pd, target, {.access = kAnyAccess}).value());
    verbs::SendWr write{.op = verbs::SendOp::kWrite, .sges = x.sge(kBytes)};
    write.signaled = false;
    write.remote_stag = mr->stag();
    write.remote_to = mr->base_to();
    while (x.qp->post_send(write)) {  // far more than is placed before it ends
    }
    const std::uint64_t enough = round * 100000;
    ASSERT_TRUE(eventually([&] { return y.connection->counters().rx.write_bytes >= enough; }));
    mr.reset();
    std::fill(target.begin(), target.end(), kOwn);
    EXPECT_EQ(over(*y.connection).reason.code, Errc::kTaggedInvalidStag);
    EXPECT_TRUE(std::all_of(target.begin(), target.end(), [](std::byte b) { return b == kOwn; })) << round;
    early += y.connection->counters().rx.early;
    (void)over(*x.connection);
  }
  EXPECT_GT(early, 0u);
  EXPECT_TRUE(sctp->wait_closed(20s));
}

}  // namespace
}  // namespace iwarp::sctp_cm
