// Calls and Replies through the RDMA front in every form a Linux client uses: octets and xids must arrive unchanged.
#include "iwarp/rpcrdma/private_data.h"
#include "tests/gateway/front_fixture.h"
#include "tests/support/covers.h"

namespace iwarp::gateway::test {
namespace {

using rpcrdma::Proc;

class RdmaFrontForward : public FrontFixture {
 protected:
  void SetUp() override { open(); }
  // The last Call that the server got.
  Bytes last_call() {
    EXPECT_FALSE(server.calls.empty());
    return server.calls.empty() ? Bytes{} : server.calls.back();
  }
  void expect_single_fragments() {
    for (const auto& peer : server.peers) EXPECT_EQ(peer->split_records, 0u);
  }
};

TEST_F(RdmaFrontForward, CarriesInlineCalls) {
  COVERS("RFC8166-2.2.2-2");
  COVERS("RFC8166-2.2.3-1");
  COVERS("RFC8167-2-2");
  auto c = client();
  c->call(samples::null_call(1));
  EXPECT_EQ(c->await(1).payload, samples::rpc_reply(1));
  EXPECT_EQ(last_call(), samples::null_call(1));
  c->call(samples::getattr_call(0xFFFFFFFF));
  const Decoded reply = c->await(0xFFFFFFFF);
  EXPECT_EQ(reply.payload, samples::rpc_reply(0xFFFFFFFF));
  EXPECT_EQ(reply.header.credits, options.credits);
  EXPECT_EQ(messages(MessageKind::kCall).forwarded, 2u);
  EXPECT_EQ(messages(MessageKind::kReply).forwarded, 2u);
  expect_single_fragments();
  expect_nothing_pending();
}

TEST_F(RdmaFrontForward, ReturnsReadDataByRdmaWrite) {
  COVERS("RFC8166-3.4.6-3");
  COVERS("RFC8166-3.4.6-5");
  auto c = client();
  std::uint32_t xid = 100;
  for (const std::uint32_t size : {0u, 1u, 3u, 1023u, 1025u, 4095u, 65537u, 1u << 20}) {
    SCOPED_TRACE(size);
    // Two segments, with more room than is asked for, as a client does that pages its memory.
    auto a = c->expose_for_write(std::max<std::size_t>(size / 2, 1));
    auto b = c->expose_for_write(size + 8);
    auto h = samples::header(++xid);
    h.write_list = {rpcrdma::WriteChunk{{a->segment, b->segment}}};
    c->send(h, samples::read_call(xid, size));
    const Decoded reply = c->await(xid);
    ASSERT_EQ(reply.header.write_list.size(), 1u);
    EXPECT_EQ(reply.header.write_list[0].length(), size);
    EXPECT_EQ(reply.payload, samples::read_reply_head(xid, size));
    Bytes data(a->memory.begin(), a->memory.begin() + reply.header.write_list[0].segments[0].length);
    data.insert(data.end(), b->memory.begin(), b->memory.begin() + reply.header.write_list[0].segments[1].length);
    EXPECT_EQ(data, pattern(size, xid));
    EXPECT_EQ(last_call(), samples::read_call(xid, size));
  }
  expect_nothing_pending();
}

TEST_F(RdmaFrontForward, PullsWriteDataByRdmaRead) {
  COVERS("RFC8166-3.4.5.1-1");
  COVERS("RFC8166-3.4.5.2-1");
  auto c = client();
  std::uint32_t xid = 200;
  for (const std::uint32_t size : {1u, 3u, 1023u, 1025u, 4095u, 65537u, 1u << 20}) {
    SCOPED_TRACE(size);
    const Bytes data = pattern(size, xid);
    const std::size_t half = size / 2;
    const Bytes first(data.begin(), data.begin() + static_cast<std::ptrdiff_t>(half));
    const Bytes second(data.begin() + static_cast<std::ptrdiff_t>(half), data.end());
    auto a = c->expose_for_read(first);
    auto b = c->expose_for_read(second);
    const Bytes head = samples::write_call_head(++xid, size);
    const auto position = static_cast<std::uint32_t>(head.size());
    auto h = samples::header(xid);
    if (half > 0) h.read_list.push_back({position, a->segment});
    h.read_list.push_back({position, b->segment});
    c->send(h, head);
    EXPECT_EQ(c->await(xid).payload, samples::write_reply(xid));
    EXPECT_EQ(last_call(), samples::write_call(xid, data));  // with padding, in one record
  }
  expect_single_fragments();
  expect_nothing_pending();
  EXPECT_GT(front->snapshot().rdma_bytes[static_cast<std::size_t>(RdmaOperation::kRead)][0], 1u << 20);
}

TEST_F(RdmaFrontForward, PullsLongCallsAndPushesLongReplies) {
  COVERS("RFC8166-3.5.3-10");
  auto c = client();
  std::uint32_t xid = 300;
  for (const std::uint32_t size : {4096u, 65537u, 1u << 20}) {
    SCOPED_TRACE(size);
    const Bytes call = samples::write_call(++xid, pattern(size, 1));
    auto long_call = c->expose_for_read(call);
    auto h = samples::header(xid, Proc::kNomsg);
    h.read_list = {{0, long_call->segment}};
    c->send(h);
    EXPECT_EQ(c->await(xid).payload, samples::write_reply(xid));
    EXPECT_EQ(last_call(), call);

    auto room = c->expose_for_write(size + 4096);
    h = samples::header(++xid);
    h.reply_chunk = rpcrdma::WriteChunk{{room->segment}};
    c->send(h, samples::rpc_call(xid, samples::kNfs, 3, 16, samples::words({size})));
    const Decoded reply = c->await(xid);
    EXPECT_EQ(reply.header.proc, Proc::kNomsg);
    ASSERT_TRUE(reply.header.reply_chunk);
    const Bytes expected = samples::rpc_reply(xid, pattern(size, xid));
    ASSERT_EQ(reply.header.reply_chunk->length(), expected.size());
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), room->memory.begin()));
  }
  expect_nothing_pending();
}

