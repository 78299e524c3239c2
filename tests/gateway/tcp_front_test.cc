// The TCP front: what it forwards from TCP clients to an RPC-over-RDMA server and back, and what it refuses. The server
// is our own RDMA front with a TCP server behind it.
#include "iwarp/rpcrdma/nfs_binding.h"
#include "tests/gateway/chained.h"
#include "tests/support/covers.h"

namespace iwarp::gateway::test {
namespace {

using namespace std::chrono_literals;

TEST_F(Chained, CarriesEverySizeBothWays) {
  auto c = tcp_client();
  std::uint32_t xid = 0;
  for (const std::uint32_t size : {0u, 1u, 3u, 1023u, 1025u, 3900u, 4000u, 4095u, 4097u, 65537u, 1u << 20}) {
    SCOPED_TRACE(size);
    xid += 2;
    for (const Bytes& call : {samples::write_call(xid, pattern(size, xid)), samples::read_call(xid + 1, size)}) {
      c->send(call);
      EXPECT_TRUE(await(*c) == serve(call));
      EXPECT_TRUE(server.calls.back() == call);
    }
  }
  EXPECT_EQ(c->split_records, 0u);
  EXPECT_EQ(server.peers[0]->split_records, 0u);
  expect_tcp_front_adds_up();
  expect_nothing_pending();
}

TEST_F(Chained, TakesAnyFragmentation) {
  auto c = tcp_client();
  const Bytes small = samples::getattr_call(1);
  c->send_in_fragments(small, 1);
  EXPECT_EQ(await(*c), serve(small));
  for (const std::size_t fragment : {100, 4096, 70000}) {
    const Bytes call = samples::write_call(2, pattern(300000));
    c->send_in_fragments(call, fragment);
    EXPECT_EQ(await(*c), serve(call));
    EXPECT_TRUE(server.calls.back() == call);
  }
}

TEST_F(Chained, ManyInFlight) {
  auto c = tcp_client();
  constexpr std::uint32_t kCalls = 300;  // more than credits and queue
  for (std::uint32_t xid = 1; xid <= kCalls; ++xid) {
    c->send(xid % 2 == 0 ? samples::write_call(xid, pattern(100 * xid)) : samples::read_call(xid, 100 * xid));
  }
  std::map<std::uint32_t, Bytes> replies;
  while (replies.size() < kCalls) {
    Bytes reply = await(*c);
    ASSERT_FALSE(reply.empty());
    replies[load_be<std::uint32_t>(reply)] = std::move(reply);
  }
  for (std::uint32_t xid = 1; xid <= kCalls; ++xid) {
    EXPECT_TRUE(replies[xid] ==
                (xid % 2 == 0 ? samples::write_reply(xid) : samples::read_reply(xid, pattern(100 * xid, xid))));
  }
  expect_tcp_front_adds_up();
  expect_nothing_pending();
}

TEST_F(Chained, AnnouncesItsInlineSize) {
  COVERS("RFC8797-4-1");
  auto c = warm_client();
  c->send(samples::write_call(2, pattern(3900)));  // in line only thanks to the private data of both sides
  EXPECT_EQ(await(*c), samples::write_reply(2));
  EXPECT_EQ(front->snapshot().rdma_bytes[static_cast<std::size_t>(RdmaOperation::kRead)][0], 0u);
}

TEST_F(Chained, CarriesBackwardCalls) {
  COVERS("RFC8167-5.2-1");
  auto c = tcp_client();
  c->send(samples::null_call(1));
  (void)await(*c);
  const Bytes callback = samples::rpc_call(77, 0x40000000, 1, 1, pattern(400));
  TcpPeer& nfsd = *server.peers[0];
  std::deque<Bytes> replies;
  nfsd.on_record = [&](TcpPeer&, Bytes record) { replies.push_back(std::move(record)); };
  nfsd.send(callback);
  EXPECT_EQ(await(*c), callback);
  c->send(samples::rpc_reply(77, pattern(100)));
  ASSERT_TRUE(loop.until([&] { return !replies.empty(); }));
  EXPECT_EQ(replies[0], samples::rpc_reply(77, pattern(100)));
  // An answer that does not fit in line: dropped, counted, and the server is told.
  nfsd.send(samples::rpc_call(78, 0x40000000, 1, 1));
  (void)await(*c);
  c->send(samples::rpc_reply(78, pattern(6000)));
  ASSERT_TRUE(loop.until([&] {
    return tcp_messages(MessageKind::kBackwardReply).dropped[static_cast<std::size_t>(DropReason::kTooLong)] == 1;
  }));
  // A Reply to no backward Call.
  c->send(samples::rpc_reply(79));
  c->send(samples::null_call(2));
  expect_tcp_front_adds_up();
}

TEST_F(Chained, AnswersBackwardCallsThatTheClientDoesNot) {
  options.backward_timeout = 200ms;
  open_tcp(front->local());  // only the TCP front gives up so soon
  auto c = warm_client();
  TcpPeer& nfsd = *server.peers[0];
  std::deque<Bytes> replies;
  nfsd.on_record = [&](TcpPeer&, Bytes record) { replies.push_back(std::move(record)); };
  nfsd.send(samples::rpc_call(77, 0x40000000, 1, 1));
  (void)await(*c);
  ASSERT_TRUE(loop.until([&] { return !replies.empty(); }));
  const auto error = rpcrdma::make_error_reply(77, rpcrdma::AcceptStat::kSystemErr);
  EXPECT_EQ(replies.front(), Bytes(error.begin(), error.end()));
  EXPECT_TRUE(logged("backward call unanswered", 1));
  c->send(samples::rpc_reply(77));  // too late
  ASSERT_TRUE(loop.until([&] {
    return tcp_messages(MessageKind::kBackwardReply).dropped[static_cast<std::size_t>(DropReason::kUnknownXid)] == 1;
  }));
  EXPECT_EQ(replies.size(), 1u);
  nfsd.send(samples::rpc_call(77, 0x40000000, 1, 1));  // its xid is free again
  (void)await(*c);
  c->send(samples::rpc_reply(77, pattern(8)));
  ASSERT_TRUE(loop.until([&] { return replies.size() == 2; }));
  EXPECT_EQ(replies.back(), samples::rpc_reply(77, pattern(8)));
  expect_tcp_front_adds_up();
}

TEST_F(Chained, DropsCallsWhoseXidIsOutstanding) {
  auto c = warm_client();
  std::vector<Bytes> waiting;
  server.on_call = [&](TcpPeer&, const Bytes& call) { waiting.push_back(call); };
  c->send(samples::null_call(1));
  c->send(samples::null_call(1));
  c->send(samples::null_call(2));
  ASSERT_TRUE(loop.until([&] { return waiting.size() == 2; }));
  EXPECT_EQ(tcp_messages(MessageKind::kCall).dropped[static_cast<std::size_t>(DropReason::kDuplicateXid)], 1u);
  for (const Bytes& call : waiting) server.peers[0]->send(serve(call));
  (void)await(*c);
  (void)await(*c);
  expect_tcp_front_adds_up();
}

// A Reply longer than any we can take: the Call fails, and the client is told.
TEST_F(Chained, TellsTheClientThatACallFailed) {
  auto c = tcp_client();
  // NULL has a short Reply by definition, so no Reply chunk is offered.
  server.on_call = [](TcpPeer& from, const Bytes& call) {
    from.send(samples::rpc_reply(load_be<std::uint32_t>(call), pattern(8000)));
  };
  c->send(samples::null_call(1));
  const auto error = rpcrdma::make_error_reply(1, rpcrdma::AcceptStat::kSystemErr);
  EXPECT_EQ(await(*c), Bytes(error.begin(), error.end()));
  EXPECT_TRUE(logged("call failed", 1));
  server.on_call = {};
  c->send(samples::null_call(2));
  EXPECT_EQ(await(*c), samples::rpc_reply(2));
}

// An ACL longer than was thought: the server answers ERR_CHUNK, and is asked once more with a larger Reply chunk.
TEST_F(Chained, AsksAgainForAnAclThatIsLongerThanExpected) {
  auto c = tcp_client();
  const Bytes acl = samples::words({0, 0, 15}) + pattern(300'000);
  server.on_call = [&](TcpPeer& from, const Bytes& call) {
    from.send(samples::rpc_reply(load_be<std::uint32_t>(call), acl));
  };
  c->send(samples::rpc_call(7, 100227, 3, 1, samples::file_handle() + samples::words({15})));
  EXPECT_TRUE(await(*c) == samples::rpc_reply(7, acl));
  ASSERT_EQ(server.calls.size(), 2u);
  EXPECT_NE(load_be<std::uint32_t>(server.calls[1]), 7u);
  EXPECT_EQ(tcp_front->snapshot().of(Incident::kLargerReplyChunk), 1u);
  EXPECT_EQ(tcp_front->snapshot().of(Incident::kErrChunkReceived), 0u);
  expect_tcp_front_adds_up();
}

TEST_F(Chained, BadInputEndsOnlyItsOwnConnection) {
  auto good = tcp_client();
  for (const Bytes& bad : {record_mark(0x7FFFFFFF), record_mark(3) + Bytes(3), record_mark(0),
                           record_mark(12) + samples::words({1, 2, 3})}) {
    auto c = tcp_client();
    c->send_raw(bad);
    c->send(samples::null_call(5));
    ASSERT_TRUE(loop.until([&] { return c->ended(); }));
    good->send(samples::null_call(1));
    EXPECT_EQ(await(*good), samples::rpc_reply(1));
  }
}

TEST_F(Chained, ServesOnlyAllowedClientsAndLimitsThem) {
  options.allow = *AccessList::parse("127.0.0.5").value;
  options.max_connections = 1;
  open_tcp(front->local());
  auto stranger = tcp_client("127.0.0.6");
  ASSERT_TRUE(loop.until([&] { return stranger->ended(); }));
  EXPECT_TRUE(logged("reason=not_allowed", 1));
  auto a = tcp_client("127.0.0.5");
  a->send(samples::null_call(1));
  (void)await(*a);
  auto b = tcp_client("127.0.0.5");
  ASSERT_TRUE(loop.until([&] { return b->ended(); }));
  EXPECT_TRUE(logged("reason=limit", 1));
}

// COMPOUND of CREATE_SESSION only, with a fore and a back channel of 1 MiB each (RFC 8881 s18.36).
Bytes create_session(std::uint32_t xid, std::uint32_t back_bytes) {
  using samples::words;
  const Bytes fore = words({0, 1u << 20, 1u << 20, 1u << 20, 8, 64, 0});
  const Bytes back = words({0, back_bytes, back_bytes, back_bytes, 2, 16, 0});
  const Bytes operation = words({43, 1, 2, 3, 3}) + fore + back + words({0x40000000, 1, 0});
  return samples::rpc_call(xid, samples::kNfs, 4, 1, words({0, 1, 1}) + operation);
}

TEST_F(Chained, ClampsTheBackChannelTowardsRdma) {
  COVERS("RFC8267-6.5.2-4");
  COVERS("RFC8267-6.5.2-2");
  auto c = tcp_client();
  c->send(create_session(1, 1u << 20));
  (void)await(*c);
  EXPECT_EQ(server.calls.back(), create_session(1, options.inline_bytes - 28));
  c->send(create_session(2, 1000));  // small enough: unchanged
  (void)await(*c);
  EXPECT_EQ(server.calls.back(), create_session(2, 1000));
  // The RDMA front leaves it alone: its TCP server has no such limit.
  auto direct = client();
  direct->call(create_session(3, 1u << 20));
  (void)direct->await(3);
  EXPECT_EQ(server.calls.back(), create_session(3, 1u << 20));
}

}  // namespace
}  // namespace iwarp::gateway::test
