// What a peer says last is heard, and what is heard of a peer that has nothing to say any more is limited.
#include <sys/socket.h>

#include <memory>

#include "tests/cm/node.h"
#include "tests/cm/raw_tcp.h"
#include "tests/support/segments.h"

namespace iwarp::cm {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace): the vocabulary of these tests

// The peer has sent a Terminate and gone before we look; what is sent meanwhile is answered with RST, and then TCP says
// EPIPE to the sender.
TEST(LastWords, ATerminateIsHeardThoughTcpTakesNoMore) {
  Engine engine(Engine::Mode::kManual);
  Node node(engine);
  RawListener listener;
  auto connecting = start_connect(node, to_port(listener.port()));
  const auto poll_until = [&](const auto& ready) {
    return eventually([&] {
      engine.poll();
      return ready();
    });
  };
  const auto pending = [](RawTcp& from) {
    char c;
    return ::recv(from.fd(), &c, 1, MSG_PEEK | MSG_DONTWAIT) == 1;
  };
  ASSERT_TRUE(poll_until([&] { return listener.anybody(0); }));
  RawTcp peer = listener.accept();
  ASSERT_TRUE(poll_until([&] { return pending(peer); }));
  ASSERT_TRUE(read_frame(peer, false).complete);
  ASSERT_TRUE(peer.send(octets(good_reply())));
  ASSERT_TRUE(poll_until([&] { return connecting.wait_for(0s) == std::future_status::ready && pending(peer); }));
  const Outcome outcome = get_outcome(std::move(connecting));
  ASSERT_NE(outcome.connection, nullptr) << outcome.error.why;
  while (pending(peer))
    ASSERT_FALSE(peer.read_some(1000, 0).empty());  // the RTR; unread, it would make close() a reset

  ASSERT_TRUE(peer.send(fpdu(terminate_segment(hex("00000000")), true)));
  peer.close();
  for (std::uint64_t id = 1; id <= 3; ++id) node.send(id, 100);
  ASSERT_TRUE(poll_until([&] { return outcome.connection->disconnected().has_value(); }));
  const auto how = outcome.connection->disconnected();
  EXPECT_EQ(how->reason.code, Errc::kRemoteTerminate) << how->reason.why;
  EXPECT_TRUE(how->received.has_value());
}

TEST(LastWords, OfARejectedPeerAreLimited) {
  Engine engine;
  const auto listener = listen(engine);
  RawTcp peer = RawTcp::connect(listener->local().port());
  ASSERT_TRUE(peer.send(octets(good_request())));
  next_request(*listener)->reject();
  // 64 KiB are read and dropped, so that the Reply is not lost to a reset. Buffers of TCP take some more.
  constexpr std::size_t kAtMost = 64 << 20;
  const Bytes noise(64 << 10);
  std::size_t sent = 0;
  while (sent < kAtMost && peer.send(noise)) sent += noise.size();
  EXPECT_LT(sent, kAtMost);
}

// What the handler of connect() holds is let go of when it has been called, not with the connection.
TEST(LastWords, TheHandlerOfConnectIsGoneOnceItWasCalled) {
  Engine server_engine, client_engine;
  Node server(server_engine), client(client_engine);
  const auto listener = listen(server_engine);
  std::promise<std::shared_ptr<Connection>> connected;
  std::weak_ptr<int> held;
  {
    auto something = std::make_shared<int>(1);
    held = something;
    connect(client_engine, client.qp, to(*listener),
            [&connected, something = std::move(something)](const Error&, const std::shared_ptr<Connection>& c) {
              connected.set_value(c);
            });
  }
  auto accepting = next_request(*listener)->async_accept(server.qp, {}, cm::as_error(boost::asio::use_future));
  const auto connection = get(connected.get_future());
  ASSERT_NE(connection, nullptr);
  EXPECT_EQ(get_outcome(std::move(accepting)).error.code, Errc::kOk);
  EXPECT_TRUE(eventually([&] { return held.expired(); }));
  EXPECT_FALSE(connection->disconnected().has_value());
}

}  // namespace
}  // namespace iwarp::cm
