// Responder: the backward direction (RFC 8167).
#include "tests/rpcrdma/responder_fixture.h"

namespace iwarp::rpcrdma::test {
namespace {

using iwarp::test::pattern;

Bytes callback(std::uint32_t xid, std::size_t extra = 0) {
  return rpc_call(xid, 0x40000000, 1, 1, pattern(extra));
}

TEST_F(ResponderTest, SendsBackwardCallsOneAtATimeUntilTheFirstReply) {
  COVERS("RFC8167-4.1-1");
  COVERS("RFC8167-5.1-2");
  COVERS("RFC8167-5.1-3");
  COVERS("RFC8167-5.1-5");
  COVERS("RFC8166-3.3.3-3");
  COVERS("RFC8167-1-1");
  COVERS("RFC8167-5-1");
  COVERS("RFC8167-5.1-1");
  COVERS("RFC8167-4-1");
  COVERS("BIDIR-1.3.4-2");
  COVERS("BIDIR-2.1.2-1");
  COVERS("BIDIR-2.1.2-2");
  COVERS("BIDIR-2.5-1");
  COVERS("BIDIR-2.5-2");
  COVERS("BIDIR-2.5-3");
  start();
  for (std::uint32_t xid = 1; xid <= 4; ++xid) {
    ASSERT_TRUE(responder_->send_backward_call(to_buffer(*pool_, callback(xid)), now_).ok());
  }
  run();
  ASSERT_EQ(client_.inbox.size(), 1u);
  EXPECT_EQ(load_be<std::uint32_t>(ConstBytes(client_.inbox[0]).subspan(32)), 0u) << "msg_type, a Call";
  Decoded d = received();
  EXPECT_EQ(d.header, header(1, Proc::kMsg, 2));
  EXPECT_EQ(d.payload, callback(1));
  EXPECT_FALSE(last_invalidated_);
  EXPECT_TRUE(client_.inbox.empty());
  send(header(1, Proc::kMsg, 16), rpc_reply(1));  // more is granted than was requested
  const auto reply = next<Responder::BackwardReply>(*responder_);
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->xid, 1u);
  EXPECT_EQ(to_bytes(reply->message.bytes()), rpc_reply(1));
  EXPECT_GE(reply->message.headroom(), kHeadroomBytes);
  EXPECT_EQ(received().header.xid, 2u);
  EXPECT_EQ(received().header.xid, 3u);
  run();
  EXPECT_TRUE(client_.inbox.empty());
}

TEST_F(ResponderTest, KeepsXidsAndCreditsOfTheDirectionsApart) {
  COVERS("RFC8167-2.4-1");
  COVERS("RFC8167-2.4.1-1");
  COVERS("RFC8167-4.1-5");
  COVERS("RFC8167-2.4-4");
  COVERS("RFC8167-2.3-1");
  COVERS("RFC8167-4.1-2");
  COVERS("RFC8167-4.1-4");
  COVERS("BIDIR-1.3.2-1");
  start();
  ASSERT_TRUE(responder_->send_backward_call(to_buffer(*pool_, callback(7)), now_).ok());
  EXPECT_EQ(received().header.xid, 7u);
  send(header(7, Proc::kMsg, 99), getattr_call(7));  // its credits grant us nothing
  const CallToken token = expect_call(getattr_call(7));
  ASSERT_TRUE(responder_->send_backward_call(to_buffer(*pool_, callback(8)), now_).ok());
  run();
  EXPECT_TRUE(client_.inbox.empty());
  send(header(7, Proc::kMsg, 1), rpc_reply(7));
  EXPECT_TRUE(next<Responder::BackwardReply>(*responder_));
  reply(token, rpc_reply(7));
  EXPECT_EQ(received().header.xid, 8u);
  EXPECT_EQ(received().payload, rpc_reply(7));
}

TEST_F(ResponderTest, DropsBackwardRepliesItCannotUse) {
  COVERS("RFC8166-4.5-4");
  start();
  send(header(5), rpc_reply(5));  // nothing outstanding
  ASSERT_TRUE(responder_->send_backward_call(to_buffer(*pool_, callback(7)), now_).ok());
  (void)received();
  send(header(7), rpc_reply(8));  // xids differ
  Header h = header(7);
  h.reply_chunk = WriteChunk{{{Stag{5}, 100, 0}}};
  send(h, rpc_reply(7));  // backward messages have no chunks
  run();
  EXPECT_TRUE(client_.inbox.empty());
  EXPECT_FALSE(responder_->poll_event());
  EXPECT_EQ(responder_->stats().dropped_messages, 3u);
  send(header(7), rpc_reply(7));
  EXPECT_TRUE(next<Responder::BackwardReply>(*responder_));
}

TEST_F(ResponderTest, EndsABackwardCallThatTheClientRefuses) {
  COVERS("RFC8166-4.5-9");
  start();
  ASSERT_TRUE(responder_->send_backward_call(to_buffer(*pool_, callback(7)), now_).ok());
  ASSERT_TRUE(responder_->send_backward_call(to_buffer(*pool_, callback(8)), now_).ok());
  EXPECT_EQ(received().header.xid, 7u);
  send(make_err_chunk(7, 1, 1));
  const auto failed = next<Responder::BackwardFailed>(*responder_);
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->xid, 7u);
  EXPECT_EQ(received().header.xid, 8u);  // its credit came back
}

