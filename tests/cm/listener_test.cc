// The passive side's own limits and ends.
#include "tests/cm/node.h"
#include "tests/cm/raw_tcp.h"

namespace iwarp::cm {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace): the vocabulary of these tests

class ListenerLimits : public ::testing::Test {
 protected:
  std::unique_ptr<Listener> limited(std::size_t max_pending, std::chrono::milliseconds startup_timeout = 20s) {
    ListenOptions o;
    o.max_pending = max_pending;
    o.policy.startup_timeout = startup_timeout;
    return listen(engine_, o);
  }
  Engine engine_;
};

// Whether the peer's Request reaches the application.
bool comes(Listener& listener, std::chrono::milliseconds within, std::unique_ptr<ConnectRequest>& out,
           std::future<std::tuple<Error, std::unique_ptr<ConnectRequest>>>& waiting) {
  if (!waiting.valid()) waiting = listener.async_accept(cm::as_error(boost::asio::use_future));
  if (waiting.wait_for(within) != std::future_status::ready) return false;
  out = std::get<1>(waiting.get());
  return true;
}

TEST_F(ListenerLimits, PausesAcceptingWhileStartupsAreUnfinished) {
  const auto listener = limited(2);
  RawTcp a = RawTcp::connect(listener->local().port()), b = RawTcp::connect(listener->local().port());
  ASSERT_TRUE(a.send(hex("4d")) && b.send(hex("4d")));
  RawTcp third = RawTcp::connect(listener->local().port());  // into the backlog
  ASSERT_TRUE(third.send(octets(good_request())));
  std::unique_ptr<ConnectRequest> request;
  std::future<std::tuple<Error, std::unique_ptr<ConnectRequest>>> waiting;
  EXPECT_FALSE(comes(*listener, 200ms, request, waiting));
  a.close();
  ASSERT_TRUE(comes(*listener, kPatience, request, waiting));
}

// Requests that the application has not decided count as well, or peers could fill our memory while it is busy.
TEST_F(ListenerLimits, PausesAcceptingWhileRequestsAreUndecided) {
  const auto listener = limited(2);
  std::vector<RawTcp> peers;
  for (int i = 0; i < 3; ++i) {
    peers.push_back(RawTcp::connect(listener->local().port()));
    ASSERT_TRUE(peers.back().send(octets(good_request())));
  }
  std::unique_ptr<ConnectRequest> first, second, third;
  std::future<std::tuple<Error, std::unique_ptr<ConnectRequest>>> waiting;
  ASSERT_TRUE(comes(*listener, kPatience, first, waiting));
  ASSERT_TRUE(comes(*listener, kPatience, second, waiting));
  EXPECT_FALSE(comes(*listener, 200ms, third, waiting));
  first->reject();
  EXPECT_FALSE(comes(*listener, 200ms, third, waiting)) << "the rejected peer has not closed yet";
  peers[0].close();
  ASSERT_TRUE(comes(*listener, kPatience, third, waiting));

  peers.push_back(RawTcp::connect(listener->local().port()));
  ASSERT_TRUE(peers.back().send(octets(good_request())));
  EXPECT_FALSE(comes(*listener, 200ms, first, waiting));
  Node server(engine_);
  second->accept(server.qp, {}, [](const Error&, const std::shared_ptr<Connection>&) {});
  EXPECT_TRUE(comes(*listener, kPatience, first, waiting)) << "an accepted connection counts no longer";
}

TEST_F(ListenerLimits, StalledPeersGiveTheirPlacesBack) {
  const auto listener = limited(2, 200ms);
  std::vector<RawTcp> stalled;
  for (int i = 0; i < 6; ++i) stalled.push_back(RawTcp::connect(listener->local().port()));
  Engine client_engine;
  Node server(engine_), client(client_engine);
  const Ends ends = join(client, server, *listener);
  EXPECT_EQ(ends.client.error.code, Errc::kOk);
}

TEST_F(ListenerLimits, OneAcceptWaitsAtATime) {
  const auto listener = limited(2);
  auto first = listener->async_accept(cm::as_error(boost::asio::use_future));
  EXPECT_EQ(std::get<0>(get(listener->async_accept(cm::as_error(boost::asio::use_future)))).code,
            Errc::kInvalidArgument);
  const RawTcp peer = RawTcp::connect(listener->local().port());
}

