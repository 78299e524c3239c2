// Queue pairs of the RoCE presentation that rdma_cm connects have a number as well, to which nobody else connects;
// those that the program has made by itself are established as InfiniBand has it.
#include "tests/dropin/rdma_cm_support.h"
//
#include "tests/dropin/fake_peer.h"

namespace iwarp::dropin::test {
namespace {

std::optional<Refusal> refusal_of(std::uint32_t number) {
  auto answer = ask(RendezvousMessage{.from = 7, .to = number, .from_psn = 1, .to_psn = 2});
  if (!is_there(answer, std::chrono::milliseconds(1000))) return std::nullopt;  // it is held
  return answer.get().why;
}

TEST(RoceNumbers, OfRdmaCmAreNobodys) {
  Channel channel;
  rdma_cm_id* const id = make_client(channel, 1);
  ASSERT_NE(id->qp, nullptr);
  EXPECT_EQ(refusal_of(id->qp->qp_num), Refusal::kNoQueuePair);
  destroy(id);
}

void resolve(Channel& channel, rdma_cm_id* id, std::uint16_t port) {
  auto address = loopback(port);
  ASSERT_EQ(::rdma_resolve_addr(id, nullptr, as_sockaddr(address), 1000), 0);
  channel.expect(RDMA_CM_EVENT_ADDR_RESOLVED);
  ASSERT_EQ(::rdma_resolve_route(id, 1000), 0);
  channel.expect(RDMA_CM_EVENT_ROUTE_RESOLVED);
}

// Of a queue pair that the program made by itself, and names when it connects.
TEST(RoceNumbers, OfWhatRdmaCmIsGivenAreNobodysFromThen) {
  Channel channel;
  rdma_cm_id* const id = make_id(channel);
  FakePeer peer;
  resolve(channel, id, static_cast<std::uint16_t>(peer.smaller()));
  ibv_cq* const cq = ::ibv_create_cq(id->verbs, 16, nullptr, nullptr, 0);
  auto made = attributes();
  made.send_cq = made.recv_cq = cq;
  ibv_qp* const qp = ::ibv_create_qp(id->pd, &made);
  ASSERT_NE(qp, nullptr);
  EXPECT_EQ(refusal_of(qp->qp_num), std::nullopt) << "it may be connected by ibv_modify_qp() yet";
  auto wanted = parameters();
  wanted.qp_num = qp->qp_num;
  ASSERT_EQ(::rdma_connect(id, &wanted), 0);
  EXPECT_EQ(refusal_of(qp->qp_num), Refusal::kNoQueuePair);
  channel.expect(RDMA_CM_EVENT_REJECTED, -ECONNREFUSED);
  EXPECT_EQ(::ibv_destroy_qp(qp), 0);
  destroy(id);
  EXPECT_EQ(::ibv_destroy_cq(cq), 0);
}

void to_rts(rdma_cm_id* id, ibv_qp* qp) {
  for (const ibv_qp_state state : {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS}) {
    ibv_qp_attr wanted{};
    wanted.qp_state = state;
    int mask = 0;
    ASSERT_EQ(::rdma_init_qp_attr(id, &wanted, &mask), 0);
    EXPECT_EQ(::ibv_modify_qp(qp, &wanted, mask | IBV_QP_STATE), 0) << state;
  }
}

// The three steps of InfiniBand: the active end hears of the answer, is ready, and says so. The timeout is told.
TEST(RoceNumbers, WhoMadeTheQueuePairHearsOfTheAnswer) {
  Channel passive, active;
  rdma_cm_id* const listener = make_listener(passive);
  rdma_cm_id* const id = make_id(active);
  resolve(active, id, ntohs(::rdma_get_src_port(listener)));
  ibv_cq* const cq = ::ibv_create_cq(id->verbs, 16, nullptr, nullptr, 0);
  auto made = attributes();
  made.send_cq = made.recv_cq = cq;
  ibv_qp* const qp = ::ibv_create_qp(id->pd, &made);
  ASSERT_NE(qp, nullptr);
  auto wanted = parameters();
  wanted.qp_num = qp->qp_num;
  std::uint8_t timeout = 21;
  ASSERT_EQ(::rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, sizeof timeout), 0);
  ASSERT_EQ(::rdma_connect(id, &wanted), 0);
  rdma_cm_event* const request = passive.take(RDMA_CM_EVENT_CONNECT_REQUEST);
  ASSERT_NE(request, nullptr);
  rdma_cm_id* const accepted = request->id;
  ::rdma_ack_cm_event(request);
  make_queue_pair(accepted);
  auto answer = parameters();
  ASSERT_EQ(::rdma_accept(accepted, &answer), 0);
  active.expect(RDMA_CM_EVENT_CONNECT_RESPONSE);
  to_rts(id, qp);
  EXPECT_EQ(::rdma_establish(id), 0);
  passive.expect(RDMA_CM_EVENT_ESTABLISHED);
  ibv_qp_attr told{};
  ibv_qp_init_attr initial{};
  ASSERT_EQ(::ibv_query_qp(qp, &told, IBV_QP_TIMEOUT, &initial), 0);
  EXPECT_EQ(told.qp_state, IBV_QPS_RTS);
  EXPECT_EQ(told.timeout, timeout);
  EXPECT_EQ(::rdma_disconnect(id), 0);
  active.expect(RDMA_CM_EVENT_DISCONNECTED);
  passive.expect(RDMA_CM_EVENT_DISCONNECTED);
  EXPECT_EQ(::ibv_destroy_qp(qp), 0);
  destroy(id);
  destroy(accepted);
  destroy(listener);
  EXPECT_EQ(::ibv_destroy_cq(cq), 0);
}

}  // namespace
}  // namespace iwarp::dropin::test
