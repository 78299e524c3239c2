// Chunks in the backward direction (RFC 8167 s5.3), where both ends have them, and where one has not.
#include "tests/rpcrdma/requester_fixture.h"
#include "tests/rpcrdma/responder_fixture.h"
#include "tests/rpcrdma/rpc_pair.h"

namespace iwarp::rpcrdma::test {
namespace {

using iwarp::test::pattern;

const RequesterOptions kTakes{.backward_chunks = true};
const ResponderOptions kSends{.backward_chunks = true};

Bytes callback(std::uint32_t xid, std::size_t octets) {
  return rpc_call(xid, 0x40000000, 1, 1, pattern(octets, xid));
}
Bytes answer_of(std::uint32_t xid, std::size_t octets) {
  return rpc_reply(xid, pattern(octets, xid + 1));
}

TEST(BackwardChunks, CarryCallsAndRepliesOfEverySize) {
  COVERS("RFC8167-5.3-1");
  COVERS("RFC8167-5.1-4");
  COVERS("RFC8167-5.2-4");
  Pair p(kTakes, kSends);
  std::uint32_t xid = 0;
  for (const std::size_t call_bytes : {0, 1000, 3984, 4008, 4012, 4096, 65'000}) {
    for (const std::size_t reply_bytes : {0, 3000, 4024, 4028, 4048, 4072, 65'000}) {
      SCOPED_TRACE(std::to_string(call_bytes) + ' ' + std::to_string(reply_bytes));
      ++xid;
      ASSERT_TRUE(p.server.send_backward_call(to_buffer(p.server_pool, callback(xid, call_bytes)), {}).ok());
      p.run();
      auto arrived = next<Requester::BackwardCall>(p.client);
      ASSERT_TRUE(arrived);
      EXPECT_EQ(to_bytes(arrived->message.bytes()), callback(xid, call_bytes));
      EXPECT_GE(arrived->message.headroom(), kHeadroomBytes);
      EXPECT_GE(p.server_end.exposed(), 1u) << "the Reply chunk";
      arrived->message.reset();
      const Bytes answer = answer_of(xid, reply_bytes);
      ASSERT_TRUE(p.client.reply_backward(arrived->token, to_buffer(p.client_pool, answer)).ok());
      p.run();
      auto reply = next<Responder::BackwardReply>(p.server);
      ASSERT_TRUE(reply);
      EXPECT_EQ(reply->xid, xid);
      EXPECT_EQ(to_bytes(reply->message.bytes()), answer);
      EXPECT_GE(reply->message.headroom(), kHeadroomBytes);
      EXPECT_EQ(p.server_end.exposed(), 0u);
      EXPECT_EQ(p.client_end.exposed(), 0u);
    }
  }
  EXPECT_TRUE(p.client.idle());
  EXPECT_TRUE(p.server.idle());
  EXPECT_GT(p.client.stats().backward_calls_by_read, 20u);
}

TEST(BackwardChunks, NoneAreSentOrTakenUnlessTold) {
  COVERS("RFC8167-5.3-4");
  COVERS("BIDIR-1.3.3-1");
  Pair silent(kTakes, {});
  EXPECT_EQ(silent.server.send_backward_call(to_buffer(silent.server_pool, callback(1, 8000)), {}).error().code,
            Errc::kInvalidArgument);
  Pair refusing({}, kSends);
  for (const std::size_t octets : {100, 8000}) {  // the Reply chunk alone is too much for it
    ASSERT_TRUE(refusing.server.send_backward_call(to_buffer(refusing.server_pool, callback(1, octets)), {}).ok());
    refusing.run();
    const auto failed = next<Responder::BackwardFailed>(refusing.server);
    ASSERT_TRUE(failed);
    EXPECT_FALSE(failed->timed_out);
    EXPECT_EQ(refusing.server_end.exposed(), 0u);
  }
  EXPECT_FALSE(refusing.client.poll_event());
  EXPECT_EQ(refusing.client.stats().err_chunk_sent, 2u);
}

TEST(BackwardChunks, ThereAreNoneInVersion2) {
  COVERS("V2-4.2-17");
  RequesterOptions c = kTakes;
  ResponderOptions s = kSends;
  c.highest_version = s.highest_version = kVersion2;
  Pair p(c, s);
  ASSERT_TRUE(p.client.call(to_buffer(p.client_pool, null_call(1), BufferPool::Purpose::kCall), {}).ok());
  p.run();
  auto call = next<Responder::CallReceived>(p.server);
  ASSERT_TRUE(call);
  ASSERT_TRUE(p.server.reply(call->token, to_buffer(p.server_pool, rpc_reply(1))).ok());
  p.run();
  EXPECT_EQ(p.server.send_backward_call(to_buffer(p.server_pool, callback(1, 8000)), {}).error().code,
            Errc::kInvalidArgument);
  ASSERT_TRUE(p.server.send_backward_call(to_buffer(p.server_pool, callback(1, 100)), {}).ok());
  EXPECT_EQ(p.server_end.exposed(), 0u);
  Header h = header(5);
  h.version = kVersion2;
  h.reply_chunk = WriteChunk{{{Stag{5}, 100, 0}}};
  p.client_end.receive(encode(h, callback(5, 0)));
  EXPECT_EQ(p.client.stats().err_chunk_sent, 1u);
}

TEST(BackwardChunks, AReplyThatFitsNowhereIsRefused) {
  ResponderOptions s = kSends;
  s.max_backward_reply_bytes = 10'000;
  Pair p(kTakes, s);
  ASSERT_TRUE(p.server.send_backward_call(to_buffer(p.server_pool, callback(1, 0)), {}).ok());
  p.run();
  auto arrived = next<Requester::BackwardCall>(p.client);
  ASSERT_TRUE(arrived);
  Buffer long_one = to_buffer(p.client_pool, answer_of(1, 10'000));
  EXPECT_EQ(p.client.reply_backward(arrived->token, std::move(long_one)).error().code, Errc::kInvalidArgument);
  EXPECT_TRUE(long_one) << "untouched";
  ASSERT_TRUE(p.client.reply_backward(arrived->token, to_buffer(p.client_pool, answer_of(1, 9000))).ok());
  p.run();
  EXPECT_TRUE(next<Responder::BackwardReply>(p.server));
}

// A server played by the test.
TEST_F(RequesterTest, RefusesBackwardCallsWhoseChunksMakeNoSense) {
  COVERS("RFC8167-5.3-1");
  COVERS("RFC8167-5.1-4");
  start(kTakes);
  const auto expect_err_chunk = [&](const Header& h, const Bytes& payload = {}) {
    answer(h, payload);
    const Decoded d = received();
    EXPECT_EQ(d.header.proc, Proc::kError);
    EXPECT_EQ(d.header.error.code, HeaderError::kChunk);
    EXPECT_EQ(d.header.xid, h.xid);
    EXPECT_FALSE(requester_->poll_event());
  };
  Exposed memory(server_, callback(9, 100), RemoteAccess::kRead);
  Header h = header(1, Proc::kNomsg);
  h.read_list = {{0, memory.segment()}};
  expect_err_chunk(h);  // the Call inside has another xid
  h.read_list = {{0, {Stag{5}, 1 << 20, 0}}};
  expect_err_chunk(h);  // longer than allowed
  h.read_list = {{4, memory.segment()}};
  expect_err_chunk(h);  // the payload is nowhere
  Header in_two_places = header(1);
  in_two_places.read_list = {{0, memory.segment()}};
  expect_err_chunk(in_two_places, callback(1, 0));
  Header not_eligible = header(1);
  not_eligible.read_list = {{40, memory.segment(0, 100)}};
  expect_err_chunk(not_eligible, callback(1, 0));
  // A Position behind the message.
  Header elsewhere = header(1);
  elsewhere.read_list = {{4000, memory.segment(0, 100)}};
  answer(elsewhere, callback(1, 0));
  const auto reply = RpcReply::parse(received().payload);
  ASSERT_TRUE(reply.ok());
  EXPECT_EQ(reply->accept_stat, AcceptStat::kGarbageArgs);
  EXPECT_TRUE(requester_->idle());
  // All its backward credits are there.
  for (std::uint32_t xid = 1; xid <= 16; ++xid) {
    answer(header(xid), callback(xid, 0));
    EXPECT_TRUE(next<Requester::BackwardCall>(*requester_)) << xid;
  }
}

TEST_F(RequesterTest, RefusesBackwardReadChunksWithoutAnOrd) {
  client_.limits_now.max_outstanding_reads = 0;
  start(kTakes);
  Header h = header(1, Proc::kNomsg);
  h.read_list = {{0, {Stag{5}, 100, 0}}};
  answer(h);
  EXPECT_EQ(received().header.proc, Proc::kError);
}

// Backward Calls do not wait for the memory that forward Calls hold.
TEST_F(RequesterTest, PullsBackwardCallsWhileForwardCallsHoldAllMemory) {
  RequesterOptions options = kTakes;
  auto memory = pool_options(options);
  memory.call_bytes = BufferPool::charged_bytes(60'000);
  start(options, memory);
  ASSERT_TRUE(call(write_call(1, pattern(60'000))).ok());
  (void)received();
  Exposed source(server_, callback(7, 20'000), RemoteAccess::kRead);
  Header h = header(7, Proc::kNomsg);
  h.read_list = {{0, source.segment()}};
  answer(h);
  run();
  const auto arrived = next<Requester::BackwardCall>(*requester_);
  ASSERT_TRUE(arrived);
  EXPECT_EQ(to_bytes(arrived->message.bytes()), callback(7, 20'000));
}

// A client played by the test.
class BackwardReplies : public ResponderTest {
 protected:
  Decoded ask(std::uint32_t xid) {
    EXPECT_TRUE(responder_->send_backward_call(to_buffer(*pool_, callback(xid, 0)), now_).ok());
    return received();
  }
  static Header filled(const Decoded& call, std::uint32_t length, Proc proc = Proc::kNomsg) {
    Header h = header(call.header.xid, proc, 2);
    h.reply_chunk = call.header.reply_chunk;
    h.reply_chunk->segments[0].length = length;
    return h;
  }
};

TEST_F(BackwardReplies, WithOtherChunksAreDropped) {
  start(kSends);
  const Decoded call = ask(1);
  ASSERT_TRUE(call.header.reply_chunk);
  const std::uint32_t room = call.header.reply_chunk->segments[0].length;
  EXPECT_EQ(room, kSends.max_backward_reply_bytes);
  Header other = filled(call, 24);
  other.reply_chunk->segments[0].handle = Stag{77};
  Header moved = filled(call, 24);
  ++moved.reply_chunk->segments[0].offset;
  Header more = filled(call, 24);
  more.reply_chunk->segments.push_back(more.reply_chunk->segments[0]);
  Header in_write_list = filled(call, 24);
  in_write_list.write_list.push_back(*call.header.reply_chunk);
  std::size_t dropped = 0;
  for (const Header& h : {other, moved, more, in_write_list, filled(call, room + 1)}) {
    send(h);
    EXPECT_EQ(responder_->stats().dropped_messages, ++dropped);
    EXPECT_FALSE(responder_->poll_event());
    EXPECT_EQ(server_.exposed(), 1u);
  }
  send(filled(call, 24, Proc::kMsg), rpc_reply(1));  // in line, with the chunk filled
  EXPECT_EQ(responder_->stats().dropped_messages, ++dropped);
  send(filled(call, 0, Proc::kMsg), rpc_reply(1));
  EXPECT_TRUE(next<Responder::BackwardReply>(*responder_));
  EXPECT_EQ(server_.exposed(), 0u);
  run();
  EXPECT_TRUE(client_.inbox.empty());
}

TEST_F(BackwardReplies, OfAnotherXidInsideEndTheCall) {
  start(kSends);
  const Decoded call = ask(1);
  send(filled(call, 24));  // nothing was written
  const auto failed = next<Responder::BackwardFailed>(*responder_);
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->xid, 1u);
  EXPECT_EQ(server_.exposed(), 0u);
}

TEST_F(BackwardReplies, ThatAreLateFindTheirMemory) {
  start(kSends);
  const Decoded call = ask(1);
  now_ += std::chrono::minutes(2);
  responder_->on_deadline(now_);
  EXPECT_TRUE(next<Responder::BackwardFailed>(*responder_));
  EXPECT_EQ(server_.exposed(), 1u) << "the client may still write";
  send(filled(call, 24));
  EXPECT_EQ(responder_->stats().late_backward_replies, 1u);
  EXPECT_EQ(server_.exposed(), 0u);
}

TEST_F(BackwardReplies, AreNotAskedForWithoutMemory) {
  ResponderOptions options = kSends;
  auto memory = pool_options(options);
  memory.backward_bytes = BufferPool::charged_bytes(64u << 10) + 2 * BufferPool::charged_bytes(100);
  options.backward_credits = 2;
  start(options, memory);
  const Decoded first = ask(1);
  send(filled(first, 0, Proc::kMsg), rpc_reply(1));
  EXPECT_TRUE(next<Responder::BackwardReply>(*responder_));
  (void)ask(2);
  ASSERT_TRUE(responder_->send_backward_call(to_buffer(*pool_, callback(3, 0)), now_).ok());
  run();
  EXPECT_TRUE(client_.inbox.empty()) << "there is one Reply chunk";
  send(make_err_chunk(2, 1, 2));
  EXPECT_TRUE(next<Responder::BackwardFailed>(*responder_));
  EXPECT_EQ(received().header.xid, 3u);
  // And none that could not be exposed.
  server_.registrations_to_refuse = 1;
  send(make_err_chunk(3, 1, 2));
  EXPECT_TRUE(next<Responder::BackwardFailed>(*responder_));
  ASSERT_TRUE(responder_->send_backward_call(to_buffer(*pool_, callback(4, 0)), now_).ok());
  const auto failed = next<Responder::BackwardFailed>(*responder_);
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->xid, 4u);
  EXPECT_EQ(ask(5).header.xid, 5u);
  send(make_err_chunk(5, 1, 2));
}

// One chunk cannot be exposed, nor the other be fenced.
TEST_F(BackwardReplies, ACallOfAConnectionThatMustCloseHasNotFailed) {
  ResponderOptions options = kSends;
  options.backward_retransmission = true;
  start(options);
  server_.refuse_registration_number = 2;
  server_.refuse_invalidation = true;
  ASSERT_TRUE(responder_->send_backward_call(to_buffer(*pool_, callback(1, 50'000)), now_).ok());
  EXPECT_TRUE(next<Responder::MustClose>(*responder_));
  EXPECT_FALSE(responder_->poll_event());
  EXPECT_EQ(responder_->take_outstanding_backward().size(), 1u);
  std::erase_if(server_.regions, [](const auto& r) { return r.second.access.has_value(); });  // as closing it does
}

TEST_F(BackwardReplies, NeedAPoolThatHoldsThem) {
  ResponderOptions options = kSends;
  auto memory = pool_options(options);
  memory.backward_bytes = 4096;
  FakeEndpoint::join(server_, client_);
  BufferPool pool(server_, memory);
  Responder responder(server_, pool, {}, options);
  EXPECT_EQ(responder.start().error().code, Errc::kInvalidArgument);
}

TEST(BackwardChunks, LongCallsOutliveTheirConnection) {
  COVERS("RFC8167-5.4-1");
  ResponderOptions s = kSends;
  s.backward_retransmission = true;
  Pair first(kTakes, s);
  ASSERT_TRUE(first.server.send_backward_call(to_buffer(first.server_pool, callback(1, 50'000)), {}).ok());
  first.server_end.disconnect();
  auto outstanding = first.server.take_outstanding_backward();
  ASSERT_EQ(outstanding.size(), 1u);
  EXPECT_EQ(outstanding[0].message, callback(1, 50'000));
  Pair second(kTakes, s);
  ASSERT_TRUE(second.server.send_backward_again(std::move(outstanding[0]), {}).ok());
  second.run();
  const auto arrived = next<Requester::BackwardCall>(second.client);
  ASSERT_TRUE(arrived);
  EXPECT_EQ(to_bytes(arrived->message.bytes()), callback(1, 50'000));
}

}  // namespace
}  // namespace iwarp::rpcrdma::test
