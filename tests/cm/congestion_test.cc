// The TCP congestion control that an application chooses. Reno is in every kernel, and allowed to everyone
// unless an administrator says otherwise.
#include <gmock/gmock.h>

#include "tests/cm/node.h"
#include "tests/support/tcp_sockets.h"

namespace iwarp::cm {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace): the vocabulary of these tests
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST(CongestionControl, IsThatOfBothEnds) {
  Engine engine;
  ListenOptions listening;
  listening.socket.congestion_control = "reno";
  const auto listener = listen(engine, listening);
  Node client(engine), server(engine);
  ConnectOptions connecting = to(*listener);
  connecting.socket.congestion_control = "reno";
  const Ends ends = join(client, server, *listener, connecting);
  ASSERT_EQ(ends.client.error.code, Errc::kOk);
  const auto found = congestion_controls(listener->local().port());
  EXPECT_THAT(found, SizeIs(3));  // listener, client, server
  EXPECT_THAT(found, Each("reno"));
}

TEST(CongestionControl, MustBeKnownToTheKernel) {
  Engine engine;
  ListenOptions listening;
  listening.socket.congestion_control = "nonesuch";
  listening.endpoint = {boost::asio::ip::address_v4::loopback(), 0};
  const auto failed = Listener::listen(engine, listening);
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().code, Errc::kInvalidArgument);
  EXPECT_THAT(failed.error().why, HasSubstr("net.ipv4.tcp_available_congestion_control"));

  // Asked for before connecting, as dctcp must be: where nobody listens, the answer is the same.
  std::uint16_t port = 0;
  { port = listen(engine)->local().port(); }
  Node client(engine);
  ConnectOptions connecting = to_port(port);
  connecting.socket.congestion_control = "nonesuch";
  const Outcome outcome = get_outcome(start_connect(client, connecting));
  EXPECT_EQ(outcome.error.code, Errc::kInvalidArgument);
  EXPECT_THAT(outcome.error.why, HasSubstr("net.ipv4.tcp_available_congestion_control"));
}

}  // namespace
}  // namespace iwarp::cm
