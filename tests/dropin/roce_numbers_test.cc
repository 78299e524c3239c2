// Queue pairs of the RoCE presentation that rdma_cm connects have a number as well, to which nobody else connects.
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

// Of a queue pair that the program made by itself, and names when it connects.
TEST(RoceNumbers, OfWhatRdmaCmIsGivenAreNobodysFromThen) {
  Channel channel;
  rdma_cm_id* const id = make_id(channel);
  FakePeer peer;
  auto address = loopback(static_cast<std::uint16_t>(peer.smaller()));
  ASSERT_EQ(::rdma_resolve_addr(id, nullptr, as_sockaddr(address), 1000), 0);
  channel.expect(RDMA_CM_EVENT_ADDR_RESOLVED);
  ASSERT_EQ(::rdma_resolve_route(id, 1000), 0);
  channel.expect(RDMA_CM_EVENT_ROUTE_RESOLVED);
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

}  // namespace
}  // namespace iwarp::dropin::test
