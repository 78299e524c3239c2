// Sends with immediate data between two ends of the RoCE presentation, which agree on them by rdma_cm.
#include "tests/dropin/rdma_cm_support.h"
//
#include <cstdlib>

#include "tests/dropin/completion.h"

namespace iwarp::dropin::test {
namespace {

// Before anything asks for the settings.
const bool kRoce = ::setenv("IWARP_PRESENT", "roce", 1) == 0 && ::setenv("IWARP_ADDRESS", "127.0.0.1", 1) == 0;

class SendImmediate : public RdmaCmPair {
 protected:
  void SetUp() override {
    ASSERT_TRUE(kRoce);
    server = establish(client);
    ASSERT_NE(server, nullptr);
  }
  ~SendImmediate() override {
    destroy(client);
    if (server != nullptr) destroy(server);
    destroy(listener);
  }
  rdma_cm_id* server = nullptr;
};

TEST_F(SendImmediate, BringsBoth) {
  alignas(8) char from[16] = "a message", to[16] = {};
  ibv_mr* const mr = ::ibv_reg_mr(server->pd, to, sizeof to, IBV_ACCESS_LOCAL_WRITE);
  ibv_sge sink{.addr = reinterpret_cast<std::uintptr_t>(to), .length = sizeof to, .lkey = mr->lkey};
  ibv_recv_wr receive{.wr_id = 4, .next = nullptr, .sg_list = &sink, .num_sge = 1};
  ibv_recv_wr* bad_receive = nullptr;
  ASSERT_EQ(::ibv_post_recv(server->qp, &receive, &bad_receive), 0);
  ASSERT_EQ(::ibv_req_notify_cq(server->recv_cq, 1), 0);
  ibv_sge source{.addr = reinterpret_cast<std::uintptr_t>(from), .length = 10, .lkey = 0};
  ibv_send_wr send{};
  send.wr_id = 5;
  send.opcode = IBV_WR_SEND_WITH_IMM;
  send.send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE | IBV_SEND_SOLICITED;
  send.sg_list = &source;
  send.num_sge = 1;
  send.imm_data = htonl(0xFEDCBA98);
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(::ibv_post_send(client->qp, &send, &bad), 0);
  EXPECT_TRUE(readable(server->recv_cq_channel->fd, 10000)) << "solicited";
  const ibv_wc got = next_completion(server->recv_cq);
  EXPECT_EQ(got.wr_id, 4U);
  EXPECT_EQ(got.status, IBV_WC_SUCCESS);
  EXPECT_EQ(got.opcode, IBV_WC_RECV);
  EXPECT_EQ(got.wc_flags, unsigned{IBV_WC_WITH_IMM});
  EXPECT_EQ(ntohl(got.imm_data), 0xFEDCBA98U);
  EXPECT_EQ(got.byte_len, 10U);
  EXPECT_STREQ(to, "a message");
  const ibv_wc sent = next_completion(client->send_cq);
  EXPECT_EQ(sent.wr_id, 5U);
  EXPECT_EQ(sent.opcode, IBV_WC_SEND);
  ibv_cq* cq = nullptr;
  void* of = nullptr;
  ASSERT_EQ(::ibv_get_cq_event(server->recv_cq_channel, &cq, &of), 0);
  ::ibv_ack_cq_events(cq, 1);
  EXPECT_EQ(::ibv_dereg_mr(mr), 0);
}

// As librdmacm leaves it: in the error state when the program hears of it, with its Receives flushed.
TEST(RoceRefused, TheQueuePairIsInError) {
  Channel channel;
  auto nobody = [] {
    Channel passing;
    rdma_cm_id* const id = make_listener(passing);
    const std::uint16_t port = ntohs(::rdma_get_src_port(id));
    ::rdma_destroy_id(id);
    return port;
  };
  rdma_cm_id* const id = make_client(channel, nobody());
  ibv_recv_wr receive{};
  receive.wr_id = 3;
  ibv_recv_wr* bad = nullptr;
  ASSERT_EQ(::ibv_post_recv(id->qp, &receive, &bad), 0);
  auto wanted = parameters();
  ASSERT_EQ(::rdma_connect(id, &wanted), 0);
  rdma_cm_event* const event = channel.take(RDMA_CM_EVENT_REJECTED);
  ASSERT_NE(event, nullptr);
  ::rdma_ack_cm_event(event);
  ibv_qp_attr attributes_now{};
  ibv_qp_init_attr made{};
  ASSERT_EQ(::ibv_query_qp(id->qp, &attributes_now, IBV_QP_STATE, &made), 0);
  EXPECT_EQ(attributes_now.qp_state, IBV_QPS_ERR);
  const ibv_wc wc = next_completion(id->recv_cq);
  EXPECT_EQ(wc.wr_id, 3U);
  EXPECT_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
  destroy(id);
}

}  // namespace
}  // namespace iwarp::dropin::test