TEST_F(ResponderTest, RefusesBackwardCallsThatCannotGo) {
  COVERS("RFC8167-5.3-3");
  COVERS("RFC8267-6.5.2-5");
  COVERS("RFC8167-5.1-4");
  COVERS("RFC8167-5.3-2");
  COVERS("RFC8167-2.4-2");
  COVERS("RFC8167-4.2-1");
  COVERS("BIDIR-2.4-1");
  start();
  EXPECT_EQ(responder_->max_backward_bytes(), 4096u - 28);
  Buffer big = to_buffer(*pool_, callback(1, 4096 - 28 - 40 + 1));
  EXPECT_EQ(responder_->send_backward_call(std::move(big), now_).error().code, Errc::kInvalidArgument);
  EXPECT_TRUE(big);
  ASSERT_TRUE(responder_->send_backward_call(to_buffer(*pool_, callback(1, 4096 - 28 - 40)), now_).ok());
  EXPECT_EQ(responder_->send_backward_call(to_buffer(*pool_, callback(1)), now_).error().code, Errc::kInvalidArgument);
  EXPECT_EQ(responder_->send_backward_call(to_buffer(*pool_, rpc_reply(2)), now_).error().code, Errc::kInvalidArgument);
  for (std::uint32_t xid = 2; xid <= 18; ++xid) {
    ASSERT_TRUE(responder_->send_backward_call(to_buffer(*pool_, callback(xid)), now_).ok()) << xid;
  }
  EXPECT_EQ(responder_->send_backward_call(to_buffer(*pool_, callback(19)), now_).error().code, Errc::kQueueFull);
}

TEST_F(ResponderTest, DropsTheReplyToACancelledBackwardCall) {
  start();
  ASSERT_TRUE(responder_->send_backward_call(to_buffer(*pool_, callback(1)), now_).ok());
  ASSERT_TRUE(responder_->send_backward_call(to_buffer(*pool_, callback(2)), now_).ok());
  ASSERT_TRUE(responder_->send_backward_call(to_buffer(*pool_, callback(3)), now_).ok());
  (void)received();
  EXPECT_TRUE(responder_->cancel_backward_call(1));
  EXPECT_FALSE(responder_->cancel_backward_call(1));
  EXPECT_TRUE(responder_->cancel_backward_call(2));
  send(header(1), rpc_reply(1));
  EXPECT_FALSE(responder_->poll_event());
  EXPECT_EQ(responder_->stats().late_backward_replies, 1u);
  EXPECT_EQ(received().header.xid, 3u);  // 2 never left
}

