// The draft of 2005 at the ends of the gateway's sessions, and what a connection has of its options.
#include <gtest/gtest.h>

#include "iwarp/rpcrdma/rpc_message.h"
#include "tests/gateway/chained.h"

namespace iwarp::gateway::test {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kLong = 20000;

class Draft2005Front : public FrontFixture {
 protected:
  // A client that has been offered a long Reply by Read chunk, behind which the server has closed.
  std::unique_ptr<RdmaClient> client_with_a_reply(std::uint32_t xid) {
    options.draft_2005.enabled = true;
    open();
    server.on_call = [](TcpPeer& from, const Bytes& call) {
      from.send(serve(call));
      from.close();
    };
    auto c = client();
    c->call(samples::read_call(xid, kLong));
    EXPECT_EQ(c->await(xid).header.read_list.size(), 1u);
    EXPECT_TRUE(logged("server closed peer=", 1));
    return c;
  }
  static void done(RdmaClient& c, std::uint32_t xid) {
    auto h = samples::header(xid, rpcrdma::Proc::kDone);
    h.draft_2005 = true;
    c.send(h);
  }
};

TEST_F(Draft2005Front, DoneEndsTheDeliveryBehindAServerThatHasClosed) {
  options.delivery_timeout = 60s;
  auto c = client_with_a_reply(1);
  loop.run_for(200ms);
  EXPECT_FALSE(c->closed()) << "the Reply is still to be read";
  done(*c, 1);
  ASSERT_TRUE(loop.until([&] { return c->closed(); }));
  EXPECT_EQ(c->connection().disconnected()->reason.code, Errc::kPeerClosed);
  EXPECT_TRUE(logged_at_least("end=", 1));
  EXPECT_EQ(log_lines("end=\"timeout\""), 0u);
  const auto s = front->snapshot();
  EXPECT_EQ(s.of(Spoken::kVersion1), 1u) << "it was not configured";
  EXPECT_EQ(s.of(DraftMessage::kReplyInReadChunk), 1u);
  EXPECT_EQ(s.of(DraftMessage::kDone), 1u);
  EXPECT_EQ(s.of(Incident::kReplyNotDone), 0u);
}

TEST_F(Draft2005Front, WithoutDoneTheDeliveryEndsAtItsDeadline) {
  options.delivery_timeout = 300ms;
  options.draft_2005.done.patience = 60s;
  auto c = client_with_a_reply(1);
  done(*c, 7);  // of another
  ASSERT_TRUE(loop.until([&] { return c->closed(); }, 10s));
  EXPECT_NE(c->connection().disconnected()->reason.code, Errc::kPeerClosed);
  EXPECT_TRUE(logged("end=\"timeout\"", 1));
}

// Whichever is shorter: the Reply is given up before the delivery is.
TEST_F(Draft2005Front, AReplyThatIsGivenUpIsNotWaitedFor) {
  options.delivery_timeout = 60s;
  options.draft_2005.done.patience = 300ms;
  auto c = client_with_a_reply(1);
  ASSERT_TRUE(loop.until([&] { return c->closed(); }, 10s));
  EXPECT_EQ(c->connection().disconnected()->reason.code, Errc::kPeerClosed);
  ASSERT_TRUE(loop.until([&] { return front->snapshot().active() == 0; }));
  EXPECT_EQ(front->snapshot().of(Incident::kReplyNotDone), 1u);
  EXPECT_EQ(front->snapshot().of(DraftMessage::kDone), 0u);
}

class Draft2005Chain : public Chained {
 protected:
  void SetUp() override {}
  // A WRITE and a READ whose data are aligned, and one whose data go by RDMA Read where the draft is spoken at both
  // ends.
  void serve_both(TcpPeer& c) {
    for (const Bytes& call :
         {samples::write_call(2, pattern(2000)), samples::read_call(4, 2000), samples::read_call(3, kLong)}) {
      c.send(call);
      EXPECT_TRUE(await(c) == serve(call));
    }
  }
};

TEST_F(Draft2005Chain, IsCountedAtBothEnds) {
  options.draft_2005 = {.enabled = true, .align = 512, .reply_align = 512};
  open();
  options.draft_2005.offer_reply_memory = false;
  open_tcp(front->local());
  const auto c = tcp_client();
  serve_both(*c);
  for (const Front* f : {static_cast<const Front*>(front.get()), static_cast<const Front*>(tcp_front.get())}) {
    // What the client says last, RDMA_DONE, is under way.
    ASSERT_TRUE(loop.until([&] { return f->snapshot().of(DraftMessage::kDone) == 1; }));
    const auto s = f->snapshot();
    EXPECT_EQ(s.of(Spoken::kDraft2005), 1u);
    EXPECT_EQ(s.of(Spoken::kVersion1), 0u);
    EXPECT_EQ(s.of(DraftMessage::kConfigRdma), 1u);
    EXPECT_EQ(s.of(DraftMessage::kPaddedCall), 1u);
    EXPECT_EQ(s.of(DraftMessage::kPaddedReply), 1u);
    EXPECT_EQ(s.of(DraftMessage::kReplyInReadChunk), 1u);
    EXPECT_EQ(s.of(Incident::kConfigRefused), 0u);
    EXPECT_EQ(s.of(Incident::kReplyNotDone), 0u);
  }
}

TEST_F(Draft2005Chain, WithoutItAtTheServerIsVersion1) {
  open();
  server.on_call = [](TcpPeer& from, const Bytes& call) {
    const auto head = rpcrdma::RpcCall::parse(call);
    if (head->program != rpcrdma::kConfigProgram) return from.send(serve(call));
    const auto refusal = rpcrdma::make_error_reply(head->xid, rpcrdma::AcceptStat::kProgUnavail);
    from.send(Bytes(refusal.begin(), refusal.end()));
  };
  options.draft_2005.enabled = true;
  open_tcp(front->local());
  const auto c = tcp_client();
  serve_both(*c);
  const auto s = tcp_front->snapshot();
  EXPECT_EQ(s.of(Incident::kConfigRefused), 1u);
  EXPECT_EQ(s.of(Spoken::kVersion1), 1u);
  EXPECT_EQ(s.of(Spoken::kDraft2005), 0u);
  EXPECT_EQ(s.of(DraftMessage::kConfigRdma), 1u);
  EXPECT_EQ(s.of(DraftMessage::kPaddedCall), 0u);
  EXPECT_EQ(s.of(DraftMessage::kPaddedReply), 0u);
  EXPECT_EQ(front->snapshot().of(Spoken::kVersion1), 1u);
  EXPECT_EQ(front->snapshot().draft_messages, (Stats::Snapshot{}.draft_messages));
}

TEST(Draft2005OfAConnection, HasItsIrdAndHalfOfItsMemory) {
  Options o;
  o.draft_2005 = {.enabled = true, .config_program = 77, .align = 512};
  o.policy.ird = 7;
  o.memory_bytes = std::size_t{4} << 20;
  const auto of = o.draft_of_connection();
  EXPECT_EQ(of.incoming_reads, 7u);
  EXPECT_EQ(of.done.max_bytes, std::size_t{2} << 20) << "the other half is for Replies in line and by Write chunk";
  EXPECT_TRUE(of.enabled);
  EXPECT_EQ(of.config_program, 77u);
  EXPECT_EQ(of.align, 512u);
  // Memory is no reason to keep more.
  o.memory_bytes = std::size_t{1} << 30;
  EXPECT_EQ(o.draft_of_connection().done.max_bytes, rpcrdma::DoneOptions{}.max_bytes);
  o.policy.ird = 0;
  EXPECT_EQ(o.draft_of_connection().incoming_reads, 0u);
}

}  // namespace
}  // namespace iwarp::gateway::test
