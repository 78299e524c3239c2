// Peers that begin something and do not go on, or take too many places: what they hold is given to others, and the log
// says why.
#include "tests/gateway/chained.h"

namespace iwarp::gateway::test {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t kBig = 1u << 20;
constexpr std::uint32_t kMany = 30;  // more octets than the sockets on their way hold

class StalledPeers : public Chained {
 protected:
  void SetUp() override {}
  void open_both() {
    open();
    open_tcp(front->local());
  }
  // An RDMA client of `front` behind `relay`, which has been served once.
  RdmaClient& relayed_client() {
    relay.emplace(loop, front->local());
    behind_relay.emplace(loop, client_engine);
    EXPECT_TRUE(behind_relay->connect(relay->local()));
    behind_relay->call(samples::null_call(0x1000));
    (void)behind_relay->await(0x1000);
    return *behind_relay;
  }
  // A Call of kBig octets, which the gateway has to read.
  static std::shared_ptr<Exposed> upload(RdmaClient& c, std::uint32_t xid) {
    auto call = c.expose_for_read(samples::write_call(xid, pattern(kBig, xid)));
    auto h = samples::header(xid, rpcrdma::Proc::kNomsg);
    h.read_list = {{0, call->segment}};
    c.send(h);
    return call;
  }
  static std::uint64_t given_up(const Front& at, EndReason why) {
    return at.snapshot().given_up[static_cast<std::size_t>(why)];
  }

