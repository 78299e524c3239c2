// The TCP front: TCP clients before an RPC-over-RDMA server. That server is our own RDMA front with a TCP server behind
// it, or a hand-driven one.
#include "iwarp/gateway/tcp_front.h"

#include <boost/asio/write.hpp>

#include "iwarp/rpcrdma/nfs_binding.h"
#include "tests/gateway/flood.h"
#include "tests/gateway/front_fixture.h"
#include "tests/support/covers.h"

namespace iwarp::gateway::test {
namespace {

using namespace std::chrono_literals;

// TCP client - TcpFront - RDMA - RdmaFront - TCP server.
class Chained : public FrontFixture {
 protected:
  ~Chained() override { tcp_front.reset(); }
  void SetUp() override {
    open();
    open_tcp(front->local());
  }
  void open_tcp(const tcp::endpoint& to) {
    auto opened = TcpFront::open(client_engine, {boost::asio::ip::make_address("127.0.0.1"), 0},
                                 {to.address().to_string(), to.port()}, options);
    ASSERT_TRUE(opened.ok());
    tcp_front = std::move(*opened);
  }
  std::shared_ptr<TcpPeer> tcp_client(const std::string& source = "127.0.0.1") {
    tcp::socket socket(loop.io);
    socket.open(tcp::v4());
    socket.bind({boost::asio::ip::make_address(source), 0});
    socket.connect(tcp_front->local());
    auto out = std::make_shared<TcpPeer>(std::move(socket));
    out->start();
    return out;
  }
  // Connected, and one Call answered: before that a client of RPC-over-RDMA has one credit only.
  std::shared_ptr<TcpPeer> warm_client() {
    auto c = tcp_client();
    c->send(samples::null_call(0xC01D));
    EXPECT_EQ(await(*c), samples::rpc_reply(0xC01D));
    return c;
  }
  Bytes await(TcpPeer& c) {
    const bool came = loop.until([&] { return !c.inbox.empty() || c.ended(); });
    EXPECT_TRUE(came && !c.inbox.empty()) << (c.ended() ? "connection ended" : "no answer");
    if (c.inbox.empty()) return {};
    Bytes out = std::move(c.inbox.front());
    c.inbox.pop_front();
    return out;
  }
  Stats::Messages tcp_messages(MessageKind kind) const { return tcp_front->snapshot().of(kind); }
  void expect_tcp_front_adds_up() const {
    const auto s = tcp_front->snapshot();
    for (const Stats::Messages& m : s.messages) EXPECT_EQ(m.received, m.forwarded + m.dropped_total());
  }

