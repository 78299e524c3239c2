// A Requester that speaks the draft of 2005; and the whole of it between two ends of iwarp.
#include <gtest/gtest.h>

#include "iwarp/rpcrdma/padding.h"
#include "tests/rpcrdma/requester_fixture.h"
#include "tests/rpcrdma/rpc_pair.h"

namespace iwarp::rpcrdma::test {
namespace {

using iwarp::test::pattern;
using State = ConfigClient::State;

constexpr std::uint32_t kXid = 0x01020304;
constexpr std::size_t kLong = 20000;

RequesterOptions options(bool configure = false) {
  RequesterOptions out;
  out.draft_2005.enabled = true;
  out.draft_2005.configure = configure;
  out.draft_2005.offer_reply_memory = false;
  return out;
}
ResponderOptions server_options() {
  ResponderOptions out;
  out.draft_2005.enabled = true;
  out.draft_2005.align = 512;
  return out;
}

class Requester2005 : public RequesterTest {
 protected:
  Decoded received_2005() {
    run();
    if (server_.inbox.empty()) throw std::runtime_error("server received nothing");
    const Bytes m = server_.inbox.front();
    server_.inbox.erase(server_.inbox.begin());
    return decode(m, {.dialect = {.draft_2005 = true}});
  }
  // Memory of the server with these octets, as a Read segment.
  ReadSegment offered(const Bytes& octets, std::uint32_t position) {
    memory_.push_back(octets);
    const auto exposed = server_.register_memory(memory_.back(), RemoteAccess::kRead, false);
    return {position, {exposed->handle, static_cast<std::uint32_t>(octets.size()), exposed->offset}};
  }
  void expect_done(std::uint32_t xid) {
    const Decoded d = received_2005();
    EXPECT_EQ(d.header.proc, Proc::kDone);
    EXPECT_EQ(d.header.xid, xid);
  }
  void expect_bad_reply() {
    const auto failed = next<Requester::CallFailed>(*requester_);
    ASSERT_TRUE(failed);
    EXPECT_EQ(failed->why, Requester::Failure::kBadReply);
  }
  // Takes the configuration, and answers it.
  void configure(std::initializer_list<std::uint32_t> results) {
    const Decoded d = received_2005();
    answer(header(d.header.xid), rpc_reply(d.header.xid, words(results)));
  }

  std::deque<Bytes> memory_;
};

TEST_F(Requester2005, FetchesALongReplyAndSaysDone) {
  COVERS("D2005-2-4");
  COVERS("D2005-3.6-4");
  COVERS("D2005-3.8-4");
  COVERS("D2005-5.1-2");
  COVERS("D2005-5.1-3");
  start(options());
  ASSERT_TRUE(call(read_call(kXid, kLong)));
  EXPECT_FALSE(received_2005().header.has_chunks());
  const Bytes reply = read_reply(kXid, pattern(kLong));
  Header h = header(kXid, Proc::kNomsg);
  h.read_list.push_back(offered(reply, 0));
  answer(h);
  expect_done(kXid);
  expect_reply(reply);
  EXPECT_EQ(requester_->stats().replies_in_read_chunk, 1u);
  EXPECT_EQ(requester_->stats().dones_sent, 1u);
  EXPECT_TRUE(requester_->idle());
}

TEST_F(Requester2005, FetchesDataOfAReply) {
  COVERS("D2005-3.4-10");
  COVERS("D2005-3.4-13");
  COVERS("D2005-3.6-1");
  COVERS("D2005-3.6-2");
  start(options());
  const Bytes data = pattern(kLong);
  const Bytes head = read_reply_head(kXid, kLong);
  const auto position = static_cast<std::uint32_t>(head.size());
  ASSERT_TRUE(call(read_call(kXid, kLong)));
  (void)received_2005();
  Header h = header(kXid);
  // Two segments of one position are one item.
  h.read_list.push_back(offered(Bytes(data.begin(), data.begin() + 8000), position));
  h.read_list.push_back(offered(Bytes(data.begin() + 8000, data.end()), position));
  answer(h, head);
  expect_done(kXid);
  expect_reply(read_reply(kXid, data));
  // Fewer than the count word says.
  ASSERT_TRUE(call(read_call(kXid, kLong)));
  (void)received_2005();
  h.read_list = {offered(Bytes(data.begin(), data.begin() + 8000), position)};
  answer(h, head);
  expect_done(kXid);
  expect_bad_reply();
}

// In line, and with its data taken out.
TEST_F(Requester2005, CallsAreTheMessageAndItsXid) {
  COVERS("D2005-4-1");
  COVERS("D2005-4.1-2");
  start(options());
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{2001}, kLong}) {
    const Bytes message = write_call(kXid, pattern(bytes));
    ASSERT_TRUE(call(message));
    const Decoded d = received_2005();
    EXPECT_EQ(d.header.xid, kXid);
    EXPECT_EQ(rpc_xid(d.payload), kXid);
    EXPECT_EQ(d.payload, bytes == kLong ? write_call_head(kXid, kLong) : message);
    EXPECT_EQ(d.header.read_list.empty(), bytes != kLong);
    answer(header(kXid), write_reply(kXid));
    expect_reply(write_reply(kXid));
  }
}

