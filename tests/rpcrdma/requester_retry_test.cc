// Short Reply chunk retry (RFC 8267 s3.1).
#include "tests/rpcrdma/requester_fixture.h"
#include "tests/rpcrdma/rpc_pair.h"
#include "tests/rpcrdma/wire_vectors.h"

namespace iwarp::rpcrdma::test {
namespace {

using iwarp::test::compound_call;
using iwarp::test::pattern;

constexpr std::uint32_t kNfsacl = 100227;

Bytes getacl_call(std::uint32_t xid) {
  return rpc_call(xid, kNfsacl, 3, 1, file_handle() + words({15}));
}
Bytes with_xid(Bytes message, std::uint32_t xid) {
  store_be<std::uint32_t>(message, xid);
  return message;
}
// PUTFH, GETATTR of an ACL; and one more operation.
Bytes acl_compound(std::uint32_t xid, std::uint32_t minor_version, std::initializer_list<std::uint32_t> more = {}) {
  auto out = compound_call(more.size() == 0 ? 2 : 3, minor_version);
  out.w(22).opaque(28).words({9, 1, 1u << 12}).words(more);
  return with_xid(out.bytes(), xid);
}

class RequesterRetry : public RequesterTest {
 protected:
  static std::uint32_t reply_room(const Decoded& d) {
    return d.header.reply_chunk ? static_cast<std::uint32_t>(d.header.reply_chunk->length()) : 0;
  }
  void refuse(const Decoded& d) { answer(make_err_chunk(d.header.xid, kVersion1, 64)); }
  void answer_in_chunk(const Decoded& d, const Bytes& reply) {
    write_remote(d.header.reply_chunk->segments[0], reply);
    Header h = header(d.header.xid, Proc::kNomsg, 64);
    h.reply_chunk = d.header.reply_chunk;
    h.reply_chunk->segments[0].length = static_cast<std::uint32_t>(reply.size());
    answer(h);
  }
};

TEST_F(RequesterRetry, AReplyThatDoesNotFitIsAskedForOnceMoreUnderAnotherXid) {
  COVERS("RFC8267-3.1-2");
  COVERS("RFC8267-3.1-3");
  COVERS("RFC8267-5.2-4");
  COVERS("RFC8267-6.2.1-1");
  start();
  std::uint32_t xid = 7;
  for (const Bytes& message : {getacl_call(7), acl_compound(8, 0)}) {
    ASSERT_TRUE(call(message).ok());
    const Decoded first = received();
    EXPECT_EQ(first.header.xid, xid);
    EXPECT_LT(reply_room(first), 80u * 1024);
    refuse(first);
    EXPECT_FALSE(requester_->poll_event());
    const Decoded second = received();
    EXPECT_NE(second.header.xid, first.header.xid);
    EXPECT_EQ(second.payload, with_xid(message, second.header.xid));
    EXPECT_EQ(reply_room(second), RequesterOptions{}.max_reply_bytes);
    EXPECT_EQ(client_.exposed(), 1u) << "the first chunk is out of reach";
    EXPECT_TRUE(requester_->outstanding_since(xid)) << "a repetition is known as one";
    const Bytes reply = rpc_reply(xid, pattern(200'000));
    answer_in_chunk(second, with_xid(reply, second.header.xid));
    auto got = next<Requester::ReplyReceived>(*requester_);
    ASSERT_TRUE(got);
    EXPECT_EQ(got->xid, xid);
    EXPECT_TRUE(got->larger_chunk);
    EXPECT_EQ(to_bytes(got->message.bytes()), reply);
    EXPECT_FALSE(requester_->outstanding_since(xid));
    ++xid;
  }
  EXPECT_EQ(requester_->stats().calls_larger, 2u);
  EXPECT_EQ(requester_->stats().calls_again, 0u);
  EXPECT_EQ(requester_->stats().failed_calls, 0u);
  EXPECT_EQ(requester_->credits().in_flight(), 0u);
  EXPECT_TRUE(requester_->idle());
}

TEST_F(RequesterRetry, IsNotRepeated) {
  COVERS("RFC8267-3.1-4");
  start();
  ASSERT_TRUE(call(getacl_call(7)).ok());
  refuse(received());
  refuse(received());
  const auto failed = next<Requester::CallFailed>(*requester_);
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->xid, 7u);
  EXPECT_EQ(failed->why, Requester::Failure::kErrChunk);
  EXPECT_TRUE(nothing_received());
  EXPECT_TRUE(requester_->idle());
  EXPECT_EQ(client_.exposed(), 0u);
}

TEST_F(RequesterRetry, NoOtherCallIsSentTwice) {
  COVERS("RFC8267-3.1-5");
  COVERS("RFC8267-4.1-1");
  COVERS("RFC8267-6.4.2-7");
  start();
  for (const Bytes& message :
       {readdir_call(1), read_call(1, 65'536), rpc_call(1, kNfs, 3, 5, file_handle()), rpc_call(1, kNfs, 2, 5),
        getattr_call(1), rpc_call(1, kNfsacl, 3, 2), rpc_call(1, 400'000, 1, 1), acl_compound(1, 1), acl_compound(1, 2),
        acl_compound(1, 0, {28, 4, 0x61626364}),  // and REMOVE
        acl_compound(1, 0, {27})}) {              // and READLINK, which may be as long
    ASSERT_TRUE(call(message).ok());
    refuse(received());
    ASSERT_TRUE(next<Requester::CallFailed>(*requester_));
    EXPECT_TRUE(nothing_received());
  }
  EXPECT_EQ(requester_->stats().calls_larger, 0u);
}

TEST_F(RequesterRetry, ByPolicyTheFirstChunkIsTheLargest) {
  start({.offers = {.guess_replies = false}});
  ASSERT_TRUE(call(getacl_call(7)).ok());
  const Decoded d = received();
  EXPECT_EQ(reply_room(d), RequesterOptions{}.max_reply_bytes);
  refuse(d);
  ASSERT_TRUE(next<Requester::CallFailed>(*requester_));
  EXPECT_TRUE(nothing_received());
}

TEST_F(RequesterRetry, NobodyAsksAgainForWhatIsCancelled) {
  start();
  ASSERT_TRUE(call(getacl_call(7)).ok());
  Decoded d = received();
  EXPECT_TRUE(requester_->cancel(7));
  refuse(d);
  EXPECT_TRUE(nothing_received());
  EXPECT_TRUE(requester_->idle());
  // Under the client's xid, when it goes under another.
  ASSERT_TRUE(call(getacl_call(7)).ok());
  refuse(received());
  d = received();
  EXPECT_FALSE(requester_->cancel(d.header.xid));
  EXPECT_TRUE(requester_->cancel(7));
  answer(header(d.header.xid, Proc::kMsg, 64), rpc_reply(d.header.xid));
  EXPECT_FALSE(requester_->poll_event());
  EXPECT_TRUE(requester_->idle());
}

// An xid that is taken is passed over.
TEST_F(RequesterRetry, TheNewXidIsNobodyElses) {
  start();
  answer(header(1, Proc::kMsg, 64), rpc_reply(1));
  ASSERT_TRUE(call(null_call(99)).ok());
  received();
  answer(header(99, Proc::kMsg, 64), rpc_reply(99));  // more credits than one
  (void)next<Requester::ReplyReceived>(*requester_);
  ASSERT_TRUE(call(null_call(7 ^ 0x80000000u)).ok());
  received();
  ASSERT_TRUE(call(getacl_call(7)).ok());
  refuse(received());
  EXPECT_EQ(received().header.xid, (7 ^ 0x80000000u) - 1);
}

// Between two ends of iwarp.
TEST(RpcPairRetry, BothChunksOfOneCall) {
  Pair pair;
  const Bytes message = getacl_call(5);
  const Bytes longer = words({0, 0, 15}) + pattern(100'000);
  ASSERT_TRUE(pair.client.call(to_buffer(pair.client_pool, message, BufferPool::Purpose::kCall), {}).ok());
  for (int i = 0; i < 2; ++i) {
    pair.run();
    auto call = next<Responder::CallReceived>(pair.server);
    ASSERT_TRUE(call);
    const std::uint32_t xid = *rpc_xid(call->message.bytes());
    EXPECT_EQ(xid == 5, i == 0);
    call->message = {};
    const auto sent = pair.server.reply(call->token, to_buffer(pair.server_pool, rpc_reply(xid, longer)));
    EXPECT_TRUE(sent.ok());
  }
  pair.run();
  auto answer = next<Requester::ReplyReceived>(pair.client);
  ASSERT_TRUE(answer);
  EXPECT_EQ(to_bytes(answer->message.bytes()), rpc_reply(5, longer));
  EXPECT_EQ(pair.client_end.exposed(), 0u);
}

}  // namespace
}  // namespace iwarp::rpcrdma::test