TEST_F(RdmaFrontForward, TakesAnyFragmentationFromTheServer) {
  std::size_t fragment = 1;
  server.on_call = [&](TcpPeer& from, const Bytes& call) { from.send_in_fragments(serve(call), fragment); };
  auto c = client();
  std::uint32_t xid = 400;
  for (const std::uint32_t size : {0u, 5u, 40000u}) {
    for (const std::size_t f :
         {size > 100 ? std::size_t{100} : std::size_t{1}, std::size_t{4097}, std::size_t{1} << 20}) {
      SCOPED_TRACE(testing::Message() << size << " in fragments of " << f);
      fragment = f;
      auto room = c->expose_for_write(size + 1);
      auto h = samples::header(++xid);
      h.write_list = {rpcrdma::WriteChunk{{room->segment}}};
      c->send(h, samples::read_call(xid, size));
      EXPECT_EQ(c->await(xid).payload, samples::read_reply_head(xid, size));
      room->memory.resize(size);
      EXPECT_EQ(room->memory, pattern(size, xid));
    }
  }
}

TEST_F(RdmaFrontForward, KeepsManyCallsInFlightAndAnswersOutOfOrder) {
  std::vector<Bytes> waiting;
  server.on_call = [&](TcpPeer& from, const Bytes& call) {
    waiting.push_back(call);
    if (waiting.size() < options.credits) return;
    for (auto it = waiting.rbegin(); it != waiting.rend(); ++it) from.send(serve(*it));
    waiting.clear();
  };
  auto c = client();
  constexpr std::uint32_t kSize = 20000;
  std::uint32_t xid = 1000;
  for (int round = 0; round < 3; ++round) {
    std::map<std::uint32_t, std::shared_ptr<Exposed>> rooms;
    for (std::uint32_t i = 0; i < options.credits; ++i) {
      auto room = c->expose_for_write(kSize);
      auto h = samples::header(++xid);
      h.write_list = {rpcrdma::WriteChunk{{room->segment}}};
      c->send(h, samples::read_call(xid, kSize));
      rooms[xid] = room;
    }
    for (const auto& [id, room] : rooms) {
      EXPECT_EQ(c->await(id).payload, samples::read_reply_head(id, kSize));
      EXPECT_EQ(room->memory, pattern(kSize, id));
    }
  }
  EXPECT_EQ(messages(MessageKind::kCall).forwarded, 3u * options.credits);
  expect_nothing_pending();
}