TEST_F(Requester2005, AReplyInTheReplyChunkNeedsNoDone) {
  COVERS("D2005-5.2-5");
  RequesterOptions o = options();
  o.draft_2005.offer_reply_memory = true;
  start(o);
  ASSERT_TRUE(call(readdir_call(kXid)));
  Segment s = received_2005().header.reply_chunk.value().segments[0];
  const Bytes reply = rpc_reply(kXid, pattern(9000));
  write_remote(s, reply);
  s.length = static_cast<std::uint32_t>(reply.size());
  Header h = header(kXid, Proc::kNomsg);
  h.reply_chunk = WriteChunk{{s}};
  server_.inbox.clear();
  answer(h);
  expect_reply(reply, true);
  EXPECT_TRUE(nothing_received());
  EXPECT_EQ(requester_->stats().dones_sent, 0u);
}

TEST_F(Requester2005, HostileReplies) {
  start(options());
  const auto fails = [&](const Header& h, const Bytes& payload = {}) {
    ASSERT_TRUE(call(read_call(kXid, kLong)));
    (void)received_2005();
    answer(h, payload);
    run();
    expect_bad_reply();
    EXPECT_TRUE(requester_->idle());
    server_.inbox.clear();
  };
  // Of another xid; no Reply at all; longer than any may be; behind the end.
  Header h = header(kXid, Proc::kNomsg);
  h.read_list = {offered(read_reply(7, pattern(100)), 0)};
  fails(h);
  h.read_list = {offered(read_call(kXid, 100), 0)};
  fails(h);
  h.read_list = {{0, {Stag{1}, 0xFFFFFFFF, 0}}};
  fails(h);
  h.proc = Proc::kMsg;
  h.read_list = {{4096, {Stag{1}, 100, 0}}};
  fails(h, read_reply_head(kXid, 100));
  EXPECT_FALSE(client_.broken);
  // While it is being read nothing else answers the Call.
  ASSERT_TRUE(call(read_call(kXid, kLong)));
  (void)received_2005();
  const Bytes reply = read_reply(kXid, pattern(kLong));
  h.proc = Proc::kNomsg;
  h.read_list = {offered(reply, 0)};
  client_.receive(encode(h));
  client_.receive(encode(h));
  client_.receive(encode(make_err_chunk(kXid, 1, 10)));
  run();
  expect_reply(reply);
  EXPECT_EQ(requester_->stats().unknown_xids, 2u);
  EXPECT_EQ(next<Requester::CallFailed>(*requester_), std::nullopt);
  // RDMA_DONE is for servers.
  Header done = header(kXid, Proc::kDone);
  done.draft_2005 = true;
  answer(done);
  EXPECT_FALSE(client_.broken);
}

TEST_F(Requester2005, ACancelledCallIsDoneToo) {
  start(options());
  ASSERT_TRUE(call(read_call(kXid, kLong)));
  (void)received_2005();
  EXPECT_TRUE(requester_->cancel(kXid));
  Header h = header(kXid, Proc::kNomsg);
  h.read_list.push_back(offered(read_reply(kXid, pattern(kLong)), 0));
  answer(h);
  expect_done(kXid);
  EXPECT_EQ(next<Requester::ReplyReceived>(*requester_), std::nullopt);
  EXPECT_TRUE(requester_->idle());
}

TEST_F(Requester2005, DonesAreInFlight) {
  COVERS("D2005-3.8-8");
  start(options());
  ASSERT_TRUE(call(read_call(kXid, kLong)));
  (void)received_2005();
  Header h = header(kXid, Proc::kNomsg, 2);
  h.read_list.push_back(offered(read_reply(kXid, pattern(kLong)), 0));
  answer(h);
  expect_done(kXid);
  // Two credits: RDMA_DONE has one of them.
  ASSERT_TRUE(call(null_call(11)));
  ASSERT_TRUE(call(null_call(12)));
  EXPECT_EQ(received_2005().header.xid, 11u);
  EXPECT_TRUE(nothing_received());
  // The answer to a Call behind it says that it has arrived.
  answer(header(11, Proc::kMsg, 2), rpc_reply(11));
  EXPECT_EQ(received_2005().header.xid, 12u);
}