  std::optional<Relay> relay;
  std::optional<RdmaClient> behind_relay;
};

TEST_F(StalledPeers, AHalfRecordOfAClient) {
  options.record_deadline = 50ms;
  open_both();
  auto c = warm_client();
  c->send_raw(record_mark(kBig) + samples::words({1}));
  ASSERT_TRUE(loop.until([&] { return c->ended() && tcp_front->snapshot().active() == 0; }));
  EXPECT_EQ(given_up(*tcp_front, EndReason::kHalfRecord), 1U);
  EXPECT_TRUE(logged("reason=half_record", 1));
  c = warm_client();
  EXPECT_FALSE(c->ended());
}

TEST_F(StalledPeers, AHalfRecordOfTheServer) {
  options.record_deadline = 50ms;
  server.on_call = [](TcpPeer& from, const Bytes&) { from.send_raw(record_mark(kBig) + samples::words({1})); };
  open();
  auto c = client();
  c->call(samples::null_call(1));
  ASSERT_TRUE(loop.until([&] { return c->closed() && front->snapshot().active() == 0; }));
  EXPECT_EQ(given_up(*front, EndReason::kHalfRecord), 1U);
}

// An idle client, and one whose records are complete, are no such peers.
TEST_F(StalledPeers, IdleClientsStay) {
  options.record_deadline = options.read_deadline = options.reply_deadline = options.lost_call_limit = 2s;
  open_both();
  auto c = warm_client();
  c->send(samples::write_call(1, pattern(kBig)));
  EXPECT_EQ(await(*c), samples::write_reply(1));
  c->send(samples::read_call(2, kBig));
  EXPECT_FALSE(await(*c).empty());
  loop.run_for(3s);
  c->send(samples::null_call(3));
  EXPECT_EQ(await(*c), samples::rpc_reply(3));
}

TEST_F(StalledPeers, AClientThatAnswersNoReads) {
  options.read_deadline = 50ms;
  open();
  RdmaClient& c = relayed_client();
  relay->hold_replies(true);  // and with them the Read Requests
  const auto call = upload(c, 1);
  ASSERT_TRUE(loop.until([&] { return front->snapshot().active() == 0; }));
  EXPECT_EQ(given_up(*front, EndReason::kUnansweredRead), 1U);
  EXPECT_TRUE(logged("reason=unanswered_read", 1));
  expect_still_serving();
}

// One that uploads slowly has taken its Reply, but that completes after the Reads posted before it, which go on.
TEST_F(StalledPeers, SlowUploadsAreNoUnreadReplies) {
  options.reply_deadline = 1200ms;
  open();
  RdmaClient& c = relayed_client();
  relay->pace_calls(kBig / 2, 400ms);
  std::vector<std::shared_ptr<Exposed>> calls;
  for (std::uint32_t xid = 1; xid <= 4; ++xid) calls.push_back(upload(c, xid));
  c.call(samples::null_call(5));
  for (std::uint32_t xid = 1; xid <= 4; ++xid) ASSERT_EQ(c.await(xid).payload, samples::write_reply(xid));
  EXPECT_EQ(c.await(5).payload, samples::rpc_reply(5));
}

// A single Read, or a single Reply, takes longer than the limit, and goes on all the time.
TEST_F(StalledPeers, OneLongReadOfASlowClient) {
  options.read_deadline = options.reply_deadline = 1200ms;
  open();
  RdmaClient& c = relayed_client();
  relay->pace_calls(kBig / 8, 250ms);
  const auto call = upload(c, 1);
  EXPECT_EQ(c.await(1).payload, samples::write_reply(1));
}

TEST_F(StalledPeers, OneLongReplyToASlowClient) {
  constexpr std::uint32_t kHuge = 24 * kBig;
  options.reply_deadline = 800ms;
  options.max_record_bytes = kHuge + (64u << 10);
  options.memory_bytes = 2 * options.max_record_bytes;
  open();
  RdmaClient& c = relayed_client();
  relay->pace_replies(kBig, 100ms);
  const auto room = c.expose_for_write(kHuge);
  auto h = samples::header(1);
  h.write_list = {rpcrdma::WriteChunk{{room->segment}}};
  c.send(h, samples::read_call(1, kHuge));
  EXPECT_EQ(c.await(1).payload, samples::read_reply_head(1, kHuge));
}

TEST_F(StalledPeers, AnRdmaClientThatTakesNoReplies) {
  options.reply_deadline = 50ms;
  options.memory_bytes = 64u << 20;
  open();
  RdmaClient& c = relayed_client();
  relay->stall_replies(true);
  std::vector<std::shared_ptr<Exposed>> rooms;
  for (std::uint32_t xid = 1; xid <= kMany; ++xid) {
    rooms.push_back(c.expose_for_write(kBig));
    auto h = samples::header(xid);
    h.write_list = {rpcrdma::WriteChunk{{rooms.back()->segment}}};
    c.send(h, samples::read_call(xid, kBig));
  }
  ASSERT_TRUE(loop.until([&] { return front->snapshot().active() == 0; }));
  EXPECT_EQ(given_up(*front, EndReason::kUnreadReply), 1U);
  expect_still_serving();
}

TEST_F(StalledPeers, ATcpClientThatTakesNoReplies) {
  options.reply_deadline = 50ms;
  options.memory_bytes = 64u << 20;
  open_both();
  auto c = warm_client();
  c->pause();
  for (std::uint32_t xid = 1; xid <= kMany; ++xid) c->send(samples::read_call(xid, kBig));
  ASSERT_TRUE(loop.until([&] { return given_up(*tcp_front, EndReason::kUnreadReply) == 1; }));
  c->reset();
  ASSERT_TRUE(loop.until([&] { return tcp_front->snapshot().active() == 0; }));
  expect_tcp_front_adds_up();
}

TEST_F(StalledPeers, NoClientTakesThePlacesOfAll) {
  options.max_connections_per_client = 2;
  open_both();
  auto first = warm_client();
  const auto second = warm_client();
  const auto third = tcp_client();
  ASSERT_TRUE(loop.until([&] { return third->ended(); }));
  EXPECT_EQ(tcp_front->snapshot().refused[static_cast<std::size_t>(RefuseReason::kLimit)], 1U);
  EXPECT_TRUE(logged("as many connections as it may have", 1));
  first->close();
  ASSERT_TRUE(loop.until([&] { return tcp_front->snapshot().active() == 1; }));
  first = warm_client();
  EXPECT_FALSE(first->ended());
  // At the RDMA front the TCP front is the client.
  RdmaClient rdma(loop, client_engine);
  EXPECT_FALSE(rdma.connect(front->local()));
  EXPECT_EQ(refused(RefuseReason::kLimit), 1U);
  RdmaClient other(loop, client_engine, {.source = boost::asio::ip::make_address("127.0.0.2")});
  EXPECT_TRUE(other.connect(front->local()));
}

}  // namespace
}  // namespace iwarp::gateway::test
