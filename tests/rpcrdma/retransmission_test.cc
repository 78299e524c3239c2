// Calls that outlive their connection, in both directions.
#include "tests/rpcrdma/requester_fixture.h"
#include "tests/rpcrdma/responder_fixture.h"
#include "tests/rpcrdma/rpc_pair.h"

namespace iwarp::rpcrdma::test {
namespace {

using iwarp::test::pattern;

constexpr std::uint32_t kCallback = 0x40000000;

TEST_F(RequesterTest, GivesTheCallsWithoutAReplyAway) {
  COVERS("RFC8167-5.4-1");
  start({.credits = 4, .retransmission = true});
  ASSERT_TRUE(call(null_call(1)).ok());
  (void)received();
  answer(header(1, Proc::kMsg, 4), rpc_reply(1));
  expect_reply(rpc_reply(1));
  now_ += std::chrono::seconds(1);
  // In line, in a Read chunk, with a Write chunk, cancelled, queued.
  const std::vector<Bytes> calls = {getattr_call(2), write_call(3, pattern(60'000)), read_call(4, 60'000), null_call(5),
                                    null_call(6)};
  for (const Bytes& c : calls) ASSERT_TRUE(call(c).ok());
  run();
  EXPECT_TRUE(requester_->cancel(5));
  client_.disconnect();
  EXPECT_TRUE(next<Requester::MustClose>(*requester_));
  const auto outstanding = requester_->take_outstanding();
  ASSERT_EQ(outstanding.size(), 4u);
  for (const std::size_t i : {0, 1, 2, 3}) {
    const Bytes& expected = calls[i < 3 ? i : 4];
    EXPECT_EQ(outstanding[i].message, expected);
    EXPECT_EQ(outstanding[i].xid, rpc_xid(expected));
    EXPECT_EQ(outstanding[i].since, now_);
    EXPECT_EQ(outstanding[i].times_sent, i < 3 ? 1u : 0u);
  }
  EXPECT_TRUE(requester_->take_outstanding().empty());
}

TEST_F(RequesterTest, KeepsNoCopiesUnlessTold) {
  start({.credits = 4});
  ASSERT_TRUE(call(null_call(1)).ok());
  ASSERT_TRUE(call(null_call(2)).ok());
  run();
  client_.disconnect();
  const auto outstanding = requester_->take_outstanding();
  ASSERT_EQ(outstanding.size(), 1u) << "what was never sent";
  EXPECT_EQ(outstanding[0].xid, 2u);
}

TEST_F(RequesterTest, SendsCallsOfAnotherConnectionBeforeItsOwn) {
  COVERS("RFC8166-3.3.3-3");
  start({.credits = 4, .retransmission = true});
  for (const std::uint32_t xid : {7u, 8u}) {
    ASSERT_TRUE(requester_->call_again({xid, xid + 100, now_, 1, null_call(xid)}).ok());
  }
  EXPECT_FALSE(requester_->can_take_call()) << "until the last of them has memory";
  EXPECT_EQ(call(null_call(9)).error().code, Errc::kQueueFull);
  EXPECT_EQ(received().payload, null_call(7));
  EXPECT_TRUE(nothing_received()) << "one, until it is answered";
  answer(header(7, Proc::kMsg, 4), rpc_reply(7));
  const auto reply = next<Requester::ReplyReceived>(*requester_);
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->tag, 107u);
  EXPECT_EQ(received().payload, null_call(8));
  EXPECT_TRUE(requester_->can_take_call());
  EXPECT_EQ(requester_->stats().calls_again, 2u);
  EXPECT_EQ(requester_->stats().calls_in_line, 0u);
  // And once more.
  client_.disconnect();
  const auto outstanding = requester_->take_outstanding();
  ASSERT_EQ(outstanding.size(), 1u);
  EXPECT_EQ(outstanding[0].times_sent, 2u);
  EXPECT_EQ(outstanding[0].tag, 108u);
  EXPECT_EQ(outstanding[0].max_reply, SIZE_MAX);
}

TEST_F(RequesterTest, RefusesToSendAgainWhatIsNoCallOfThatXid) {
  start({.retransmission = true});
  const auto refused = [&](OutstandingCall c) {
    const std::size_t size = c.message.size();
    EXPECT_EQ(requester_->call_again(std::move(c)).error().code, Errc::kInvalidArgument);
    EXPECT_EQ(c.message.size(), size) << "untouched";
  };
  refused({1, 0, now_, 1, {}});
  refused({1, 0, now_, 1, null_call(2)});
  refused({1, 0, now_, 1, rpc_reply(1)});
  ASSERT_TRUE(call(null_call(1)).ok());
  refused({1, 0, now_, 1, null_call(1)});
  client_.disconnect();
  EXPECT_EQ(requester_->call_again({2, 0, now_, 1, null_call(2)}).error().code, Errc::kNotConnected);
}

TEST_F(RequesterTest, WhatIsTooLongForThisConnectionFails) {
  BufferPool::Options small = pool_options(RequesterOptions{});
  small.call_bytes = BufferPool::charged_bytes(4096);
  start({.retransmission = true}, small);
  ASSERT_TRUE(requester_->call_again({1, 5, now_, 1, write_call(1, pattern(60'000))}).ok());
  ASSERT_TRUE(requester_->call_again({2, 6, now_, 1, null_call(2)}).ok());
  const auto failed = next<Requester::CallFailed>(*requester_);
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->why, Requester::Failure::kLocal);
  EXPECT_EQ(failed->tag, 5u);
  EXPECT_EQ(received().payload, null_call(2));
}

TEST_F(RequesterTest, AConnectionThatEndsWithACallInTheWrongVersionLosesNothing) {
  start({.retransmission = true, .highest_version = kVersion2});
  ASSERT_TRUE(call(null_call(1)).ok());
  run();
  server_.inbox.clear();
  answer(make_err_vers(1, kVersion2, 1));
  EXPECT_EQ(received().header.version, kVersion1);
  client_.disconnect();
  const auto outstanding = requester_->take_outstanding();
  ASSERT_EQ(outstanding.size(), 1u);
  EXPECT_EQ(outstanding[0].message, null_call(1));
  EXPECT_EQ(outstanding[0].times_sent, 2u);
}

// What a file server would answer.
Bytes served(const Bytes& call) {
  const auto head = RpcCall::parse(call);
  const std::uint32_t size = load_be<std::uint32_t>(ConstBytes(call).last(4));
  if (head->procedure == 6) return read_reply(head->xid, pattern(size, head->xid));
  return head->procedure == 7 ? write_reply(head->xid) : rpc_reply(head->xid);
}

// Both ends for as long as nothing breaks, at most so many steps of each. The server answers at once.
std::size_t work(Pair& p, std::size_t steps, std::map<std::uint32_t, Bytes>& replies) {
  std::size_t done = 0;
  for (; done < steps; ++done) {
    const bool moved = p.client_end.step();
    if (!p.server_end.step() && !moved) break;
    while (auto call = next<Responder::CallReceived>(p.server)) {
      const Bytes answer = served(to_bytes(call->message.bytes()));
      call->message.reset();
      EXPECT_TRUE(p.server.reply(call->token, to_buffer(p.server_pool, answer)).ok());
    }
    while (auto reply = next<Requester::ReplyReceived>(p.client)) {
      EXPECT_TRUE(replies.emplace(reply->xid, to_bytes(reply->message.bytes())).second) << "a second Reply";
    }
  }
  return done;
}

// The connection breaks after every number of steps that there is.
TEST(Retransmission, EveryCallIsAnsweredOnceWhereverTheConnectionBreaks) {
  COVERS("D2005-8-1");
  COVERS("RFC8166-4.5.5-1");
  COVERS("RFC8166-2.2.3-1");
  COVERS("RFC8167-4.3.1-3");
  const std::vector<Bytes> calls = {null_call(1),    write_call(2, pattern(20'000)), read_call(3, 20'001),
                                    getattr_call(4), write_call(5, pattern(100)),    readdir_call(6)};
  const RequesterOptions options{.credits = 3, .max_reply_bytes = 100'000, .retransmission = true};
  std::size_t breaks = 0;
  for (bool whole = false; !whole; ++breaks) {
    ASSERT_LT(breaks, 1000u);
    SCOPED_TRACE(breaks);
    std::map<std::uint32_t, Bytes> replies;
    std::vector<OutstandingCall> outstanding;
    {
      Pair first(options);
      for (const Bytes& c : calls) {
        ASSERT_TRUE(first.client.call(to_buffer(first.client_pool, c, BufferPool::Purpose::kCall), {}).ok());
      }
      whole = work(first, breaks, replies) < breaks;
      first.client_end.disconnect();
      first.server_end.disconnect();
      outstanding = first.client.take_outstanding();
    }
    EXPECT_EQ(replies.size() + outstanding.size(), calls.size());
    Pair second(options);
    for (OutstandingCall& c : outstanding) ASSERT_TRUE(second.client.call_again(std::move(c)).ok());
    (void)work(second, 10'000, replies);
    ASSERT_EQ(replies.size(), calls.size());
    for (const Bytes& c : calls) EXPECT_EQ(replies[*rpc_xid(c)], served(c));
    EXPECT_TRUE(second.client.idle());
    EXPECT_EQ(second.client_end.exposed(), 0u);
  }
  EXPECT_GT(breaks, 8u);
}

Bytes callback(std::uint32_t xid) {
  return rpc_call(xid, kCallback, 1, 1);
}

TEST_F(ResponderTest, KeepsBackwardCallsForTheNextConnection) {
  COVERS("RFC8167-5.4-1");
  COVERS("RFC8167-5.4-2");
  COVERS("RFC8167-5.4-3");
  COVERS("RFC8167-4.3.2-3");
  COVERS("BIDIR-2.3-1");
  start({.backward_timeout = std::chrono::seconds(10), .backward_retransmission = true});
  for (const std::uint32_t xid : {1u, 2u, 3u}) {
    ASSERT_TRUE(responder_->send_backward_call(to_buffer(*pool_, callback(xid)), now_).ok());
  }
  EXPECT_EQ(received().header.xid, 1u);
  EXPECT_TRUE(responder_->cancel_backward_call(2));
  server_.disconnect();
  EXPECT_TRUE(next<Responder::MustClose>(*responder_));
  auto outstanding = responder_->take_outstanding_backward();
  ASSERT_EQ(outstanding.size(), 2u);
  EXPECT_EQ(outstanding[0].message, callback(1));
  EXPECT_EQ(outstanding[0].times_sent, 1u);
  EXPECT_EQ(outstanding[1].message, callback(3));
  EXPECT_EQ(outstanding[1].times_sent, 0u);
  EXPECT_TRUE(responder_->take_outstanding_backward().empty());
  // The client comes back long after that.
  now_ += std::chrono::hours(1);
  Pair next_connection({}, {.backward_timeout = std::chrono::seconds(10), .backward_retransmission = true});
  Responder& server = next_connection.server;
  const std::uint32_t xid = 9;
  EXPECT_EQ(server.send_backward_again({xid, 0, now_, 1, callback(1)}, now_).error().code, Errc::kInvalidArgument);
  EXPECT_EQ(server.send_backward_again({xid, 0, now_, 1, rpc_reply(xid)}, now_).error().code, Errc::kInvalidArgument);
  for (OutstandingCall& c : outstanding) ASSERT_TRUE(server.send_backward_again(std::move(c), now_).ok());
  EXPECT_EQ(server.send_backward_again({3, 0, now_, 1, callback(3)}, now_).error().code, Errc::kInvalidArgument);
  next_connection.run();
  auto arrived = next<Requester::BackwardCall>(next_connection.client);
  ASSERT_TRUE(arrived);
  EXPECT_EQ(to_bytes(arrived->message.bytes()), callback(1));
  ASSERT_TRUE(
      next_connection.client.reply_backward(arrived->token, to_buffer(next_connection.client_pool, rpc_reply(1))).ok());
  next_connection.run();
  const auto reply = next<Responder::BackwardReply>(server);
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->xid, 1u);
  EXPECT_TRUE(next<Requester::BackwardCall>(next_connection.client));
  // The other one times out, as if it were new.
  EXPECT_EQ(server.deadline(), now_ + std::chrono::seconds(10));
  server.on_deadline(now_ + std::chrono::seconds(10));
  const auto failed = next<Responder::BackwardFailed>(server);
  ASSERT_TRUE(failed);
  EXPECT_TRUE(failed->timed_out);
  next_connection.server_end.disconnect();
  EXPECT_TRUE(server.take_outstanding_backward().empty()) << "nobody waits for it any more";
}

TEST_F(ResponderTest, KeepsNoBackwardCallsUnlessTold) {
  start();
  ASSERT_TRUE(responder_->send_backward_call(to_buffer(*pool_, callback(1)), now_).ok());
  server_.disconnect();
  EXPECT_TRUE(responder_->take_outstanding_backward().empty());
}

// A Responder forgets its Calls with its connection: the same xid is a new Call on the next one.
TEST(Retransmission, AResponderTakesTheXidAnewOnAnotherConnection) {
  COVERS("RFC8166-2.2.2-3");
  Pair first({.retransmission = true});
  ASSERT_TRUE(first.client.call(to_buffer(first.client_pool, null_call(1), BufferPool::Purpose::kCall), {}).ok());
  first.run();
  auto call = next<Responder::CallReceived>(first.server);
  ASSERT_TRUE(call);
  first.client_end.disconnect();
  first.server_end.disconnect();
  Buffer late = to_buffer(first.server_pool, rpc_reply(1));
  EXPECT_EQ(first.server.reply(call->token, std::move(late)).error().code, Errc::kNotConnected);
  EXPECT_TRUE(late) << "untouched";
  auto outstanding = first.client.take_outstanding();
  ASSERT_EQ(outstanding.size(), 1u);
  Pair second({.retransmission = true});
  ASSERT_TRUE(second.client.call_again(std::move(outstanding[0])).ok());
  std::map<std::uint32_t, Bytes> replies;
  (void)work(second, 1000, replies);
  EXPECT_EQ(replies[1], rpc_reply(1));
}

}  // namespace
}  // namespace iwarp::rpcrdma::test