  std::unique_ptr<TcpFront> tcp_front;
};

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
  EXPECT_EQ(log_lines("backward call unanswered"), 1u);
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

// A client that reads slowly, when the server goes away.
class ChainedSlow : public Chained {
 protected:
  static constexpr std::uint32_t kReads = 24;
  static constexpr std::uint32_t kBytes = 1u << 20;
  // All Replies have come to the TCP front, which cannot get rid of them, and the server is gone.
  std::shared_ptr<TcpPeer> stuck_client() {
    options.memory_bytes = 32u << 20;
    open();
    open_tcp(front->local());
    auto c = warm_client();
    c->pause();
    for (std::uint32_t xid = 1; xid <= kReads; ++xid) c->send(samples::read_call(xid, kBytes));
    EXPECT_TRUE(loop.until([&] { return tcp_messages(MessageKind::kReply).received == kReads + 1; }));
    server.peers.back()->close();
    EXPECT_TRUE(loop.until([&] { return front->snapshot().active() == 0; }));
    EXPECT_LT(tcp_front->snapshot().tcp_bytes[static_cast<std::size_t>(Way::kOut)], std::uint64_t{kReads} * kBytes);
    return c;
  }
};

TEST_F(ChainedSlow, GetsWhatIsCompleteBeforeTheConnectionCloses) {
  auto c = stuck_client();
  c->send(samples::null_call(99));  // too late: must not turn the end into a reset
  c->resume();
  for (std::uint32_t n = 0; n < kReads; ++n) {
    const Bytes reply = await(*c);
    ASSERT_FALSE(reply.empty());
    const auto xid = load_be<std::uint32_t>(reply);
    EXPECT_TRUE(reply == samples::read_reply(xid, pattern(kBytes, xid)));
  }
  ASSERT_TRUE(loop.until([&] { return c->ended(); }));
  EXPECT_FALSE(c->was_reset());
  c->close();
  ASSERT_TRUE(loop.until([&] { return tcp_front->snapshot().active() == 0; }));
  expect_tcp_front_adds_up();
}

TEST_F(ChainedSlow, IsNotWaitedForLongerThanTheLimit) {
  options.delivery_timeout = 300ms;
  auto c = stuck_client();
  ASSERT_TRUE(loop.until([&] { return tcp_front->snapshot().active() == 0; }, 5s));
  EXPECT_LT(tcp_front->snapshot().tcp_bytes[static_cast<std::size_t>(Way::kOut)], std::uint64_t{kReads} * kBytes);
  expect_tcp_front_adds_up();
}

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

TEST_F(Chained, ClosesTheServerWhenTheClientIsGone) {
  for (const bool reset : {true, false}) {
    auto c = tcp_client();
    c->send(samples::null_call(1));
    (void)await(*c);
    reset ? c->reset() : c->close();
    ASSERT_TRUE(loop.until([&] { return server.peers.back()->ended() && tcp_front->snapshot().active() == 0; }));
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

// Records that are dropped at once, faster than they can be read: nobody else waits for their end.
TEST_F(Chained, AFloodOfRecordsStarvesNobody) {
  auto good = warm_client();
  tcp::socket socket(loop.io);
  socket.connect(tcp_front->local());
  const Flood flood(std::move(socket), samples::words({7, 1}));  // Replies to no backward Call
  const auto dropped = [&] {
    return tcp_messages(MessageKind::kBackwardReply).dropped[static_cast<std::size_t>(DropReason::kUnknownXid)];
  };
  ASSERT_TRUE(loop.until([&] { return dropped() > 10000; }));
  for (std::uint32_t xid = 1; xid <= 10; ++xid) {
    good->send(samples::null_call(xid));
    EXPECT_EQ(await(*good), samples::rpc_reply(xid));
  }
  EXPECT_FALSE(flood.exhausted());
}

// The same while all that is left to do is to deliver what the client does not take.
TEST_F(ChainedSlow, AFloodOfRecordsDoesNotKeepItBeyondTheLimit) {
  options.delivery_timeout = 300ms;
  options.memory_bytes = 32u << 20;
  open();
  open_tcp(front->local());
  tcp::socket socket(loop.io);
  socket.connect(tcp_front->local());
  boost::asio::write(socket, boost::asio::buffer(record_mark(samples::null_call(1).size()) + samples::null_call(1)));
  ASSERT_TRUE(loop.until([&] { return tcp_messages(MessageKind::kReply).forwarded == 1; }));
  for (std::uint32_t xid = 2; xid < 2 + kReads; ++xid) {
    const Bytes call = samples::read_call(xid, kBytes);
    boost::asio::write(socket, boost::asio::buffer(record_mark(call.size()) + call));
  }
  ASSERT_TRUE(loop.until([&] { return tcp_messages(MessageKind::kReply).received == kReads + 1; }));
  const Flood flood(std::move(socket), samples::words({7, 1}));
  server.peers.back()->close();
  ASSERT_TRUE(loop.until([&] { return tcp_front->snapshot().active() == 0; }));
  EXPECT_GT(tcp_messages(MessageKind::kBackwardReply).dropped_total(), 0U);
  EXPECT_FALSE(flood.exhausted());
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
  EXPECT_EQ(log_lines("call failed"), 1u);
  server.on_call = {};
  c->send(samples::null_call(2));
  EXPECT_EQ(await(*c), samples::rpc_reply(2));
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
  EXPECT_EQ(log_lines("reason=not_allowed"), 1u);
  auto a = tcp_client("127.0.0.5");
  a->send(samples::null_call(1));
  (void)await(*a);
  auto b = tcp_client("127.0.0.5");
  ASSERT_TRUE(loop.until([&] { return b->ended(); }));
  EXPECT_EQ(log_lines("reason=limit"), 1u);
}

TEST_F(Chained, ClosesTheClientWhenTheRdmaServerIsUnreachable) {
  front.reset();
  auto c = tcp_client();
  c->send(samples::null_call(1));
  ASSERT_TRUE(loop.until([&] { return c->ended(); }));
  EXPECT_EQ(tcp_front->snapshot().refused[static_cast<std::size_t>(RefuseReason::kBackendUnreachable)], 1u);
  open(server.host_port());
}

TEST_F(Chained, DrainsAndStops) {
  std::vector<Bytes> waiting;
  server.on_call = [&](TcpPeer&, const Bytes& call) { waiting.push_back(call); };
  options.drain_timeout = 300ms;
  open_tcp(front->local());
  auto busy = tcp_client();
  auto quiet = tcp_client();
  busy->send(samples::null_call(1));
  ASSERT_TRUE(loop.until([&] { return waiting.size() == 1; }));
  bool drained = false;
  tcp_front->drain([&] { drained = true; });
  ASSERT_TRUE(loop.until([&] { return quiet->ended(); }));
  EXPECT_FALSE(drained);
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

TEST_F(Chained, MayBeDestroyedAtAnyTime) {
  auto busy = warm_client();
  server.on_call = [](TcpPeer&, const Bytes&) {};
  for (std::uint32_t xid = 1; xid < 100; ++xid) busy->send(samples::write_call(xid, pattern(20000)));
  auto connecting = tcp_client();
  ASSERT_TRUE(loop.until([&] { return server.calls.size() > 3; }));
  tcp_front.reset();
  ASSERT_TRUE(loop.until([&] { return busy->ended() && front->snapshot().active() == 0; }));
}

// A TCP client that sends much and takes nothing: memory stays bounded, others are served.
TEST_F(Chained, SlowClientsSlowOnlyThemselves) {
  options.memory_bytes = 4u << 20;
  server.keep_calls = false;
  open();
  open_tcp(front->local());
  auto slow = tcp_client();
  slow->pause();
  constexpr std::uint32_t kCalls = 100;
  for (std::uint32_t xid = 1; xid <= kCalls; ++xid) {
    slow->send(xid % 2 == 0 ? samples::write_call(xid, pattern(1u << 20)) : samples::read_call(xid, 1u << 20));
  }
  Stats::Snapshot last;
  do {
    last = tcp_front->snapshot();
    loop.run_for(200ms);
  } while (!(last == tcp_front->snapshot()));
  EXPECT_GT(slow->unsent_bytes(), 0u);
  auto quick = tcp_client();
  quick->send(samples::null_call(1));
  EXPECT_EQ(await(*quick), samples::rpc_reply(1));
  slow->resume();
  for (std::uint32_t n = 0; n < kCalls; ++n) ASSERT_FALSE(await(*slow).empty());
  expect_tcp_front_adds_up();
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
