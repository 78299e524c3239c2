// The TCP front: connections that end, at either side and at any time.
#include "tests/gateway/chained.h"
#include "tests/support/covers.h"

namespace iwarp::gateway::test {
namespace {

using namespace std::chrono_literals;

TEST_F(Chained, SurvivesTheServersRestart) {
  COVERS("RFC8167-4.3.1-3");
  auto c = tcp_client();
  server.on_call = [](TcpPeer&, const Bytes&) {};
  c->send(samples::null_call(1));
  ASSERT_TRUE(loop.until([&] { return !server.calls.empty(); }));
  server.peers[0]->close();
  ASSERT_TRUE(loop.until([&] { return c->ended(); }));  // all the way to the client, which will replay
  server.on_call = {};
  c = tcp_client();
  c->send(samples::null_call(1));
  EXPECT_EQ(await(*c), samples::rpc_reply(1));
}

// What a slow client sends meanwhile must not reset TCP: the Replies that TCP has not delivered would be lost.
TEST_F(Chained, ASlowClientGetsItsRepliesThoughTheServerHasGone) {
  tcp::socket socket(loop.io);
  socket.open(tcp::v4());
  socket.set_option(boost::asio::socket_base::receive_buffer_size(4096));
  socket.connect(tcp_front->local());
  const auto c = std::make_shared<TcpPeer>(std::move(socket));
  c->start();
  c->send(samples::null_call(1));
  EXPECT_EQ(await(*c), samples::rpc_reply(1));
  c->pause();
  const Bytes reply = samples::read_reply(2, pattern(400u << 10));
  server.on_call = [&](TcpPeer& from, const Bytes&) { from.send(reply); };
  c->send(samples::read_call(2, 400u << 10));
  ASSERT_TRUE(loop.until([&] { return tcp_messages(MessageKind::kReply).forwarded == 2; }));
  server.peers[0]->close();
  const std::string closed = "closed peer=" + cm::to_string(front->local());
  ASSERT_TRUE(loop.until([&] { return log_lines(closed) == 1; }));
  c->send(samples::null_call(3));
  loop.run_for(50ms);
  c->resume();
  EXPECT_EQ(await(*c), reply);
  ASSERT_TRUE(loop.until([&] { return c->ended(); }));
  EXPECT_FALSE(c->was_reset());
  EXPECT_TRUE(loop.until([&] { return tcp_front->snapshot().active() == 0; }));
}

TEST_F(Chained, ClosesTheServerWhenTheClientIsGone) {
  for (const bool reset : {true, false}) {
    auto c = tcp_client();
    c->send(samples::null_call(1));
    (void)await(*c);
    reset ? c->reset() : c->close();
    const auto client = cm::to_string(c->local());
    ASSERT_TRUE(loop.until([&] { return server.peers.back()->ended() && tcp_front->snapshot().active() == 0; }));
    EXPECT_TRUE(logged_at_least(" tcp_peer=" + client, 2)) << client;  // `established`, `closed`
    EXPECT_TRUE(logged_at_least("closed peer=127.0.0.1:" + std::to_string(front->local().port()), 1));
  }
}

// The server may never answer: its Calls die with the client.
TEST_F(Chained, EndsAtOnceWhenAClientResetsWithACallOutstanding) {
  auto c = warm_client();
  server.on_call = [](TcpPeer&, const Bytes&) {};
  c->send(samples::null_call(1));
  ASSERT_TRUE(loop.until([&] { return server.calls.size() == 2; }));
  c->reset();
  ASSERT_TRUE(loop.until([&] { return server.peers.back()->ended() && tcp_front->snapshot().active() == 0; }));
  expect_tcp_front_adds_up();
}

// The same while the gateway reads nothing from the client, because it has Calls enough.
TEST_F(Chained, EndsAtOnceWhenAClientResetsThatIsNotRead) {
  auto c = warm_client();
  server.on_call = [](TcpPeer&, const Bytes&) {};
  constexpr std::uint32_t kCalls = 3000;
  for (std::uint32_t xid = 1; xid <= kCalls; ++xid) c->send(samples::null_call(xid));
  ASSERT_TRUE(loop.until([&] { return tcp_messages(MessageKind::kCall).received > 1000; }));
  Stats::Snapshot last;
  do {
    last = tcp_front->snapshot();
    loop.run_for(100ms);
  } while (!(last == tcp_front->snapshot()));
  EXPECT_LT(tcp_messages(MessageKind::kCall).received, kCalls);
  c->reset();
  ASSERT_TRUE(loop.until([&] { return server.peers.back()->ended() && tcp_front->snapshot().active() == 0; }));
}

TEST_F(Chained, ClosesTheClientWhenTheRdmaServerIsUnreachable) {
  front.reset();
  auto c = tcp_client();
  c->send(samples::null_call(1));
  ASSERT_TRUE(loop.until([&] { return c->ended(); }));
  EXPECT_EQ(tcp_front->snapshot().refused[static_cast<std::size_t>(RefuseReason::kBackendUnreachable)], 1u);
  open(server.host_port());
}

// Clients decide how often they try: the log must not grow with it.
TEST_F(Chained, TellsOfRefusedClientsOnlySoOften) {
  const auto refused = [&](RefuseReason why) { return tcp_front->snapshot().refused[static_cast<std::size_t>(why)]; };
  constexpr std::uint64_t kClients = 50;
  front.reset();
  for (std::uint64_t i = 0; i < kClients; ++i) (void)tcp_client();
  ASSERT_TRUE(loop.until([&] { return refused(RefuseReason::kBackendUnreachable) == kClients; }));
  EXPECT_TRUE(logged_at_least("refused tcp_peer", 1));
  EXPECT_LT(log_lines("refused tcp_peer"), kClients);
  options.max_connections = 0;
  open_tcp(server.local());
  for (std::uint64_t i = 0; i < kClients; ++i) (void)tcp_client();
  ASSERT_TRUE(loop.until([&] { return refused(RefuseReason::kLimit) == kClients; }));
  EXPECT_TRUE(logged_at_least("reason=limit", 1));
  EXPECT_LT(log_lines("reason=limit"), kClients);
}

// The same of clients of the RDMA front, whose refusals come over the TCP front's connections.
TEST_F(Chained, TellsOfRefusedRdmaClientsOnlySoOften) {
  server.stop_listening();
  constexpr std::uint64_t kClients = 50;
  for (std::uint64_t i = 0; i < kClients; ++i) (void)tcp_client();
  ASSERT_TRUE(loop.until([&] { return refused(RefuseReason::kBackendUnreachable) >= kClients; }));
  EXPECT_TRUE(logged_at_least("backend tcp_peer", 1));
  EXPECT_LT(log_lines("backend tcp_peer"), kClients);
}

TEST_F(Chained, ServesReservedPortsOnlyUnlessToldOtherwise) {
  clients_are_insecure = false;
  open_tcp(front->local());
  auto c = tcp_client();
  c->send(samples::null_call(1));
  ASSERT_TRUE(loop.until([&] { return c->ended(); }));
  EXPECT_TRUE(c->inbox.empty());
  EXPECT_EQ(tcp_front->snapshot().of(RefuseReason::kInsecurePort), 1u);
  EXPECT_TRUE(logged("reason=insecure_port", 1)) << log.str();
  EXPECT_TRUE(logged("--insecure-ports", 1)) << log.str();
  if (!may_bind_reserved_ports()) GTEST_SKIP() << "the rest needs CAP_NET_BIND_SERVICE";

  tcp::socket socket(loop.io);
  socket.open(tcp::v4());
  socket.set_option(boost::asio::socket_base::reuse_address(true));
  boost::system::error_code busy = boost::asio::error::address_in_use;
  for (std::uint16_t port = kFirstReservedPort; busy && port <= kLastReservedPort; ++port)
    socket.bind({boost::asio::ip::make_address("127.0.0.1"), port}, busy);
  ASSERT_FALSE(busy);
  socket.connect(tcp_front->local());
  c = std::make_shared<TcpPeer>(std::move(socket));
  c->start();
  c->send(samples::null_call(2));
  EXPECT_EQ(await(*c), samples::rpc_reply(2));
}

TEST_F(Chained, DrainsAndStops) {
  std::vector<Bytes> waiting;
  options.drain_timeout = 300ms;
  open_tcp(front->local());
  auto busy = warm_client();  // which has credits for more than one Call
  server.on_call = [&](TcpPeer&, const Bytes& call) { waiting.push_back(call); };
  auto quiet = tcp_client();
  busy->send(samples::null_call(1));
  ASSERT_TRUE(loop.until([&] { return waiting.size() == 1; }));
  bool drained = false;
  tcp_front->drain([&] { drained = true; });
  ASSERT_TRUE(loop.until([&] { return quiet->ended(); }));
  EXPECT_FALSE(drained);
  busy->send(samples::null_call(3));
  loop.run_for(50ms);
  EXPECT_EQ(waiting.size(), 1U) << "there would be no end of it";
  server.peers[0]->send(serve(waiting[0]));
  EXPECT_EQ(await(*busy), samples::rpc_reply(1));
  ASSERT_TRUE(loop.until([&] { return drained && busy->ended(); }));

  open_tcp(front->local());
  busy = tcp_client();
  busy->send(samples::null_call(2));
  ASSERT_TRUE(loop.until([&] { return waiting.size() == 2; }));
  drained = false;
  tcp_front->drain([&] { drained = true; });
  ASSERT_TRUE(loop.until([&] { return drained && busy->ended(); }));  // after 300 ms, unanswered
}

TEST_F(Chained, DrainsWhoIsConnectedMeanwhile) {
  options.drain_timeout = 60s;
  Relay relay(loop, front->local());
  relay.hold_replies(true);
  open_tcp(relay.local());
  const auto c = tcp_client();
  ASSERT_TRUE(loop.until([&] { return relay.held_bytes() > 0; }));
  bool drained = false;
  tcp_front->drain([&] { drained = true; });
  loop.run_for(20ms);
  EXPECT_FALSE(drained);
  relay.hold_replies(false);
  EXPECT_TRUE(loop.until([&] { return drained && c->ended(); }));
}

TEST_F(Chained, MayBeDestroyedAtAnyTime) {
  auto busy = warm_client();
  server.on_call = [](TcpPeer&, const Bytes&) {};
  for (std::uint32_t xid = 1; xid < 100; ++xid) busy->send(samples::write_call(xid, pattern(20000)));
  auto connecting = tcp_client();
  ASSERT_TRUE(loop.until([&] { return server.calls.size() > 3; }));
  tcp_front.reset();
  ASSERT_TRUE(loop.until([&] { return busy->ended() && front->snapshot().active() == 0; }));
}

}  // namespace
}  // namespace iwarp::gateway::test
