// Calls whose Replies never come: at both fronts the client gets a new connection, on which it can replay.
#include "tests/gateway/chained.h"

namespace iwarp::gateway::test {
namespace {

using namespace std::chrono_literals;

class LostReplies : public Chained {
 protected:
  void SetUp() override {}  // each test has limits of its own
  void open_both() {
    open();
    open_tcp(front->local());
  }
  static std::uint64_t given_up(const Front& at, EndReason why) {
    return at.snapshot().given_up[static_cast<std::size_t>(why)];
  }
  void let_server_lose_calls() {
    server.on_call = [](TcpPeer&, const Bytes&) {};
  }
};

TEST_F(LostReplies, ATcpClientThatRepeatsAnOldCallGetsANewConnection) {
  options.lost_call_limit = 0ms;
  open_both();
  let_server_lose_calls();
  auto c = tcp_client();
  c->send(samples::null_call(1));
  ASSERT_TRUE(loop.until([&] { return server.calls.size() == 1; }));
  c->send(samples::null_call(1));
  ASSERT_TRUE(loop.until([&] { return c->ended() && tcp_front->snapshot().active() == 0; }));
  EXPECT_EQ(given_up(*tcp_front, EndReason::kLostCall), 1U);
  EXPECT_TRUE(logged("reason=lost_call", 1));
  expect_tcp_front_adds_up();
  server.on_call = {};
  c = tcp_client();
  c->send(samples::null_call(1));
  EXPECT_EQ(await(*c), samples::rpc_reply(1));
}

TEST_F(LostReplies, AYoungCallIsOnlyDropped) {
  open_both();
  Bytes waiting;
  server.on_call = [&](TcpPeer&, const Bytes& call) { waiting = call; };
  auto c = tcp_client();
  c->send(samples::null_call(1));
  c->send(samples::null_call(1));
  ASSERT_TRUE(loop.until([&] { return tcp_messages(MessageKind::kCall).received == 2 && !waiting.empty(); }));
  server.peers[0]->send(serve(waiting));
  EXPECT_EQ(await(*c), samples::rpc_reply(1));
  EXPECT_FALSE(c->ended());
  EXPECT_EQ(server.calls.size(), 1U);
}

TEST_F(LostReplies, AnRdmaClientThatRepeatsAnOldCallGetsANewConnection) {
  options.lost_call_limit = 0ms;
  open();
  let_server_lose_calls();
  auto c = client();
  c->call(samples::null_call(1));
  ASSERT_TRUE(loop.until([&] { return server.calls.size() == 1; }));
  const auto port = server.peers[0]->remote().port();
  c->call(samples::null_call(1));
  ASSERT_TRUE(loop.until([&] { return c->closed() && front->snapshot().active() == 0; }));
  EXPECT_EQ(given_up(*front, EndReason::kLostCall), 1U);
  EXPECT_TRUE(logged("reason=lost_call", 1));
  expect_nothing_pending();
  server.on_call = {};
  c = client();
  c->call(samples::null_call(1));
  EXPECT_EQ(c->await(1).payload, samples::rpc_reply(1));
  EXPECT_EQ(server.peers.back()->remote().port(), port);  // the server knows a replay by it
}

TEST_F(LostReplies, AnRdmaClientsYoungCallIsOnlyDropped) {
  open();
  Bytes waiting;
  server.on_call = [&](TcpPeer&, const Bytes& call) { waiting = call; };
  auto c = client();
  c->call(samples::null_call(1));
  c->call(samples::null_call(1));
  ASSERT_TRUE(loop.until([&] { return dropped(MessageKind::kCall, DropReason::kDuplicateXid) == 1; }));
  ASSERT_TRUE(loop.until([&] { return !waiting.empty(); }));
  server.peers[0]->send(serve(waiting));
  EXPECT_EQ(c->await(1).payload, samples::rpc_reply(1));
  EXPECT_FALSE(c->closed());
}

// Before its first Reply a client has one credit. Clients of NFSv4 repeat nothing: nobody would ever get on.
TEST_F(LostReplies, LostCreditsComeBackWithANewConnection) {
  options.lost_call_limit = 20ms;
  open_both();
  let_server_lose_calls();
  auto c = tcp_client();
  c->send(samples::null_call(1));
  c->send(samples::null_call(2));
  ASSERT_TRUE(loop.until([&] { return c->ended(); }));
  EXPECT_EQ(given_up(*tcp_front, EndReason::kNoCredit), 1U);
  EXPECT_EQ(server.calls.size(), 1U);
}

TEST_F(LostReplies, ASlowCallThatNobodyRepeatsIsLeftAlone) {
  options.lost_call_limit = 5ms;
  open_both();
  Bytes waiting;
  server.on_call = [&](TcpPeer&, const Bytes& call) { waiting = call; };
  auto c = tcp_client();
  c->send(samples::null_call(1));
  ASSERT_TRUE(loop.until([&] { return !waiting.empty(); }));
  loop.run_for(300ms);
  server.peers[0]->send(serve(waiting));
  EXPECT_EQ(await(*c), samples::rpc_reply(1));
}

TEST_F(LostReplies, ATcpServerThatSpeaksNoRpcIsLeftAtOnce) {
  open();
  server.on_call = [](TcpPeer& from, const Bytes&) { from.send(samples::words({1, 7, 7})); };
  auto c = client();
  c->call(samples::null_call(1));
  ASSERT_TRUE(loop.until([&] { return c->closed() && front->snapshot().active() == 0; }));
  EXPECT_EQ(given_up(*front, EndReason::kMalformedReply), 1U);
}

// It may never be answered: the place is given to others.
TEST_F(LostReplies, AClientThatLeavesTakesItsCallsAlong) {
  options.delivery_timeout = 50ms;
  open_both();
  let_server_lose_calls();
  auto c = tcp_client();
  c->send(samples::null_call(1));
  ASSERT_TRUE(loop.until([&] { return server.calls.size() == 1; }));
  c->close();
  ASSERT_TRUE(loop.until([&] { return tcp_front->snapshot().active() == 0; }));
  EXPECT_EQ(given_up(*tcp_front, EndReason::kClientLeft), 1U);
  expect_tcp_front_adds_up();
}

}  // namespace
}  // namespace iwarp::gateway::test