TEST_F(ListenerLimits, ClosingEndsEverythingThatIsNotDecided) {
  auto listener = limited(16);
  const std::uint16_t port = listener->local().port();
  RawTcp half = RawTcp::connect(port), whole = RawTcp::connect(port);
  ASSERT_TRUE(half.send(hex("4d50")));
  ASSERT_TRUE(whole.send(octets(good_request())));
  const auto request = next_request(*listener);
  RawTcp queued = RawTcp::connect(port);
  ASSERT_TRUE(queued.send(octets(good_request())));
  // A fourth is answered only when the third has been queued.
  RawTcp refused = RawTcp::connect(port);
  ASSERT_TRUE(refused.send(octets(refused_request())));
  ASSERT_TRUE(read_frame(refused, true).complete);

  listener.reset();
  EXPECT_NE(half.end(), RawTcp::End::kTimeout);
  const FrameRead reply = read_frame(queued, true);
  EXPECT_TRUE(reply.complete && reply.frame.reject) << "rejected, as nobody will decide";
  // What the application holds is still its own to decide.
  Node server(engine_);
  auto accepting = request->async_accept(server.qp, {}, cm::as_error(boost::asio::use_future));
  const FrameRead accepted = read_frame(whole, true);
  EXPECT_TRUE(accepted.complete && !accepted.frame.reject);
  server.qp->abort();
  (void)get_outcome(std::move(accepting));
}

TEST_F(ListenerLimits, ClosingTellsTheWaitingAccept) {
  auto listener = limited(16);
  auto waiting = listener->async_accept(cm::as_error(boost::asio::use_future));
  listener.reset();
  EXPECT_EQ(std::get<0>(get(std::move(waiting))).code, Errc::kAborted);
}

TEST_F(ListenerLimits, ThePortIsFreeAfterClosing) {
  auto listener = limited(16);
  ListenOptions o;
  o.endpoint = listener->local();
  listener.reset();
  EXPECT_TRUE(eventually([&] { return Listener::listen(engine_, o).ok(); }));
}

// Whoever listens there next needs no patience.
TEST(ListenerPort, IsFreeWhenTheListenerIsGone) {
  Engine engine;
  auto listener = listen(engine);
  ListenOptions same;
  same.endpoint = listener->local();
  for (int i = 0; i < 200; ++i) {
    const RawTcp peer = RawTcp::connect(same.endpoint.port());  // in the backlog, or under way
    listener.reset();
    auto next = Listener::listen(engine, same);
    ASSERT_TRUE(next.ok()) << next.error().why << " " << i;
    listener = std::move(next).value();
  }
  Node client(engine), server(engine);
  EXPECT_EQ(join(client, server, *listener).client.error.code, Errc::kOk);
}

TEST(ListenerPort, MayBeBoundBefore) {
  Engine engine;
  boost::asio::io_context io;
  boost::asio::ip::tcp::acceptor bound(io);
  bound.open(boost::asio::ip::tcp::v4());
  bound.bind({boost::asio::ip::make_address("127.0.0.1"), 0});
  const auto local = bound.local_endpoint();
  auto made = Listener::listen(engine, std::move(bound), {});
  ASSERT_TRUE(made.ok()) << made.error().why;
  EXPECT_EQ((*made)->local(), local);
  Node client(engine), server(engine);
  const Ends ends = join(client, server, **made);
  EXPECT_EQ(ends.client.error.code, Errc::kOk);
  ping_pong(client, server);
}

TEST(ListenerPort, IsFreeThoughAForkedChildHasTheSocket) {
  Engine engine;
  boost::asio::io_context io;
  boost::asio::ip::tcp::acceptor bound(io), childs(io);
  bound.open(boost::asio::ip::tcp::v4());
  bound.bind({boost::asio::ip::make_address("127.0.0.1"), 0});
  ListenOptions options;
  options.endpoint = bound.local_endpoint();
  childs.assign(boost::asio::ip::tcp::v4(), ::dup(bound.native_handle()));
  auto listener = Listener::listen(engine, std::move(bound), {});
  ASSERT_TRUE(listener.ok()) << listener.error().why;
  listener->reset();
  EXPECT_TRUE(Listener::listen(engine, options).ok());
}

// As processes do that share one.
TEST(ListenerPort, ADuplicateOfTheSocketGoesOn) {
  Engine engine;
  boost::asio::io_context io;
  boost::asio::ip::tcp::acceptor bound(io), other(io);
  bound.open(boost::asio::ip::tcp::v4());
  bound.bind({boost::asio::ip::make_address("127.0.0.1"), 0});
  other.assign(boost::asio::ip::tcp::v4(), ::dup(bound.native_handle()));
  ListenOptions options;
  options.shared_socket = true;
  auto listener = Listener::listen(engine, std::move(bound), options);
  ASSERT_TRUE(listener.ok()) << listener.error().why;
  listener->reset();
  other.non_blocking(true);
  const RawTcp peer = RawTcp::connect(other.local_endpoint().port());
  boost::system::error_code ec;
  EXPECT_TRUE(eventually([&] { return other.accept(ec).is_open(); })) << ec.message();
}

TEST(ListenerPort, OfASocketThatIsNotBoundIsRefused) {
  Engine engine;
  boost::asio::io_context io;
  boost::asio::ip::tcp::acceptor closed(io), open(io);
  open.open(boost::asio::ip::tcp::v4());
  for (auto* socket : {&closed, &open})
    EXPECT_EQ(Listener::listen(engine, std::move(*socket), {}).error().code, Errc::kInvalidArgument);
}

}  // namespace
}  // namespace iwarp::cm
