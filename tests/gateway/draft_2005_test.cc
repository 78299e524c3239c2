// The draft of 2005 at the ends of the gateway's sessions, and what a connection has of its options.
#include <gtest/gtest.h>

#include "tests/gateway/front_fixture.h"

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
