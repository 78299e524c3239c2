// Room for what is not read yet, of both ends, and not of peers about whom nothing is decided.
#include "tests/cm/node.h"
#include "tests/support/tcp_sockets.h"

namespace iwarp::cm {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace): the vocabulary of these tests

struct Room {
  std::size_t client = 0, undecided = 0, server = 0;  // octets
};

Room room_with(std::size_t receive_window) {
  Engine engine;
  ListenOptions listening;
  listening.socket.receive_window = receive_window;
  const auto listener = listen(engine, listening);
  const std::uint16_t port = listener->local().port();
  Node client(engine), server(engine);
  ConnectOptions connecting = to(*listener);
  connecting.socket.receive_window = receive_window;
  auto connected = start_connect(client, connecting);
  const auto request = next_request(*listener);
  Room room;
  room.undecided = receive_buffer(port, &::getsockname);
  auto accepted = request->async_accept(server.qp, {}, cm::as_error(boost::asio::use_future));
  const Outcome a = get_outcome(std::move(connected)), b = get_outcome(std::move(accepted));
  EXPECT_EQ(a.error.code, Errc::kOk) << a.error.why;
  EXPECT_EQ(b.error.code, Errc::kOk) << b.error.why;
  room.client = receive_buffer(port, &::getpeername);
  room.server = receive_buffer(port, &::getsockname);
  return room;
}

TEST(ReceiveWindow, IsMadeWhenTheConnectionIsAccepted) {
  const Room usual = room_with(0);
  ASSERT_GT(usual.undecided, 0U);
  EXPECT_EQ(usual.server, usual.undecided) << "0 leaves it to the system";
  const std::size_t wanted = std::min(SocketOptions{}.receive_window, largest_receive_buffer() / 2);
  if (usual.client >= wanted) GTEST_SKIP() << "the system gives every connection so much";
  const Room room = room_with(SocketOptions{}.receive_window);
  EXPECT_EQ(room.undecided, usual.undecided);
  EXPECT_GE(room.server, wanted);
  EXPECT_GE(room.client, wanted);
}

}  // namespace
}  // namespace iwarp::cm
