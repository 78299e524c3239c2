// Credits that change while a connection is in use.
#include <random>

#include "tests/rpcrdma/requester_fixture.h"
#include "tests/rpcrdma/responder_fixture.h"
#include "tests/rpcrdma/rpc_pair.h"

namespace iwarp::rpcrdma::test {
namespace {

// What a NULL Call and its Reply are told of credits.
std::uint32_t granted(const Decoded& d) {
  return d.header.credits;
}

TEST_F(ResponderTest, GrantsMoreOnceTheirReceivesArePosted) {
  COVERS("RFC8166-3.3.1-6");
  COVERS("RFC8166-3.3.1-7");
  start({.credits = 4}, pool_options(ResponderOptions{.credits = 8}));
  EXPECT_EQ(server_.receives.size(), 6u);
  ASSERT_TRUE(responder_->set_credits(8).ok());
  EXPECT_EQ(server_.receives.size(), 10u);
  send(header(1), null_call(1));
  reply(expect_call(null_call(1)), rpc_reply(1));
  EXPECT_EQ(granted(received()), 8u);
  // Eight at a time.
  for (std::uint32_t xid = 1; xid <= 8; ++xid) send(header(xid), null_call(xid));
  for (std::uint32_t xid = 1; xid <= 8; ++xid) reply(expect_call(null_call(xid)), rpc_reply(xid));
}

TEST_F(ResponderTest, GrantsNoMoreThanThereIsRoomFor) {
  server_.limits_now.receive_queue_depth = 20;
  start({.credits = 4});
  EXPECT_EQ(responder_->set_credits(19).error().code, Errc::kInvalidArgument);
  auto control = pool_->budget_bytes(BufferPool::Purpose::kControl) / 4096;
  std::vector<Buffer> others;
  while (control-- > 6 + 4) others.push_back(*pool_->acquire(4096, BufferPool::Purpose::kControl));
  EXPECT_EQ(responder_->set_credits(18).error().code, Errc::kResource);
  send(header(1), null_call(1));
  reply(expect_call(null_call(1)), rpc_reply(1));
  EXPECT_EQ(granted(received()), 4u);
  server_.disconnect();
  EXPECT_EQ(responder_->set_credits(5).error().code, Errc::kNotConnected);
}

TEST_F(ResponderTest, KeepsTheReceivesOfCallsThatMayBeUnderWay) {
  COVERS("RFC8166-3.3.1-6");
  start({.credits = 4, .backward_credits = 0});
  send(header(1), null_call(1));
  reply(expect_call(null_call(1)), rpc_reply(1));
  EXPECT_EQ(granted(received()), 4u);
  ASSERT_TRUE(responder_->set_credits(0).ok());  // taken as 1
  EXPECT_EQ(server_.receives.size(), 4u);
  // The client has not heard of it.
  std::vector<CallToken> tokens;
  for (std::uint32_t xid = 2; xid <= 5; ++xid) {
    send(header(xid), null_call(xid));
    EXPECT_EQ(server_.receives.size(), 4u);
    tokens.push_back(expect_call(null_call(xid)));
  }
  for (std::uint32_t xid = 2; xid <= 5; ++xid) {
    reply(tokens[xid - 2], rpc_reply(xid));
    EXPECT_EQ(granted(received()), 1u);
  }
  for (std::uint32_t xid = 6; xid <= 12; ++xid) {
    send(header(xid), null_call(xid));
    reply(expect_call(null_call(xid)), rpc_reply(xid));
    EXPECT_EQ(granted(received()), 1u);
  }
  EXPECT_EQ(server_.receives.size(), 1u);
  send(header(13), null_call(13));
  EXPECT_TRUE(next_call());
  send(header(14), null_call(14));
  EXPECT_TRUE(next<Responder::MustClose>(*responder_)) << "more than one now breaks the rule";
}

TEST_F(RequesterTest, RequestsOtherCreditsAndKeepsToThem) {
  COVERS("RFC8166-3.3.1-5");
  COVERS("RFC8166-3.3.1-6");
  COVERS("RFC8166-3.3.1-8");
  client_.limits_now.receive_queue_depth = 40;
  start({.credits = 2, .backward_credits = 4}, pool_options(RequesterOptions{.credits = 6, .backward_credits = 4}));
  EXPECT_EQ(requester_->set_credits(37).error().code, Errc::kInvalidArgument);
  ASSERT_TRUE(call(null_call(1)).ok());
  EXPECT_EQ(granted(received()), 2u);
  answer(header(1, Proc::kMsg, 64), rpc_reply(1));
  expect_reply(rpc_reply(1));
  ASSERT_TRUE(requester_->set_credits(6).ok());
  EXPECT_EQ(client_.receives.size(), 10u);
  for (std::uint32_t xid = 2; xid <= 9; ++xid) ASSERT_TRUE(call(null_call(xid)).ok());
  for (std::uint32_t xid = 2; xid <= 7; ++xid) EXPECT_EQ(granted(received()), 6u);
  EXPECT_TRUE(nothing_received());
  ASSERT_TRUE(requester_->set_credits(1).ok());
  for (std::uint32_t xid = 2; xid <= 6; ++xid) {
    answer(header(xid, Proc::kMsg, 64), rpc_reply(xid));
    expect_reply(rpc_reply(xid));
    EXPECT_TRUE(nothing_received()) << xid;
    EXPECT_GE(client_.receives.size(), requester_->credits().in_flight() + 4);
  }
  answer(header(7, Proc::kMsg, 64), rpc_reply(7));
  EXPECT_EQ(granted(received()), 1u);
  EXPECT_TRUE(nothing_received());
  client_.disconnect();
  EXPECT_EQ(requester_->set_credits(3).error().code, Errc::kNotConnected);
}

TEST_F(RequesterTest, RequestsNoMoreCreditsThanItHasMemoryFor) {
  start({.credits = 2, .backward_credits = 4});
  auto control = pool_->budget_bytes(BufferPool::Purpose::kControl) / 4096;
  std::vector<Buffer> others;
  while (control-- > 6 + 4) others.push_back(*pool_->acquire(4096, BufferPool::Purpose::kControl));
  EXPECT_EQ(requester_->set_credits(30).error().code, Errc::kResource);
  ASSERT_TRUE(call(null_call(1)).ok());
  EXPECT_EQ(granted(received()), 2u);
}

// Whatever both ends wish, and whenever: no message finds no Receive.
TEST(Credits, MayMoveAtAnyTimeOnBothEnds) {
  COVERS("RFC8166-3.3.1-4");
  for (unsigned seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 rng(seed);
    const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(rng() % n); };
    Pair p({.credits = 16, .backward_credits = 2}, {.credits = 16, .backward_credits = 2});
    std::uint32_t asked = 0, answered = 0;
    std::vector<CallToken> open;
    std::vector<std::uint32_t> xids;
    for (int round = 0; round < 3000; ++round) {
      if (below(40) == 0) {
        ASSERT_TRUE(p.client.set_credits(1 + below(16)).ok());
      }
      if (below(40) == 0) {
        ASSERT_TRUE(p.server.set_credits(1 + below(16)).ok());
      }
      if (below(2) == 0 && p.client.can_take_call()) {
        const Bytes call = null_call(++asked);
        ASSERT_TRUE(p.client.call(to_buffer(p.client_pool, call, BufferPool::Purpose::kCall), {}).ok());
      }
      if (below(3) != 0) p.client_end.step();
      if (below(3) != 0) p.server_end.step();
      ASSERT_FALSE(p.client_end.broken || p.server_end.broken);
      while (auto call = next<Responder::CallReceived>(p.server)) {
        open.push_back(call->token);
        xids.push_back(call->xid);
      }
      if (!open.empty() && below(2) == 0) {
        ASSERT_TRUE(p.server.reply(open.back(), to_buffer(p.server_pool, rpc_reply(xids.back()))).ok());
        open.pop_back();
        xids.pop_back();
      }
      while (next<Requester::ReplyReceived>(p.client)) ++answered;
    }
    EXPECT_GT(answered, 300u);
  }
}

}  // namespace
}  // namespace iwarp::rpcrdma::test
