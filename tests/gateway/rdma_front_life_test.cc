// How connections of the RDMA front begin and end: backend first, limits, identity, ends on either side, draining.
#include "tests/gateway/front_fixture.h"

namespace iwarp::gateway::test {
namespace {

using namespace std::chrono_literals;

class RdmaFrontLife : public FrontFixture {
 protected:
  // An MPA Reply with R=1, told in one log line.
  void expect_rejected(RefuseReason why, RdmaClient::Options with = {}) {
    with.policy.allow_revision_1_fallback = false;
    RdmaClient c(loop, client_engine, with);
    const auto before = refused(why);
    EXPECT_FALSE(c.connect(front->local()));
    EXPECT_EQ(c.error().code, Errc::kPeerRejected) << c.error().why;
    EXPECT_EQ(refused(why), before + 1);
    EXPECT_TRUE(logged_at_least(std::string("reason=") + name(why), 1));
  }
  bool idle() { return front->snapshot().active() == 0; }
};

TEST_F(RdmaFrontLife, RejectsWhileTheServerIsDown) {
  open();
  server.stop_listening();
  expect_rejected(RefuseReason::kBackendUnreachable);
  EXPECT_EQ(front->snapshot().opened, 0u);
  EXPECT_TRUE(logged_at_least("reason=backend_unreachable", 1));
}

TEST_F(RdmaFrontLife, RejectsInTimeWhenTheServerDoesNotAnswer) {
  // A listener whose queue is full drops SYNs.
  tcp::acceptor deaf(loop.io);
  deaf.open(tcp::v4());
  deaf.bind({boost::asio::ip::make_address("127.0.0.1"), 0});
  deaf.listen(0);
  std::vector<tcp::socket> queue;
  for (int i = 0; i < 4; ++i) {
    queue.emplace_back(loop.io);
    queue.back().async_connect(deaf.local_endpoint(), [](boost::system::error_code) {});
  }
  EXPECT_EQ(options.backend_timeout, 5s);  // siw gives up after 10
  options.backend_timeout = 300ms;
  open({"127.0.0.1", deaf.local_endpoint().port()});
  const auto begin = std::chrono::steady_clock::now();
  expect_rejected(RefuseReason::kBackendUnreachable);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 3s);
  EXPECT_TRUE(logged("reason=timeout", 1));
}

TEST_F(RdmaFrontLife, ConnectsTheServerBeforeItAnswersTheClient) {
  open();
  auto c = client();
  EXPECT_EQ(server.peers.size(), 1u);
  EXPECT_TRUE(loop.until([&] { return log_lines("established") == 1; }));
}

TEST_F(RdmaFrontLife, ClosesTheClientWhenTheServerCloses) {
  open();
  for (const bool reset : {false, true}) {
    server.on_call = [](TcpPeer&, const Bytes&) {};
    auto c = client();
    c->call(samples::null_call(1));
    ASSERT_TRUE(loop.until([&] { return !server.calls.empty(); }));
    reset ? server.peers.back()->reset() : server.peers.back()->close();
    ASSERT_TRUE(loop.until([&] { return c->closed(); }));
    EXPECT_EQ(c->connection().disconnected()->reason.code, Errc::kPeerClosed);  // in order: the client comes back
    c.reset();
    ASSERT_TRUE(loop.until([&] { return idle(); }));
    server.calls.clear();
    server.on_call = {};
    expect_still_serving();
    server.calls.clear();
  }
}

// Replies that the server sent right before it closed still arrive.
TEST_F(RdmaFrontLife, DeliversTheLastRepliesBeforeItCloses) {
  open();
  server.on_call = [](TcpPeer& from, const Bytes& call) {
    from.send(serve(call));
    from.close();
  };
  for (std::uint32_t xid = 1; xid <= 5; ++xid) {
    auto c = client();
    c->call(samples::null_call(xid));
    ASSERT_TRUE(loop.until([&] { return c->closed(); }));
    EXPECT_TRUE(c->take(xid));
  }
}

// More than the send queue holds: each Reply takes three RDMA Writes and a Send.
TEST_F(RdmaFrontLife, DeliversRepliesThatWaitForTheSendQueue) {
  constexpr std::uint32_t kCalls = 60;
  constexpr std::uint32_t kBytes = 30000;
  open();
  auto c = client();
  std::vector<Bytes> waiting;
  server.on_call = [&](TcpPeer&, const Bytes& call) { waiting.push_back(call); };
  std::vector<std::shared_ptr<Exposed>> rooms;
  for (std::uint32_t xid = 1; xid <= kCalls; ++xid) {
    auto h = samples::header(xid);
    h.reply_chunk.emplace();
    for (int i = 0; i < 3; ++i) {
      rooms.push_back(c->expose_for_write(12000));
      h.reply_chunk->segments.push_back(rooms.back()->segment);
    }
    c->send(h, samples::rpc_call(xid, samples::kNfs, 3, 16, samples::words({kBytes})));
  }
  ASSERT_TRUE(loop.until([&] { return waiting.size() == kCalls; }));
  for (const Bytes& call : waiting) server.peers[0]->send(serve(call));
  ASSERT_TRUE(loop.until([&] { return server.peers[0]->unsent_bytes() == 0; }));
  server.peers[0]->close();
  ASSERT_TRUE(loop.until([&] { return c->closed(); }));
  EXPECT_EQ(c->inbox.size(), kCalls);
  expect_nothing_pending();
}

// The limit of delivery is not followed by that of an orderly end (5 s).
TEST_F(RdmaFrontLife, GivesUpOnceOnAClientThatTakesNothingWhenTheServerHasClosed) {
  options.delivery_timeout = 300ms;
  open();
  Relay relay(loop, front->local());
  RdmaClient c(loop, client_engine);
  ASSERT_TRUE(c.connect(relay.local()));
  c.call(samples::null_call(1));
  EXPECT_EQ(c.await(1).payload, samples::rpc_reply(1));
  relay.hold_replies(true);
  auto header = samples::header(2, rpcrdma::Proc::kNomsg);
  const auto call = c.expose_for_read(samples::write_call(2, pattern(5000, 1)));
  header.read_list = {{0, call->segment}};
  c.send(header);
  ASSERT_TRUE(loop.until([&] { return relay.held_bytes() > 0; }));  // the gateway's RDMA Read
  server.peers[0]->close();
  ASSERT_TRUE(loop.until([&] { return front->snapshot().active() == 0; }, 4s));
  EXPECT_TRUE(logged("end=\"timeout\"", 1));
}

TEST_F(RdmaFrontLife, ClosesTheServerWhenTheClientIsGone) {
  open();
  server.on_call = [](TcpPeer&, const Bytes&) {};
  for (const bool orderly : {true, false}) {
    auto c = client();
    c->call(samples::null_call(1));
    ASSERT_TRUE(loop.until([&] { return messages(MessageKind::kCall).forwarded > 0; }));
    orderly ? c->disconnect() : c->abort();
    ASSERT_TRUE(loop.until([&] { return server.peers.back()->ended() && idle(); }));
    ASSERT_TRUE(loop.until([&] { return c->closed(); }));
  }
  expect_nothing_pending();
}

TEST_F(RdmaFrontLife, ServesOnlyAllowedClients) {
  options.allow = *AccessList::parse("127.0.0.5,127.1.0.0/16").value;
  open();
  expect_rejected(RefuseReason::kNotAllowed, {.source = boost::asio::ip::make_address("127.0.0.6")});
  EXPECT_TRUE(server.peers.empty());  // not even contacted
  auto c = client({.source = boost::asio::ip::make_address("127.1.2.3")});
  c->call(samples::null_call(1));
  (void)c->await(1);
}

TEST_F(RdmaFrontLife, GivesMappedClientsTheirSourceAddress) {
  options.source_map = *SourceMap::parse("127.0.0.9=127.7.7.7,127.0.0.0/8=127.8.8.8").value;
  open();
  auto a = client({.source = boost::asio::ip::make_address("127.0.0.9")});
  auto b = client({.source = boost::asio::ip::make_address("127.0.0.10")});
  ASSERT_EQ(server.peers.size(), 2u);
  EXPECT_EQ(server.peers[0]->remote().address().to_string(), "127.7.7.7");
  EXPECT_EQ(server.peers[1]->remote().address().to_string(), "127.8.8.8");
}

TEST_F(RdmaFrontLife, RejectsWhenTheMappedAddressIsNotOurs) {
  options.source_map = *SourceMap::parse("127.0.0.0/8=192.0.2.1").value;
  open();
  expect_rejected(RefuseReason::kBackendUnreachable);
  EXPECT_TRUE(logged("Cannot assign requested address: ", 1));
}

TEST_F(RdmaFrontLife, SpeaksIpv6OnBothSides) {
  RpcServer v6(loop, "::1");
  open(v6.host_port(), "::1");
  auto c = client();
  c->call(samples::null_call(1));
  (void)c->await(1);
  ASSERT_EQ(v6.peers.size(), 1u);
  EXPECT_TRUE(v6.peers[0]->remote().address().is_v6());
  EXPECT_TRUE(logged("peer=[::1]:", 1));
}

TEST_F(RdmaFrontLife, LimitsConnections) {
  options.max_connections = 2;
  open();
  auto a = client();
  auto b = client();
  expect_rejected(RefuseReason::kLimit);
  a.reset();
  ASSERT_TRUE(loop.until([&] { return front->snapshot().active() == 1; }));
  expect_still_serving();
  b->call(samples::null_call(1));
  (void)b->await(1);
}

TEST_F(RdmaFrontLife, DrainsWhenOutstandingCallsAreAnswered) {
  std::vector<std::function<void()>> answers;
  server.on_call = [&](TcpPeer& from, const Bytes& call) {
    answers.push_back([&from, call] { from.send(serve(call)); });
  };
  open();
  auto busy = client();
  auto quiet = client();
  busy->call(samples::null_call(1));
  ASSERT_TRUE(loop.until([&] { return answers.size() == 1; }));
  bool drained = false;
  front->drain([&] { drained = true; });
  ASSERT_TRUE(loop.until([&] { return quiet->closed(); }));
  loop.run_for(50ms);
  EXPECT_FALSE(drained);
  EXPECT_FALSE(busy->closed());
  RdmaClient late(loop, client_engine);
  EXPECT_FALSE(late.connect(front->local()));  // nobody listens any more
  busy->call(samples::null_call(2));
  ASSERT_TRUE(loop.until([&] { return dropped(MessageKind::kCall, DropReason::kConnectionClosed) == 1; }));
  EXPECT_EQ(answers.size(), 1U) << "there would be no end of it";
  answers[0]();
  EXPECT_EQ(busy->await(1).payload, samples::rpc_reply(1));
  ASSERT_TRUE(loop.until([&] { return drained; }));
  EXPECT_TRUE(idle());
  EXPECT_EQ(busy->connection().disconnected().has_value(), true);
}

TEST_F(RdmaFrontLife, StopsAtTheEndOfTheDrainTime) {
  server.on_call = [](TcpPeer&, const Bytes&) {};
  options.drain_timeout = 300ms;
  open();
  auto busy = client();
  busy->call(samples::null_call(1));
  Relay relay(loop, front->local());
  relay.hold_replies(true);
  RdmaClient half(loop, client_engine);  // accepted, but its first FPDU never comes
  half.begin_connect(relay.local());
  ASSERT_TRUE(loop.until([&] { return relay.held_bytes() > 0 && !server.calls.empty(); }));
  bool drained = false;
  const auto begin = std::chrono::steady_clock::now();
  front->drain([&] { drained = true; });
  ASSERT_TRUE(loop.until([&] { return drained; }));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 290ms);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 3s);
  ASSERT_TRUE(loop.until([&] { return busy->closed(); }));
  relay.cut();
}