TEST_F(Requester2005, ConfiguresBeforeTheFirstCall) {
  COVERS("D2005-6.2-4");
  COVERS("D2005-6.1-1");
  COVERS("D2005-6.1-2");
  COVERS("D2005-6.2-1");
  COVERS("D2005-6.2-3");
  COVERS("D2005-6.2-9");
  start(options(true), std::nullopt, PrivateData{});
  const Bytes write = write_call(kXid, pattern(2000));
  ASSERT_TRUE(call(write));
  ASSERT_TRUE(call(null_call(9)));
  const Decoded d = received_2005();
  const RpcCall head = RpcCall::parse(d.payload).value();
  EXPECT_EQ(head.program, kConfigProgram);
  EXPECT_EQ(ConfigRequest::parse(ConstBytes(d.payload).subspan(head.arguments_offset)).value(),
            (ConfigRequest{4096, 4096 - 128, 1}));
  EXPECT_TRUE(nothing_received());
  answer(header(d.header.xid), rpc_reply(d.header.xid, words({3500, 512, 4})));
  EXPECT_EQ(requester_->configuration().state(), State::kConfigured);
  // In line, which 1024 octets would not have been, and aligned.
  const Decoded padded = received_2005();
  EXPECT_EQ(padded.header.proc, Proc::kMsgp);
  EXPECT_EQ(padded.header.padding, (Padding{512, 1024}));
  Bytes message = padded.payload;
  const auto unpadded = unpad_call(message, padded.header, padded.header.encoded_size());
  ASSERT_TRUE(unpadded);
  EXPECT_EQ(Bytes(message.begin() + static_cast<std::ptrdiff_t>(unpadded->offset), message.end()), write);
  EXPECT_EQ(received_2005().payload, null_call(9));
  EXPECT_EQ(requester_->stats().calls_padded, 1u);
  // Longer than what the server takes.
  ASSERT_TRUE(call(write_call(10, pattern(3450))));
  EXPECT_EQ(received_2005().header.read_list.size(), 1u);
  // Nobody hears of the configuration.
  EXPECT_EQ(next<Requester::ReplyReceived>(*requester_), std::nullopt);
}

// An xid of 0 is one as any other, also while the connection is configured.
TEST_F(Requester2005, XidsOfCallsAreNotThatOfTheConfiguration) {
  start(options(true));
  ASSERT_TRUE(call(null_call(9)));
  const std::uint32_t xid = received_2005().header.xid;
  EXPECT_FALSE(requester_->outstanding_since(0));
  EXPECT_FALSE(requester_->cancel(0));
  ASSERT_TRUE(call(null_call(0)));
  answer(header(xid), rpc_reply(xid, words({4096, 0, 4})));
  EXPECT_EQ(received_2005().payload, null_call(9));
  EXPECT_EQ(received_2005().payload, null_call(0));
}

TEST_F(Requester2005, GoesOnWithoutConfiguration) {
  start(options(true));
  ASSERT_TRUE(call(null_call(9)));
  const std::uint32_t xid = received_2005().header.xid;
  answer(header(xid), Bytes(words({xid, 1, 0, 0, 0, 1})));  // PROG_UNAVAIL
  EXPECT_EQ(requester_->configuration().state(), State::kRefused);
  EXPECT_EQ(received_2005().payload, null_call(9));
}

TEST_F(Requester2005, GoesOnAfterAnErrorInAnswer) {
  start(options(true));
  ASSERT_TRUE(call(null_call(9)));
  answer(make_err_chunk(received_2005().header.xid, 1, 10));
  EXPECT_EQ(requester_->configuration().state(), State::kRefused);
  EXPECT_EQ(received_2005().payload, null_call(9));
  EXPECT_EQ(next<Requester::CallFailed>(*requester_), std::nullopt);
}

TEST_F(Requester2005, AnswersWithoutSenseEndTheConnection) {
  start(options(true));
  ASSERT_TRUE(call(null_call(9)));
  configure({0, 0, 0});
  const auto end = next<Requester::MustClose>(*requester_);
  ASSERT_TRUE(end);
  EXPECT_EQ(end->error.code, Errc::kMalformedRpc);
}

