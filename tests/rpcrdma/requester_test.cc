// Requester against a server that behaves.
#include "tests/rpcrdma/requester_fixture.h"

namespace iwarp::rpcrdma::test {
namespace {

using iwarp::test::pattern;

TEST_F(RequesterTest, SendsShortCallsInLineWithoutChunks) {
  COVERS("D2005-3.1-1");
  COVERS("D2005-4.1-4");
  COVERS("RFC8166-3.3.1-8");
  COVERS("RFC8167-4.3.1-2");
  COVERS("RFC8166-4.3.1-2");
  COVERS("RFC8166-4.3.3-2");
  COVERS("RFC8166-3.5.1-1");
  COVERS("RFC8166-3.2-1");
  COVERS("RFC8166-3.2-2");
  COVERS("RFC8166-3.3.1-1");
  COVERS("RFC8166-4.2.3-1");
  COVERS("RFC8167-4.3-1");
  start();
  EXPECT_EQ(client_.receives.size(), 64u + 16u);
  ASSERT_TRUE(call(getattr_call(1)).ok());
  EXPECT_EQ(client_.receives.size(), 64u + 16u);
  const Decoded d = received();
  EXPECT_EQ(d.header, header(1, Proc::kMsg, 64));
  EXPECT_EQ(d.payload, getattr_call(1));
  EXPECT_EQ(client_.exposed(), 0u);
  answer(header(1, Proc::kMsg, 64), rpc_reply(1));
  expect_reply(rpc_reply(1));
  run();
  EXPECT_TRUE(requester_->idle());
}

TEST_F(RequesterTest, OffersOneReplyChunkWhereTheReplyMayBeLong) {
  COVERS("D2005-5.2-1");
  COVERS("D2005-5.2-4");
  COVERS("RFC8166-4.3.3-1");
  COVERS("RFC8166-6.2-1");
  COVERS("RFC8166-4.4.1-1");
  COVERS("RFC8166-8.1.3-2");
  COVERS("RFC5042-6.2.2-1");
  COVERS("RFC5042-6.3.5-1");
  COVERS("RFC8166-3.5.3-4");
  COVERS("RFC8166-4.3.2-2");
  COVERS("RFC8166-4.3.2.3-1");
  COVERS("RFC8166-4.3.2.3-5");
  COVERS("RFC8166-4.4.1-2");
  COVERS("RFC8267-3-1");
  COVERS("RFC8267-3-2");
  COVERS("RFC8267-6.4.2-1");
  start();
  ASSERT_TRUE(call(readlink_call(1)).ok());
  const Decoded d = received();
  EXPECT_TRUE(d.header.write_list.empty());
  ASSERT_TRUE(d.header.reply_chunk);
  ASSERT_EQ(d.header.reply_chunk->segments.size(), 1u);
  Segment s = d.header.reply_chunk->segments[0];
  EXPECT_EQ(s.length, (1u << 20) + (64u << 10));
  EXPECT_TRUE(client_.regions.at(raw(s.handle)).access == RemoteAccess::kWrite);
  const Bytes long_reply = rpc_reply(1, pattern(300'000));
  write_remote(s, long_reply);
  s.length = static_cast<std::uint32_t>(long_reply.size());
  Header h = header(1, Proc::kNomsg, 64);
  h.reply_chunk = WriteChunk{{s}};
  EXPECT_EQ(client_.exposed(), 1u);
  answer(h);
  EXPECT_EQ(client_.exposed(), 0u);  // fenced before it is delivered
  expect_reply(long_reply, true);
}

TEST_F(RequesterTest, TakesAnInLineReplyAlthoughAReplyChunkWasOffered) {
  COVERS("RFC8166-2.2.2-3");
  COVERS("RFC8166-4.3.3-3");
  start();
  for (const bool echoed : {true, false}) {
    ASSERT_TRUE(call(readdir_call(1)).ok());
    Decoded d = received();
    Header h = header(1, Proc::kMsg, 64);
    if (echoed) {
      h.reply_chunk = d.header.reply_chunk;
      h.reply_chunk->segments[0].length = 0;
    }
    answer(h, rpc_reply(1));
    EXPECT_EQ(client_.exposed(), 0u);
    expect_reply(rpc_reply(1));
  }
}

TEST_F(RequesterTest, SendsLongCallsAsPositionZeroChunk) {
  COVERS("D2005-4-2");
  COVERS("D2005-3.6-3");
  COVERS("D2005-5.1-1");
  COVERS("RFC8166-3.5.3-1");
  COVERS("RFC8166-3.5.3-2");
  COVERS("RFC8166-3.5.3-3");
  COVERS("RFC8166-3.5.3-9");
  COVERS("RFC5042-6.3.2-1");
  COVERS("RFC5042-6.3.3-1");
  COVERS("RFC5042-6.3.4-1");
  COVERS("RFC8166-3.4.5-1");
  COVERS("RFC8267-6.4.2-1");
  start({.offers = {.read_chunks = 0}});
  const Bytes message = write_call(1, pattern(65'537));
  ASSERT_TRUE(call(message).ok());
  const Decoded d = received();
  EXPECT_EQ(d.header.proc, Proc::kNomsg);
  EXPECT_TRUE(d.payload.empty());
  EXPECT_FALSE(d.header.reply_chunk);  // WRITE has a short Reply
  ASSERT_EQ(d.header.read_list.size(), 1u);
  EXPECT_EQ(d.header.read_list[0].position, 0u);
  const Segment s = d.header.read_list[0].target;
  EXPECT_EQ(s.length, message.size());
  EXPECT_TRUE(client_.regions.at(raw(s.handle)).access == RemoteAccess::kRead);
  EXPECT_EQ(client_.regions.at(raw(s.handle)).memory.size(), message.size()) << "the Call, and no octet beside it";
  Buffer sink = *pool_of_server_.acquire(s.length, BufferPool::Purpose::kCall);
  ASSERT_TRUE(server_.post_read(1, sink.slice(), s.handle, s.offset).ok());
  run();
  EXPECT_EQ(to_bytes(sink.bytes()), message);
  answer(header(1, Proc::kMsg, 64), write_reply(1));
  EXPECT_EQ(client_.exposed(), 0u);
  expect_reply(write_reply(1));
}

TEST_F(RequesterTest, KeepsToTheCallThreshold) {
  COVERS("RFC8166-3.3.3-5");
  COVERS("RFC8797-5.1-1");
  COVERS("RFC8166-2.3.2-2");
  COVERS("RFC8166-3.3-1");
  COVERS("RFC8166-3.3.2-2");
  COVERS("RFC8166-3.5.1-1");
  start({.offers = {.read_chunks = 0}}, std::nullopt, PrivateData{});
  const std::size_t overhead = write_call(1, {}).size() + 28;
  ASSERT_TRUE(call(write_call(1, Bytes(1024 - overhead))).ok());
  EXPECT_EQ(received().header.proc, Proc::kMsg);
  answer(header(1, Proc::kMsg, 64), write_reply(1));
  ASSERT_TRUE(call(write_call(2, Bytes(1024 - overhead + 4))).ok());
  EXPECT_EQ(received().header.proc, Proc::kNomsg);
}

TEST_F(RequesterTest, SendsOneCallUntilTheFirstReplyThenWhatIsGranted) {
  COVERS("D2005-4.1-5");
  COVERS("RFC8166-3.3.3-2");
  COVERS("RFC8166-3.3.3-3");
  COVERS("RFC8166-3.3.1-2");
  COVERS("RFC8166-3.3.1-5");
  COVERS("RFC8166-3.3.1-6");
  COVERS("RFC8166-3.3-1");
  COVERS("RFC8166-8.1.4-3");
  COVERS("RFC8167-4-1");
  start({.credits = 4});
  for (std::uint32_t xid = 1; xid <= 10; ++xid) ASSERT_TRUE(call(getattr_call(xid)).ok());
  EXPECT_EQ(received().header.xid, 1u);
  EXPECT_TRUE(nothing_received());
  answer(header(1, Proc::kMsg, 100), rpc_reply(1));  // more than requested
  for (std::uint32_t xid = 2; xid <= 5; ++xid) EXPECT_EQ(received().header.xid, xid);
  EXPECT_TRUE(nothing_received());
  answer(header(4, Proc::kMsg, 2), rpc_reply(4));  // lowered: 3 in flight, 2 allowed
  answer(header(2, Proc::kMsg, 2), rpc_reply(2));
  EXPECT_TRUE(nothing_received());
  answer(header(3, Proc::kMsg, 0), rpc_reply(3));  // 0 breaks the rules: taken as 1
  EXPECT_TRUE(nothing_received());
  answer(header(5, Proc::kMsg, 2), rpc_reply(5));
  EXPECT_EQ(received().header.xid, 6u);
  EXPECT_EQ(received().header.xid, 7u);
  EXPECT_TRUE(nothing_received());
}

TEST_F(RequesterTest, TellsWhenACallHasLeft) {
  start({.credits = 4});
  const auto tell = [&](const Bytes& message) {
    Buffer b = to_buffer(*pool_, message, BufferPool::Purpose::kCall);
    ASSERT_TRUE(requester_->call(std::move(b), now_, 7, SIZE_MAX, true).ok());
  };
  const auto left = [&]() -> std::optional<std::uint32_t> {
    const auto event = requester_->poll_event();
    if (!event) return std::nullopt;
    const auto* l = std::get_if<Requester::CallLeft>(&*event);
    EXPECT_TRUE(l != nullptr && l->tag == 7u);
    return l != nullptr ? std::optional(l->xid) : std::nullopt;
  };
  tell(getattr_call(1));
  tell(getattr_call(2));  // waits for a credit
  EXPECT_FALSE(left()) << "its Send has not completed";
  run();
  EXPECT_EQ(left(), 1u);
  EXPECT_FALSE(left()) << "once, and none of Call 2";
  answer(header(1, Proc::kMsg, 4), rpc_reply(1));
  expect_reply(rpc_reply(1));
  EXPECT_FALSE(left());
  run();
  EXPECT_EQ(left(), 2u);

  ASSERT_TRUE(call(getattr_call(3)).ok());  // not asked for
  tell(write_call(4, pattern(9000)));       // the server reads it
  tell(getattr_call(5));
  ASSERT_TRUE(requester_->cancel(5));  // nobody wants to hear of it
  run();
  EXPECT_FALSE(left());
  for (int i = 0; i < 4; ++i) (void)received();
  answer(header(2, Proc::kMsg, 4), rpc_reply(2));
  expect_reply(rpc_reply(2));
  answer(header(4, Proc::kMsg, 4), write_reply(4));
  expect_reply(write_reply(4));
  EXPECT_FALSE(left());

  tell(getattr_call(6));  // as its Reply comes before the completion is told, that tells it
  answer(header(6, Proc::kMsg, 4), rpc_reply(6));
  expect_reply(rpc_reply(6));
  tell(getattr_call(6));  // another one of that xid, behind it
  client_.step();
  EXPECT_FALSE(left()) << "that was the first";
  run();
  EXPECT_EQ(left(), 6u);
}

TEST_F(RequesterTest, BoundsItsQueue) {
  start({.max_queued_calls = 3});
  for (std::uint32_t xid = 1; xid <= 4; ++xid) ASSERT_TRUE(call(getattr_call(xid)).ok());
  EXPECT_FALSE(requester_->can_take_call());
  Buffer b = to_buffer(*pool_, getattr_call(5));
  EXPECT_EQ(requester_->call(std::move(b), now_).error().code, Errc::kQueueFull);
  EXPECT_TRUE(b);
  (void)received();
  answer(header(1, Proc::kMsg, 64), rpc_reply(1));
  EXPECT_TRUE(requester_->can_take_call());
}

TEST_F(RequesterTest, ExposesMemoryForOneCallOnlyAndUnderFreshHandles) {
  COVERS("D2005-7-1");
  COVERS("RFC8166-3.4.5-6");
  COVERS("RFC8166-8.1.2-1");
  COVERS("RFC8166-8.1.3-1");
  COVERS("RFC8166-8.1-1");
  start();
  ASSERT_TRUE(call(write_call(1, pattern(9000))).ok());
  ASSERT_TRUE(call(write_call(2, pattern(9000))).ok());  // waits for a credit
  EXPECT_EQ(client_.exposed(), 1u);
  const Stag first = received().header.read_list[0].target.handle;
  answer(header(1, Proc::kMsg, 64), write_reply(1));
  EXPECT_NE(received().header.read_list[0].target.handle, first);
  EXPECT_EQ(client_.exposed(), 1u);
}

TEST_F(RequesterTest, TakesTheHandleThatTheServerInvalidated) {
  COVERS("RFC8797-4.1-1");
  COVERS("RFC8797-3.2-4");
  start();
  ASSERT_TRUE(call(readdir_call(1)).ok());
  const Stag handle = received().header.reply_chunk->segments[0].handle;
  EXPECT_TRUE(client_.regions.at(raw(handle)).remote_invalidation);
  client_.regions.erase(raw(handle));
  answer(header(1, Proc::kMsg, 64), rpc_reply(1), handle);
  expect_reply(rpc_reply(1));
}

TEST_F(RequesterTest, GrantsBackwardCreditsInBackwardReplies) {
  COVERS("RFC8167-4.1-3");
  COVERS("RFC8167-5.2-3");
  COVERS("RFC8167-4.1-1");
  COVERS("RFC8167-1-1");
  COVERS("RFC8167-5-1");
  COVERS("RFC8167-2.4-3");
  COVERS("BIDIR-2.1.2-1");
  COVERS("BIDIR-2.6-1");
  COVERS("BIDIR-2.6-2");
  COVERS("BIDIR-2.6-3");
  start();
  answer(header(7, Proc::kMsg, 99), rpc_call(7, 0x40000000, 1, 0));
  EXPECT_EQ(requester_->credits().granted(), 1u);  // the server's request is no grant
  const auto arrived = next<Requester::BackwardCall>(*requester_);
  ASSERT_TRUE(arrived);
  ASSERT_TRUE(requester_->reply_backward(arrived->token, to_buffer(*pool_, rpc_reply(7))).ok());
  const Decoded d = received();
  EXPECT_EQ(d.header, header(7, Proc::kMsg, 16));
  EXPECT_EQ(d.payload, rpc_reply(7));
}

TEST_F(RequesterTest, SendsNothingWithoutAReceiveForTheReply) {
  COVERS("RFC8166-3.3.1-8");
  // Memory for the 3 Receives, and for headers, which are smaller, but for no further Receive.
  const RequesterOptions options{.credits = 2, .backward_credits = 1, .inline_bytes = 8192};
  auto memory = pool_options(options);
  memory.control_bytes = 3 * BufferPool::charged_bytes(8192) + 8 * 4096;
  start(options, memory, {false, 8192, 8192});
  ASSERT_TRUE(call(getattr_call(1)).ok());
  (void)received();
  answer(header(1, Proc::kMsg, 64), rpc_reply(1));
  auto reply = next<Requester::ReplyReceived>(*requester_);  // holds the buffer of a Receive
  ASSERT_TRUE(reply);
  EXPECT_EQ(client_.receives.size(), 2u);
  ASSERT_TRUE(call(getattr_call(2)).ok());
  EXPECT_TRUE(nothing_received());
  reply->message.reset();
  requester_->progress();
  EXPECT_EQ(received().header.xid, 2u);
  EXPECT_EQ(client_.receives.size(), 3u);
}

}  // namespace
}  // namespace iwarp::rpcrdma::test
