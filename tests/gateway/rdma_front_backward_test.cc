// The backward direction through the RDMA front: what an NFSv4.1 server calls back on its TCP connection.
#include "tests/gateway/front_fixture.h"
#include "tests/support/covers.h"

namespace iwarp::gateway::test {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t kCallback = 0x40000000;

Bytes cb_call(std::uint32_t xid, std::size_t bytes = 0) {
  return samples::rpc_call(xid, kCallback, 1, bytes == 0 ? 0 : 1, pattern(bytes));
}

class RdmaFrontBackward : public FrontFixture {
 protected:
  void SetUp() override { open(); }
  TcpPeer& nfsd() { return *server.peers.back(); }
  // Backward Calls make no Calls at the server: its answers collect here.
  void collect_replies() {
    nfsd().on_record = [this](TcpPeer&, Bytes record) { replies.push_back(std::move(record)); };
  }
  void expect_refused(std::uint32_t xid) {
    ASSERT_TRUE(loop.until([&] { return !replies.empty(); }));
    const auto error = rpcrdma::make_error_reply(xid, rpcrdma::AcceptStat::kSystemErr);
    EXPECT_EQ(replies.front(), Bytes(error.begin(), error.end()));
    replies.pop_front();
  }
  std::deque<Bytes> replies;
};

TEST_F(RdmaFrontBackward, CarriesCallsAndReplies) {
  COVERS("RFC8167-5.1-4");
  COVERS("RFC8167-5.2-4");
  auto c = client();
  collect_replies();
  for (const std::size_t bytes : {0, 4, 400, 3900}) {
    SCOPED_TRACE(bytes);
    const auto xid = static_cast<std::uint32_t>(100 + bytes);
    nfsd().send(cb_call(xid, bytes));
    const Decoded call = c->await(xid);
    EXPECT_EQ(call.header.proc, rpcrdma::Proc::kMsg);
    EXPECT_FALSE(call.header.has_chunks());
    EXPECT_GT(call.header.credits, 0u);
    EXPECT_EQ(call.payload, cb_call(xid, bytes));
    c->send(samples::header(xid, rpcrdma::Proc::kMsg, 16), samples::rpc_reply(xid));
    ASSERT_TRUE(loop.until([&] { return !replies.empty(); }));
    EXPECT_EQ(replies.front(), samples::rpc_reply(xid));
    replies.clear();
  }
  EXPECT_EQ(messages(MessageKind::kBackwardCall).forwarded, 4u);
  EXPECT_EQ(messages(MessageKind::kBackwardReply).forwarded, 4u);
  expect_nothing_pending();
}

// More than the server's TCP takes while it does not read: an end with RST would lose it.
TEST_F(RdmaFrontBackward, DrainingLosesNoReply) {
  constexpr std::uint32_t kReplies = 60;
  auto c = client();
  collect_replies();
  nfsd().pause();
  for (std::uint32_t xid = 1; xid <= kReplies; ++xid) {
    nfsd().send(cb_call(xid));
    (void)c->await(xid);
    c->send(samples::header(xid, rpcrdma::Proc::kMsg, 16), samples::rpc_reply(xid, pattern(3000)));
  }
  ASSERT_TRUE(loop.until([&] { return messages(MessageKind::kBackwardReply).forwarded == kReplies; }));
  bool drained = false;
  front->drain([&] { drained = true; });
  ASSERT_TRUE(loop.until([&] { return drained; }));
  EXPECT_LT(replies.size(), kReplies);
  nfsd().resume();
  ASSERT_TRUE(loop.until([&] { return nfsd().ended(); }));
  EXPECT_EQ(replies.size(), kReplies);
  EXPECT_FALSE(nfsd().was_reset());
}

// One xid in both directions at once means two RPCs.
TEST_F(RdmaFrontBackward, KeepsTheXidSpacesApart) {
  COVERS("RFC8167-2.4.1-1");
  COVERS("RFC8167-2.4-1");
  Bytes pending;
  server.on_call = [&](TcpPeer&, const Bytes& call) { pending = call; };
  auto c = client();
  c->call(samples::null_call(7));
  ASSERT_TRUE(loop.until([&] { return !pending.empty(); }));
  nfsd().send(cb_call(7));
  EXPECT_EQ(c->await(7).payload, cb_call(7));
  collect_replies();
  c->send(samples::header(7), samples::rpc_reply(7, pattern(8)));
  ASSERT_TRUE(loop.until([&] { return !replies.empty(); }));
  EXPECT_EQ(replies.front(), samples::rpc_reply(7, pattern(8)));
  nfsd().send(serve(pending));
  EXPECT_EQ(c->await(7).payload, samples::rpc_reply(7));
  expect_nothing_pending();
}

TEST_F(RdmaFrontBackward, RefusesWhatDoesNotFitInLine) {
  COVERS("RFC8167-5.3-2");
  auto c = client();
  collect_replies();
  nfsd().send(cb_call(1, 5000));
  expect_refused(1);
  EXPECT_EQ(dropped(MessageKind::kBackwardCall, DropReason::kTooLong), 1u);
  EXPECT_TRUE(logged("backward call refused", 1));
  auto plain = client({.announce = false});  // 1024 octets each way
  collect_replies();
  nfsd().send(cb_call(2, 1200));
  expect_refused(2);
  nfsd().send(cb_call(3, 900));
  EXPECT_EQ(plain->await(3).payload, cb_call(3, 900));
}

TEST_F(RdmaFrontBackward, ReportsWhatTheClientCannotTake) {
  auto c = client();
  collect_replies();
  nfsd().send(cb_call(1, 100));
  (void)c->await(1);
  auto h = samples::header(1, rpcrdma::Proc::kError);
  h.error = {rpcrdma::HeaderError::kChunk, 0, 0};
  c->send(h);
  expect_refused(1);
  EXPECT_FALSE(c->closed());
  expect_nothing_pending();
}

// A client that answers no backward Call holds up neither the Replies behind them nor the server.
TEST_F(RdmaFrontBackward, UnansweredCallsHoldNothingUp) {
  COVERS("RFC8167-4.1-1");
  auto c = client();
  c->call(samples::null_call(1));
  (void)c->await(1);
  Bytes call;
  nfsd().on_record = [&](TcpPeer&, Bytes record) {
    (rpcrdma::rpc_direction(record) == rpcrdma::RpcDirection::kCall ? call : replies.emplace_back()) = record;
  };
  for (std::uint32_t xid = 100; xid < 140; ++xid) nfsd().send(cb_call(xid));
  c->call(samples::null_call(2));
  ASSERT_TRUE(loop.until([&] { return !call.empty(); }));
  nfsd().send(serve(call));
  EXPECT_EQ(c->await(2).payload, samples::rpc_reply(2));
  ASSERT_TRUE(loop.until([&] { return replies.size() + 18 == 40; }));  // 2 at the client, 16 wait for credits
  EXPECT_EQ(dropped(MessageKind::kBackwardCall, DropReason::kLimit), replies.size());
  std::size_t at_client = 0;
  for (std::uint32_t xid = 100; xid < 140; ++xid) at_client += c->take(xid) ? 1 : 0;
  EXPECT_LE(at_client, 2u);
}

TEST_F(RdmaFrontBackward, RefusesXidsThatAreOutstanding) {
  auto c = client();
  collect_replies();
  nfsd().send(cb_call(1));
  nfsd().send(cb_call(1));
  (void)c->await(1);
  c->send(samples::header(1), samples::rpc_reply(1));
  ASSERT_TRUE(loop.until([&] { return replies.size() == 2; }));
  EXPECT_EQ(dropped(MessageKind::kBackwardCall, DropReason::kDuplicateXid), 1u);
}

TEST_F(RdmaFrontBackward, DropsRepliesToNothing) {
  auto c = client();
  c->send(samples::header(5), samples::rpc_reply(5));
  c->call(samples::null_call(1));
  (void)c->await(1);
  EXPECT_EQ(server.calls.size(), 1u);
  expect_nothing_pending();
}

// The server gets an error in place of the Reply, which comes too late.
TEST_F(RdmaFrontBackward, GivesUpOnClientsThatDoNotAnswer) {
  options.backward_timeout = 200ms;
  open();
  auto c = client();
  collect_replies();
  nfsd().send(cb_call(7));
  (void)c->await(7);
  expect_refused(7);
  EXPECT_TRUE(logged("backward call unanswered", 1));
  c->send(samples::header(7, rpcrdma::Proc::kMsg, 2), samples::rpc_reply(7));
  ASSERT_TRUE(loop.until([&] { return dropped(MessageKind::kBackwardReply, DropReason::kUnknownXid) == 1; }));
  // The late Reply brought its credit back.
  nfsd().send(cb_call(8));
  (void)c->await(8);
  c->send(samples::header(8, rpcrdma::Proc::kMsg, 2), samples::rpc_reply(8));
  ASSERT_TRUE(loop.until([&] { return !replies.empty(); }));
  EXPECT_EQ(replies.front(), samples::rpc_reply(8));
  expect_nothing_pending();
}

TEST_F(RdmaFrontBackward, ClosesClientsThatNeverAnswer) {
  options.backward_timeout = 200ms;
  open();
  auto c = client();
  collect_replies();
  for (const std::uint32_t xid : {1u, 2u}) nfsd().send(cb_call(xid));
  ASSERT_TRUE(loop.until([&] { return c->closed(); }));
  EXPECT_TRUE(logged("closing peer=", 1));
  expect_still_serving();
}

// Backward Calls outstanding count for draining too.
TEST_F(RdmaFrontBackward, DrainingWaitsForTheirReplies) {
  auto c = client();
  collect_replies();
  nfsd().send(cb_call(1));
  (void)c->await(1);
  bool drained = false;
  front->drain([&] { drained = true; });
  loop.run_for(50ms);
  EXPECT_FALSE(drained);
  c->send(samples::header(1), samples::rpc_reply(1));
  ASSERT_TRUE(loop.until([&] { return drained; }));
  ASSERT_TRUE(loop.until([&] { return !replies.empty(); }));
}

}  // namespace
}  // namespace iwarp::gateway::test