TEST_F(Requester2005, WithoutReadsThereAreNoReadChunks) {
  COVERS("D2005-6.2-8");
  start(options(true));
  ASSERT_TRUE(call(write_call(kXid, pattern(kLong))));
  ASSERT_TRUE(call(null_call(9)));
  configure({4096, 0, 0});
  EXPECT_EQ(received_2005().payload, null_call(9));
  const auto failed = next<Requester::CallFailed>(*requester_);
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->xid, kXid);
  EXPECT_EQ(failed->why, Requester::Failure::kLocal);
}

TEST_F(Requester2005, HasVersion1Only) {
  RequesterOptions o = options();
  o.highest_version = kVersion2;
  BufferPool pool(client_, pool_options(o));
  Requester requester(client_, pool, {}, o);
  EXPECT_EQ(requester.start().error().code, Errc::kInvalidArgument);
}

// Configuration, RDMA_MSGP, a long Reply by Read chunk and RDMA_DONE, with the ends that the others play above.
TEST(Pair2005, TheWholeOfIt) {
  RequesterOptions client = options(true);
  Pair pair(client, server_options());
  const auto call = [&](const Bytes& message) {
    ASSERT_TRUE(pair.client.call(to_buffer(pair.client_pool, message, BufferPool::Purpose::kCall), TimePoint{}));
    pair.run();
  };
  const auto serve = [&](const Bytes& expected, const Bytes& reply) {
    auto got = next<Responder::CallReceived>(pair.server);
    ASSERT_TRUE(got);
    EXPECT_EQ(to_bytes(got->message.bytes()), expected);
    got->message.reset();
    ASSERT_TRUE(pair.server.reply(got->token, to_buffer(pair.server_pool, reply), TimePoint{}));
    pair.run();
    auto answer = next<Requester::ReplyReceived>(pair.client);
    ASSERT_TRUE(answer);
    EXPECT_EQ(to_bytes(answer->message.bytes()), reply);
  };
  for (std::uint32_t xid = 1; xid < 20; ++xid) {
    const Bytes write = write_call(xid, pattern(2000));
    call(write);
    serve(write, write_reply(xid));
    const Bytes read = read_call(xid + 100, kLong);
    call(read);
    serve(read, read_reply(xid + 100, pattern(kLong)));
    const Bytes long_write = write_call(xid + 200, pattern(kLong));  // by Read chunk
    call(long_write);
    serve(long_write, write_reply(xid + 200));
  }
  EXPECT_EQ(pair.client.configuration().state(), State::kConfigured);
  EXPECT_EQ(pair.client.stats().calls_padded, 19u);
  EXPECT_EQ(pair.client.stats().dones_sent, 19u);
  EXPECT_EQ(pair.server.stats().replies_in_read_chunk, 19u);
  EXPECT_EQ(pair.server.replies_kept(), 0u);
  EXPECT_EQ(pair.server_end.exposed(), 0u);
  EXPECT_EQ(pair.client_end.exposed(), 0u);
  EXPECT_TRUE(pair.client.idle());
  EXPECT_TRUE(pair.server.idle());
}

// Either end alone speaks the draft: the other is one of RFC 8166, and nothing breaks.
TEST(Pair2005, WithAnEndThatDoesNotKnowIt) {
  for (const bool client_knows : {false, true}) {
    RequesterOptions c;
    ResponderOptions s;
    if (client_knows) {
      c = options(true);
      c.draft_2005.offer_reply_memory = true;
    } else {
      s = server_options();
    }
    Pair pair(c, s);
    const Bytes read = read_call(5, kLong);
    ASSERT_TRUE(pair.client.call(to_buffer(pair.client_pool, read, BufferPool::Purpose::kCall), TimePoint{}));
    pair.run();
    if (client_knows) {  // the program is none of its own: whoever serves answers
      auto asked = next<Responder::CallReceived>(pair.server);
      ASSERT_TRUE(asked);
      const auto refusal = make_error_reply(asked->xid, AcceptStat::kProgUnavail);
      ASSERT_TRUE(pair.server.reply(asked->token, to_buffer(pair.server_pool, Bytes(refusal.begin(), refusal.end()))));
      asked->message.reset();
      pair.run();
    }
    auto got = next<Responder::CallReceived>(pair.server);
    ASSERT_TRUE(got);
    const Bytes reply = read_reply(5, pattern(kLong));
    got->message.reset();
    ASSERT_TRUE(pair.server.reply(got->token, to_buffer(pair.server_pool, reply)));
    pair.run();
    auto answer = next<Requester::ReplyReceived>(pair.client);
    ASSERT_TRUE(answer);
    EXPECT_EQ(to_bytes(answer->message.bytes()), reply);
  }
}

}  // namespace
}  // namespace iwarp::rpcrdma::test