TEST_F(RdmaFrontForward, InvalidatesRemotelyOnlyWhenBothSidesAgreed) {
  COVERS("RFC8797-4.1-1");
  COVERS("RFC8797-3.2-1");
  COVERS("RFC8797-3.2-2");
  COVERS("RFC8797-4-1");
  COVERS("RFC8797-4-2");
  COVERS("RFC8797-4-3");
  auto c = client();
  const Bytes announced = c->connection().private_data();
  const auto of_server = rpcrdma::PrivateData::find(announced);
  ASSERT_TRUE(of_server);
  EXPECT_TRUE(of_server->remote_invalidation);
  auto room = c->expose_for_write(1000);
  auto h = samples::header(1);
  h.write_list = {rpcrdma::WriteChunk{{room->segment}}};
  c->send(h, samples::read_call(1, 1000));
  (void)c->await(1);
  EXPECT_EQ(c->invalidated, std::vector<Stag>{room->segment.handle});
  EXPECT_EQ(room->memory, pattern(1000, 1));

  auto plain = client({.announce = false});
  room = plain->expose_for_write(1000);
  h.write_list = {rpcrdma::WriteChunk{{room->segment}}};
  plain->send(h, samples::read_call(1, 1000));
  (void)plain->await(1);
  EXPECT_TRUE(plain->invalidated.empty());
}

// Nothing is negotiated in MPA revision 1: Reads are bounded by our own policy.
TEST_F(RdmaFrontForward, ServesRevision1Clients) {
  mpa::Policy policy;
  policy.revision = 1;
  auto c = client({.policy = policy});
  EXPECT_FALSE(c->connection().negotiated().enhanced);
  auto call = c->expose_for_read(samples::write_call(1, pattern(300000)));
  auto h = samples::header(1, Proc::kNomsg);
  h.read_list = {{0, call->segment}};
  c->send(h);
  EXPECT_EQ(c->await(1).payload, samples::write_reply(1));
  EXPECT_TRUE(last_call() == call->memory);
}

// Its Calls cannot be pulled, and it is told so; everything else works.
TEST_F(RdmaFrontForward, TellsClientsThatAdmitNoReads) {
  mpa::Policy policy;
  policy.ird = 0;
  policy.rtr_read = false;
  auto c = client({.policy = policy});
  auto call = c->expose_for_read(samples::write_call(1, pattern(5000)));
  auto h = samples::header(1, Proc::kNomsg);
  h.read_list = {{0, call->segment}};
  c->send(h);
  EXPECT_EQ(c->await(1).header.proc, Proc::kError);
  c->call(samples::null_call(2));
  EXPECT_EQ(c->await(2).payload, samples::rpc_reply(2));
}

TEST_F(RdmaFrontForward, GivesEachClientAConnectionOfItsOwn) {
  auto a = client();
  auto b = client();
  a->call(samples::null_call(1));  // the same xid at the same time
  b->call(samples::null_call(1));
  EXPECT_EQ(a->await(1).payload, samples::rpc_reply(1));
  EXPECT_EQ(b->await(1).payload, samples::rpc_reply(1));
  EXPECT_EQ(server.peers.size(), 2u);
  EXPECT_EQ(server.calls.size(), 2u);
  EXPECT_EQ(front->snapshot().active(), 2u);
}

// What is outstanding is dropped once, counted, and answered once.
TEST_F(RdmaFrontForward, DropsCallsWhoseXidIsOutstanding) {
  std::vector<std::function<void()>> answers;
  server.on_call = [&](TcpPeer& from, const Bytes& call) {
    answers.push_back([&from, call] { from.send(serve(call)); });
  };
  auto c = client();
  c->call(samples::null_call(7));
  c->call(samples::null_call(7));
  c->call(samples::null_call(8));
  ASSERT_TRUE(loop.until([&] { return answers.size() == 2; }));
  EXPECT_EQ(dropped(MessageKind::kCall, DropReason::kDuplicateXid), 1u);
  for (const auto& answer : answers) answer();
  (void)c->await(7);
  (void)c->await(8);
  loop.run_for(std::chrono::milliseconds(20));
  EXPECT_TRUE(c->inbox.empty());
  // Once answered, the xid is an ordinary Call again: the server's cache deals with it.
  c->call(samples::null_call(7));
  ASSERT_TRUE(loop.until([&] { return answers.size() == 3; }));
  answers.back()();
  (void)c->await(7);
  expect_nothing_pending();
}

TEST_F(RdmaFrontForward, DropsAndCountsRepliesNobodyWaitsFor) {
  auto c = client();
  server.peers[0]->send(samples::rpc_reply(0xDEAD));
  c->call(samples::null_call(1));
  (void)c->await(1);
  EXPECT_EQ(dropped(MessageKind::kReply, DropReason::kUnknownXid), 1u);
  EXPECT_TRUE(c->inbox.empty());
  EXPECT_FALSE(c->closed());
  expect_nothing_pending();
}

}  // namespace
}  // namespace iwarp::gateway::test