// Sends a backward Call each second, the first at now_.
TEST_F(ResponderTest, GivesUpOnBackwardCallsThatAreNotAnsweredInTime) {
  start({.backward_timeout = std::chrono::seconds(10)});
  EXPECT_FALSE(responder_->deadline());
  const TimePoint first = now_;
  for (std::uint32_t xid = 1; xid <= 3; ++xid, now_ += std::chrono::seconds(1)) {
    ASSERT_TRUE(responder_->send_backward_call(to_buffer(*pool_, callback(xid)), now_).ok());
  }
  (void)received();
  send(header(1, Proc::kMsg, 2), rpc_reply(1));
  EXPECT_TRUE(next<Responder::BackwardReply>(*responder_));
  run();
  EXPECT_EQ(responder_->deadline(), first + std::chrono::seconds(11));  // that of Call 2
  responder_->on_deadline(first + std::chrono::milliseconds(10'999));
  EXPECT_FALSE(responder_->poll_event());
  EXPECT_FALSE(responder_->idle());
  responder_->on_deadline(first + std::chrono::seconds(12));
  for (const std::uint32_t xid : {2u, 3u}) {
    const auto failed = next<Responder::BackwardFailed>(*responder_);
    ASSERT_TRUE(failed);
    EXPECT_EQ(failed->xid, xid);
    EXPECT_TRUE(failed->timed_out);
  }
  EXPECT_FALSE(responder_->poll_event());
  EXPECT_FALSE(responder_->deadline());
  EXPECT_TRUE(responder_->idle());
  EXPECT_EQ(responder_->stats().backward_timeouts, 2u);
  // Their xids stay taken: the client may still answer.
  EXPECT_FALSE(responder_->send_backward_call(to_buffer(*pool_, callback(2)), now_).ok());
  send(header(2, Proc::kMsg, 2), rpc_reply(2));
  send(make_err_chunk(3, 1, 2));
  EXPECT_FALSE(responder_->poll_event());
  EXPECT_EQ(responder_->stats().late_backward_replies, 2u);
  EXPECT_EQ(responder_->stats().dropped_messages, 0u);
  EXPECT_TRUE(responder_->send_backward_call(to_buffer(*pool_, callback(2)), now_).ok());
}

// Before the first Reply there is one credit. A slow client gets its time for each Call, a dead one is given up.
TEST_F(ResponderTest, ClosesWhenUnansweredBackwardCallsHoldAllCredits) {
  COVERS("RFC8166-3.3.1-2");
  start({.backward_timeout = std::chrono::seconds(10)});
  for (std::uint32_t xid = 1; xid <= 3; ++xid, now_ += std::chrono::seconds(6)) {
    ASSERT_TRUE(responder_->send_backward_call(to_buffer(*pool_, callback(xid)), now_).ok());
  }
  (void)received();
  responder_->on_deadline(now_ - std::chrono::seconds(6));  // Call 1 is due, its credit stays with it
  EXPECT_TRUE(next<Responder::BackwardFailed>(*responder_));
  EXPECT_FALSE(responder_->poll_event());
  run();
  EXPECT_TRUE(client_.inbox.empty());
  responder_->on_deadline(*responder_->deadline());
  const auto failed = next<Responder::BackwardFailed>(*responder_);
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->xid, 2u);
  const auto closed = next<Responder::MustClose>(*responder_);
  ASSERT_TRUE(closed);
  EXPECT_EQ(closed->error.code, Errc::kTimeout);
  EXPECT_FALSE(responder_->deadline());
}

TEST_F(ResponderTest, BackwardDirectionCanBeSwitchedOff) {
  start({.credits = 4, .backward_credits = 0});
  EXPECT_EQ(responder_->send_backward_call(to_buffer(*pool_, callback(1)), now_).error().code, Errc::kInvalidArgument);
}

}  // namespace
}  // namespace iwarp::rpcrdma::test
