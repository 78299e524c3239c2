// Bad input on either side of the RDMA front: at worst its own connection ends, with the right answer and one clear log
// line.
#include "tests/gateway/flood.h"
#include "tests/gateway/front_fixture.h"
#include "tests/support/covers.h"

namespace iwarp::gateway::test {
namespace {

using namespace std::chrono_literals;
using rpcrdma::HeaderError;
using rpcrdma::Proc;
using rpcrdma::Segment;

class RdmaFrontHostile : public FrontFixture {
 protected:
  void SetUp() override { open(); }
  // The connection lives and serves.
  void expect_alive(RdmaClient& c) {
    c.call(samples::null_call(0xA11CE));
    EXPECT_EQ(c.await(0xA11CE).payload, samples::rpc_reply(0xA11CE));
  }
  void expect_error(RdmaClient& c, const Bytes& message, HeaderError code) {
    const auto lines = log_lines("unusable messages");
    c.send(message);
    const Decoded answer = c.await(load_be<std::uint32_t>(message));
    EXPECT_EQ(answer.header.proc, Proc::kError);
    EXPECT_EQ(answer.header.error.code, code);
    EXPECT_TRUE(logged("unusable messages", lines + 1));
    expect_alive(c);
  }
};

TEST_F(RdmaFrontHostile, AnswersUnknownVersionsWithErrVers) {
  COVERS("RFC8166-4.1.2-9");
  auto c = client();
  auto h = samples::header(5);
  h.version = 2;
  const Bytes message = samples::encode(h, samples::null_call(5));
  c->send(message);
  const Decoded answer = c->await(5);
  EXPECT_EQ(answer.header.error, (rpcrdma::ErrorBody{HeaderError::kVers, 1, 1}));
  EXPECT_TRUE(logged("err_vers=1", 1));
  expect_alive(*c);
  EXPECT_EQ(messages(MessageKind::kCall).forwarded, 1u);
  expect_nothing_pending();
}

// A TCP server that sends, faster than they can be read, Replies that nobody asked for.
TEST_F(RdmaFrontHostile, AFloodOfRecordsStarvesNobody) {
  tcp::acceptor acceptor(loop.io, {boost::asio::ip::make_address("127.0.0.1"), 0});
  open({"127.0.0.1", acceptor.local_endpoint().port()});
  auto good = client();
  const auto answering = std::make_shared<TcpPeer>(acceptor.accept());
  answering->on_record = [](TcpPeer& from, const Bytes& call) { from.send(serve(call)); };
  answering->start();
  auto c = client();
  const Flood flood(acceptor.accept(), samples::rpc_reply(7));
  ASSERT_TRUE(loop.until([&] { return dropped(MessageKind::kReply, DropReason::kUnknownXid) > 10000; }));
  for (int n = 0; n < 10; ++n) expect_alive(*good);
  EXPECT_FALSE(flood.exhausted());
}

TEST_F(RdmaFrontHostile, AnswersUnusableChunksWithErrChunk) {
  COVERS("RFC8166-4.5-3");
  auto c = client();
  auto nomsg = samples::header(1, Proc::kNomsg);  // nothing to read
  expect_error(*c, samples::encode(nomsg), HeaderError::kChunk);
  auto both = samples::header(2);  // payload in two places
  both.read_list = {{0, {Stag{1}, 100, 0}}};
  expect_error(*c, samples::encode(both, samples::null_call(2)), HeaderError::kChunk);
  auto huge = samples::header(3, Proc::kNomsg);
  huge.read_list = {{0, {Stag{1}, 0xFFFFFFFF, 0}}};
  expect_error(*c, samples::encode(huge), HeaderError::kChunk);
  auto liar = samples::header(4);  // another xid inside
  expect_error(*c, samples::encode(liar, samples::null_call(77)), HeaderError::kChunk);
  Bytes endless = samples::words({6, 1, 32, 0, 0, 1, 0x7FFFFFFF});  // a Write chunk of 2 G segments
  expect_error(*c, endless, HeaderError::kChunk);
  for (const Bytes& call : server.calls) EXPECT_EQ(call, samples::null_call(0xA11CE));
  EXPECT_EQ(server.calls.size(), 5u);
  EXPECT_EQ(front->snapshot().of(Incident::kErrChunkSent), 5u);
  EXPECT_EQ(front->snapshot().of(Incident::kReplyTooLong), 0u);
}

TEST_F(RdmaFrontHostile, AnswersTaggedOffsetsThatWrapWithErrChunk) {
  auto c = client();
  const Segment wrapping{Stag{1}, 100, ~std::uint64_t{0} - 10};
  auto read = samples::header(1, Proc::kNomsg);
  read.read_list = {{0, wrapping}};
  expect_error(*c, samples::encode(read), HeaderError::kChunk);
  auto write = samples::header(2);
  write.write_list = {rpcrdma::WriteChunk{{wrapping}}};
  expect_error(*c, samples::encode(write, samples::read_call(2, 100)), HeaderError::kChunk);
}

// A client that were told STARTTLS by the server would begin a TLS session with the gateway.
TEST_F(RdmaFrontHostile, DeniesAuthTls) {
  auto c = client();
  const Bytes probe = samples::words({1, 0, 2, samples::kNfs, 4, 0, 7, 0, 0, 0});
  c->call(probe);
  EXPECT_EQ(c->await(1).payload, samples::words({1, 1, 1, 1, 2}));
  expect_alive(*c);
  EXPECT_EQ(server.calls.size(), 1u) << "the probe has reached the server";
  EXPECT_EQ(front->snapshot().of(Incident::kTlsDenied), 1u);
  EXPECT_EQ(dropped(MessageKind::kCall, DropReason::kAuthTls), 1u);
  expect_nothing_pending();
}

TEST_F(RdmaFrontHostile, DropsWhatIsNoMessage) {
  COVERS("RFC8166-4.5-2");
  COVERS("RFC8166-4.6.2-2");
  COVERS("RFC8166-4.2.4-12");
  auto c = client();
  c->send(Bytes(3));
  c->send(Bytes{});
  auto done = samples::words({9, 1, 32, 3, 0, 0, 0});
  c->send(done);
  c->send(samples::words({10, 1, 32, 4, 2}));                             // RDMA_ERROR about nothing
  c->send(samples::encode(samples::header(11), samples::rpc_reply(11)));  // Reply to no backward Call
  expect_alive(*c);
  EXPECT_EQ(server.calls.size(), 1u);
  EXPECT_TRUE(logged_at_least("unusable messages", 1));
  EXPECT_EQ(front->snapshot().of(Incident::kUnusableMessage), 5u);
  expect_nothing_pending();
}

TEST_F(RdmaFrontHostile, PositionsThatContradictTheCallAreGarbage) {
  auto c = client();
  auto data = c->expose_for_read(Bytes(100));
  auto h = samples::header(1);
  h.read_list = {{4000, data->segment}};  // beyond the payload
  c->send(h, samples::null_call(1));
  const Decoded answer = c->await(1);
  ASSERT_EQ(answer.payload.size(), rpcrdma::kErrorReplyBytes);
  EXPECT_EQ(load_be<std::uint32_t>(ConstBytes(answer.payload).last(4)),
            static_cast<std::uint32_t>(rpcrdma::AcceptStat::kGarbageArgs));
  expect_alive(*c);
  EXPECT_EQ(front->snapshot().of(Incident::kGarbageArgsSent), 1u);
}

// The memory named does not exist, or is not for us: RDMAP ends that connection, with a Terminate from the client's
// side.
TEST_F(RdmaFrontHostile, EndsConnectionsThatNameInvalidMemory) {
  COVERS("RFC8166-4.5.3-1");
  for (const bool read : {true, false}) {
    auto c = client();
    auto other = client();
    auto h = samples::header(1, read ? Proc::kNomsg : Proc::kMsg);
    const Segment nowhere{Stag{0x12345600}, 4096, 0};
    if (read) {
      h.read_list = {{0, nowhere}};
      c->send(h);
    } else {
      h.write_list = {rpcrdma::WriteChunk{{nowhere}}};
      c->send(h, samples::read_call(1, 4096));
    }
    ASSERT_TRUE(loop.until([&] { return c->closed() && front->snapshot().active() == 1; }));
    expect_alive(*other);
    other.reset();
    ASSERT_TRUE(loop.until([&] { return front->snapshot().active() == 0; }));
  }
  EXPECT_TRUE(logged("terminate_received=\"", 2));
  expect_nothing_pending();
}

TEST_F(RdmaFrontHostile, AnswersWhenTheReplyHasNoRoom) {
  COVERS("RFC8166-4.5-8");
  auto c = client();
  c->send(samples::header(1), samples::read_call(1, 100000));  // no chunk at all
  const Decoded answer = c->await(1);
  EXPECT_EQ(answer.header.proc, Proc::kError);
  EXPECT_EQ(answer.header.error.code, HeaderError::kChunk);
  auto room = c->expose_for_write(5000);
  auto h = samples::header(2);
  h.reply_chunk = rpcrdma::WriteChunk{{room->segment}};
  c->send(h, samples::read_call(2, 100000));
  EXPECT_EQ(c->await(2).header.proc, Proc::kError);
  EXPECT_EQ(room->memory, Bytes(5000));
  settle();  // a worker counts behind its answer
  EXPECT_TRUE(logged("err_chunk=1", 2));
  EXPECT_EQ(front->snapshot().of(Incident::kReplyTooLong), 2u);
  EXPECT_EQ(front->snapshot().of(Incident::kErrChunkSent), 2u);
  expect_alive(*c);
}

// RPC that makes no sense to us still goes to the server, who answers it.
TEST_F(RdmaFrontHostile, PassesStrangeRpcThrough) {
  server.on_call = [](TcpPeer& from, const Bytes& call) {
    from.send(samples::rpc_reply(load_be<std::uint32_t>(call)));
  };
  auto c = client();
  const Bytes strange = samples::words({1, 0, 99}) + pattern(5);
  c->call(strange);
  (void)c->await(1);
  EXPECT_EQ(server.calls.back(), strange);
  const Bytes shortest = samples::words({2, 0});
  c->call(shortest);
  (void)c->await(2);
  EXPECT_EQ(server.calls.back(), shortest);
}

TEST_F(RdmaFrontHostile, TooLongASendEndsTheConnection) {
  auto c = client();
  auto other = client();
  c->send(Bytes(5000));  // more than the 4096 octets announced
  ASSERT_TRUE(loop.until([&] { return c->closed(); }));
  expect_alive(*other);
  EXPECT_TRUE(logged("terminate_sent=\"", 1));
}

// --- The server's side.

TEST_F(RdmaFrontHostile, EndsConnectionsWhoseServerLosesItsFraming) {
  const auto record_of = [](std::size_t bytes) { return record_mark(bytes) + Bytes(100); };
  for (const Bytes& bad : {record_of(0x7FFFFFFF), record_of(2u << 20), record_of(3), record_of(0)}) {
    auto other = client();
    auto c = client();
    server.peers.back()->send_raw(bad);
    ASSERT_TRUE(loop.until([&] { return c->closed(); }));
    expect_alive(*other);
    c.reset();
    other.reset();
    ASSERT_TRUE(loop.until([&] { return front->snapshot().active() == 0; }));
  }
  EXPECT_TRUE(logged("reason=record_too_long", 2));
  EXPECT_TRUE(logged("reason=record_too_short", 2));
}

TEST_F(RdmaFrontHostile, EndsConnectionsWhoseServerStopsInsideARecord) {
  auto c = client();
  server.peers[0]->send_raw(record_mark(100) + Bytes(50));
  loop.run_for(20ms);
  EXPECT_FALSE(c->closed());
  server.peers[0]->close();
  ASSERT_TRUE(loop.until([&] { return c->closed(); }));
  EXPECT_TRUE(logged("reason=connection_lost", 1));
}

TEST_F(RdmaFrontHostile, EndsConnectionsWhoseServerSendsNoRpc) {
  auto other = client();
  auto c = client();
  server.peers.back()->send(samples::words({1, 2, 3}));  // neither Call nor Reply
  ASSERT_TRUE(loop.until([&] { return c->closed(); }));
  EXPECT_EQ(dropped(MessageKind::kReply, DropReason::kMalformed), 1u);
  EXPECT_TRUE(logged("closing peer=", 1));
  expect_alive(*other);
}

// A Reply whose contents are broken is the client's business: nothing is reduced, nothing is lost.
TEST_F(RdmaFrontHostile, PassesBrokenRepliesThrough) {
  auto c = client();
  const std::vector<Bytes> bodies = {
      {},                                                              // ends behind the head
      samples::words({0, 0, 100, 1, 0xFFFFFFFF}),                      // data longer than the record
      samples::words({0, 0, 100, 1, 5}) + pattern(4),                  // padding missing
      samples::words({0, 1}),                                          // attributes missing
      samples::words({0, 0, 100, 1, 100}) + pattern(100) + pattern(8)  // something behind
  };
  std::uint32_t xid = 0;
  for (const Bytes& body : bodies) {
    ++xid;
    SCOPED_TRACE(xid);
    const Bytes broken = samples::rpc_reply(xid, body);
    server.on_call = [&](TcpPeer& from, const Bytes&) { from.send(broken); };
    auto room = c->expose_for_write(200);
    auto h = samples::header(xid);
    h.write_list = {rpcrdma::WriteChunk{{room->segment}}};
    c->send(h, samples::read_call(xid, 100));
    const Decoded reply = c->await(xid);
    ASSERT_EQ(reply.header.proc, Proc::kMsg);
    const std::size_t reduced = reply.header.write_list[0].length();
    EXPECT_EQ(reply.payload.size() + reduced, broken.size());
  }
}

TEST_F(RdmaFrontHostile, ServerThatAnswersTwiceIsHeardOnce) {
  server.on_call = [](TcpPeer& from, const Bytes& call) {
    from.send(serve(call));
    from.send(serve(call));
  };
  auto c = client();
  c->call(samples::null_call(1));
  (void)c->await(1);
  ASSERT_TRUE(loop.until([&] { return dropped(MessageKind::kReply, DropReason::kUnknownXid) == 1; }));
  EXPECT_TRUE(c->inbox.empty());
}

// Octets that never become an MPA Request, and ones that end in the middle: others are served meanwhile.
TEST_F(RdmaFrontHostile, StrangersCostNobodyAnything) {
  std::vector<tcp::socket> strangers;
  for (int i = 0; i < 20; ++i) {
    strangers.emplace_back(loop.io);
    strangers.back().connect(front->local());
    const Bytes junk = i % 2 == 0 ? pattern(1000) : Bytes(1);
    boost::system::error_code ec;
    (void)strangers.back().write_some(boost::asio::buffer(junk), ec);
  }
  loop.run_for(20ms);
  expect_still_serving();
  EXPECT_EQ(server.peers.size(), 1u);
}

}  // namespace
}  // namespace iwarp::gateway::test