TEST_F(RdmaFrontLife, DrainsWhoIsAcceptedMeanwhile) {
  options.drain_timeout = 60s;
  open();
  Relay relay(loop, front->local());
  relay.hold_replies(true);
  RdmaClient half(loop, client_engine);
  half.begin_connect(relay.local());
  ASSERT_TRUE(loop.until([&] { return relay.held_bytes() > 0; }));
  bool drained = false;
  front->drain([&] { drained = true; });
  loop.run_for(20ms);
  EXPECT_FALSE(drained);
  relay.hold_replies(false);
  EXPECT_TRUE(loop.until([&] { return drained; }));
  EXPECT_EQ(half.error().code, Errc::kOk);
}

TEST_F(RdmaFrontLife, DrainsAtOnceWhenIdle) {
  open();
  bool drained = false;
  front->drain([&] { drained = true; });
  EXPECT_TRUE(drained);
}

// The second signal: the front goes while everything is under way.
TEST_F(RdmaFrontLife, MayBeDestroyedAtAnyTime) {
  server.on_call = [](TcpPeer& from, const Bytes& call) {
    if (load_be<std::uint32_t>(call) != 1) from.send(serve(call));
  };
  open();
  auto busy = client();
  busy->call(samples::null_call(1));
  for (std::uint32_t xid = 2; xid < 40; ++xid) busy->call(samples::read_call(xid, 3000));
  RdmaClient connecting(loop, client_engine);
  connecting.begin_connect(front->local());
  ASSERT_TRUE(loop.until([&] { return messages(MessageKind::kReply).forwarded > 5; }));
  front.reset();
  ASSERT_TRUE(loop.until([&] { return busy->closed(); }));
}

}  // namespace
}  // namespace iwarp::gateway::test
