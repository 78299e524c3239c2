// Immediate data and Atomics of libibverbs over RFC 7306, agreed on by rdma_cm: the process is one of
// `iwarp run --rfc7306`.
#include "tests/dropin/rfc7306_support.h"

namespace iwarp::dropin::test {
namespace {

using namespace std::chrono_literals;

ibv_send_wr atomic(ibv_wr_opcode op, ibv_sge& sink, const Memory& at, std::uint64_t compare_add,
                   std::uint64_t swap = 0) {
  ibv_send_wr wr{};
  wr.opcode = op;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.sg_list = &sink;
  wr.num_sge = 1;
  wr.wr.atomic = {.remote_addr = at.address(), .compare_add = compare_add, .swap = swap, .rkey = at.rkey()};
  return wr;
}

class Rfc7306Pair : public RdmaCmPair {
 protected:
  ~Rfc7306Pair() override {
    if (server != nullptr) destroy(server);
    destroy(client);
    destroy(listener);
  }
  void establish() {
    auto hello = parameters("hello");
    ASSERT_EQ(::rdma_connect(client, &hello), 0);
    rdma_cm_event* event = passive.take(RDMA_CM_EVENT_CONNECT_REQUEST);
    ASSERT_NE(event, nullptr);
    EXPECT_EQ(private_data_of(*event), "hello") << "without the trailer";
    server = event->id;
    ::rdma_ack_cm_event(event);
    make_queue_pair(server);
    auto answer = parameters("and you", 5, 3);
    ASSERT_EQ(::rdma_accept(server, &answer), 0);
    passive.expect(RDMA_CM_EVENT_ESTABLISHED);
    event = active.take(RDMA_CM_EVENT_ESTABLISHED);
    ASSERT_NE(event, nullptr);
    EXPECT_EQ(private_data_of(*event), "and you");
    ::rdma_ack_cm_event(event);
  }
  rdma_cm_id* server = nullptr;
};

TEST_F(Rfc7306Pair, AWriteWithImmediateTellsItsLengthAndItsOctets) {
  establish();
  Memory from(client, kAll), to(server, kAll);
  from.word(1) = 77;
  receive(server, 5);
  auto sge = from.sge(16);
  ASSERT_EQ(post(client, write_with_immediate(6, sge, to, 0xC0FFEE01)), 0);
  const ibv_wc got = next_completion(server->recv_cq);
  EXPECT_EQ(got.wr_id, 5U);
  EXPECT_EQ(got.status, IBV_WC_SUCCESS);
  EXPECT_EQ(got.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
  EXPECT_EQ(got.wc_flags, unsigned{IBV_WC_WITH_IMM});
  EXPECT_EQ(ntohl(got.imm_data), 0xC0FFEE01U);
  EXPECT_EQ(got.byte_len, 16U);
  EXPECT_EQ(to.word(1), 77U);
  const ibv_wc sent = next_completion(client->send_cq);
  EXPECT_EQ(sent.wr_id, 6U);
  EXPECT_EQ(sent.opcode, IBV_WC_RDMA_WRITE);
}

TEST_F(Rfc7306Pair, AWriteOfNothingWithImmediateHasNoLength) {
  establish();
  Memory from(client, kAll), to(server, kAll);
  receive(server, 1);
  receive(server, 2);
  auto some = from.sge(64), none = from.sge(0);
  ASSERT_EQ(post(client, write_with_immediate(1, some, to, 1)), 0);
  ASSERT_EQ(post(client, write_with_immediate(2, none, to, 2)), 0);
  EXPECT_EQ(next_completion(server->recv_cq).byte_len, 64U);
  const ibv_wc got = next_completion(server->recv_cq);
  EXPECT_EQ(got.byte_len, 0U);
  EXPECT_EQ(ntohl(got.imm_data), 2U);
}

TEST_F(Rfc7306Pair, SolicitedImmediateDataIsAnEvent) {
  establish();
  Memory from(client, kAll), to(server, kAll);
  receive(server, 1);
  receive(server, 2);
  ASSERT_EQ(::ibv_req_notify_cq(server->recv_cq, 1), 0);
  auto sge = from.sge(8);
  ASSERT_EQ(post(client, write_with_immediate(1, sge, to, 1)), 0);
  EXPECT_EQ(next_completion(server->recv_cq).wr_id, 1U);
  EXPECT_FALSE(readable(server->recv_cq_channel->fd));
  auto loud = write_with_immediate(2, sge, to, 2);
  loud.send_flags |= IBV_SEND_SOLICITED | IBV_SEND_INLINE;
  ASSERT_EQ(post(client, loud), 0);
  EXPECT_TRUE(readable(server->recv_cq_channel->fd, 10000));
  ibv_cq* cq = nullptr;
  void* of = nullptr;
  ASSERT_EQ(::ibv_get_cq_event(server->recv_cq_channel, &cq, &of), 0);
  ::ibv_ack_cq_events(cq, 1);
  EXPECT_EQ(next_completion(server->recv_cq).byte_len, 8U);
}

TEST_F(Rfc7306Pair, AtomicsBringBackWhatWasThere) {
  establish();
  Memory result(client, IBV_ACCESS_LOCAL_WRITE);
  Memory word(server, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC);  // no other right
  word.word() = 40;
  auto sink = result.sge(8);
  ASSERT_EQ(post(client, atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, sink, word, 2)), 0);
  ibv_wc wc = next_completion(client->send_cq);
  EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  EXPECT_EQ(wc.opcode, IBV_WC_FETCH_ADD);
  EXPECT_EQ(wc.byte_len, 8U);
  EXPECT_EQ(result.word(), 40U);
  EXPECT_EQ(word.word(), 42U);
  ASSERT_EQ(post(client, atomic(IBV_WR_ATOMIC_CMP_AND_SWP, sink, word, 41, 7)), 0);
  wc = next_completion(client->send_cq);
  EXPECT_EQ(wc.opcode, IBV_WC_COMP_SWAP);
  EXPECT_EQ(result.word(), 42U);
  EXPECT_EQ(word.word(), 42U) << "not as expected: left alone";
  ASSERT_EQ(post(client, atomic(IBV_WR_ATOMIC_CMP_AND_SWP, sink, word, 42, 7)), 0);
  EXPECT_EQ(next_completion(client->send_cq).status, IBV_WC_SUCCESS);
  EXPECT_EQ(word.word(), 7U);
}

TEST_F(Rfc7306Pair, TheRightOfAtomicsIsNoOther) {
  establish();
  Memory mine(client, kAll), word(server, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC);
  word.word() = 1;
  auto from = mine.sge(8);
  mine.word() = 2;
  auto write = write_with_immediate(1, from, word, 0);
  write.opcode = IBV_WR_RDMA_WRITE;
  ASSERT_EQ(post(client, write), 0);
  receive(client, 9);
  EXPECT_EQ(next_completion(client->recv_cq).status, IBV_WC_WR_FLUSH_ERR) << "the connection is over";
  EXPECT_EQ(word.word(), 1U);
}

TEST_F(Rfc7306Pair, AtomicsNeedARight) {
  establish();
  Memory result(client, kAll), word(server, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
  auto sink = result.sge(8);
  ASSERT_EQ(post(client, atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, sink, word, 2)), 0);
  EXPECT_NE(next_completion(client->send_cq).status, IBV_WC_SUCCESS);
  EXPECT_EQ(word.word(), 0U);
}

TEST_F(Rfc7306Pair, NoSendWithImmediateOnAnRnic) {
  establish();
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_SEND_WITH_IMM;
  EXPECT_EQ(post(client, wr), EOPNOTSUPP);
}

TEST_F(Rfc7306Pair, NothingOfItBeforeTheConnectionAgreesOnIt) {
  Memory from(client, kAll);
  auto sge = from.sge(8);
  EXPECT_EQ(post(client, write_with_immediate(1, sge, from, 1)), EOPNOTSUPP);
}

TEST_F(Rfc7306Pair, TheTrailerTakesRoomOfThePrivateData) {
  const std::string data(240, 'x');
  auto too_long = parameters(data);
  EXPECT_EQ(::rdma_connect(client, &too_long), -1);
  EXPECT_EQ(errno, EINVAL);
  auto longest = parameters(std::string_view(data).substr(0, 239));
  ASSERT_EQ(::rdma_connect(client, &longest), 0);
  rdma_cm_event* event = passive.take(RDMA_CM_EVENT_CONNECT_REQUEST);
  ASSERT_NE(event, nullptr);
  EXPECT_EQ(private_data_of(*event), std::string(239, 'x'));
  server = event->id;
  ::rdma_ack_cm_event(event);
  make_queue_pair(server);
  EXPECT_EQ(::rdma_accept(server, &too_long), -1);
  EXPECT_EQ(errno, EINVAL);
  ASSERT_EQ(::rdma_accept(server, &longest), 0);
  event = active.take(RDMA_CM_EVENT_ESTABLISHED);
  ASSERT_NE(event, nullptr);
  EXPECT_EQ(private_data_of(*event), std::string(239, 'x'));
  ::rdma_ack_cm_event(event);
}

TEST_F(Rfc7306Pair, ARejectionHasNone) {
  auto hello = parameters("hello");
  ASSERT_EQ(::rdma_connect(client, &hello), 0);
  rdma_cm_event* event = passive.take(RDMA_CM_EVENT_CONNECT_REQUEST);
  ASSERT_NE(event, nullptr);
  server = event->id;
  ::rdma_ack_cm_event(event);
  const std::string reason(251, 'n');
  EXPECT_EQ(::rdma_reject(server, reason.data(), 251), 0);
  event = active.take(RDMA_CM_EVENT_REJECTED);
  ASSERT_NE(event, nullptr);
  EXPECT_EQ(private_data_of(*event), reason);
  ::rdma_ack_cm_event(event);
}

// The extended queue pair and completion queue of a client, in place of the usual ones.
TEST(Rfc7306Extended, PostsAndPolls) {
  Channel passive, active;
  rdma_cm_id* const listener = make_listener(passive);
  rdma_cm_id* const client = make_id(active);
  auto peer = loopback(ntohs(::rdma_get_src_port(listener)));
  ASSERT_EQ(::rdma_resolve_addr(client, nullptr, as_sockaddr(peer), 1000), 0);
  active.expect(RDMA_CM_EVENT_ADDR_RESOLVED);
  ASSERT_EQ(::rdma_resolve_route(client, 1000), 0);
  active.expect(RDMA_CM_EVENT_ROUTE_RESOLVED);
  ibv_cq_init_attr_ex of_cq{};
  of_cq.cqe = 16;
  of_cq.wc_flags = IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_IMM;
  ibv_cq_ex* const cq = ::ibv_create_cq_ex(client->verbs, &of_cq);
  ASSERT_NE(cq, nullptr);
  ibv_qp_init_attr_ex of_qp{};
  of_qp.send_cq = of_qp.recv_cq = ibv_cq_ex_to_cq(cq);
  of_qp.qp_type = IBV_QPT_RC;
  of_qp.cap = {.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 0};
  of_qp.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  of_qp.pd = client->pd;
  of_qp.send_ops_flags = IBV_QP_EX_WITH_SEND_WITH_IMM;
  EXPECT_EQ(::ibv_create_qp_ex(client->verbs, &of_qp), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  of_qp.send_ops_flags =
      IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
  client->qp = ::ibv_create_qp_ex(client->verbs, &of_qp);
  ASSERT_NE(client->qp, nullptr);
  auto hello = parameters();
  ASSERT_EQ(::rdma_connect(client, &hello), 0);
  rdma_cm_event* const event = passive.take(RDMA_CM_EVENT_CONNECT_REQUEST);
  ASSERT_NE(event, nullptr);
  rdma_cm_id* const server = event->id;
  ::rdma_ack_cm_event(event);
  make_queue_pair(server);
  auto answer = parameters();
  ASSERT_EQ(::rdma_accept(server, &answer), 0);
  passive.expect(RDMA_CM_EVENT_ESTABLISHED);
  active.expect(RDMA_CM_EVENT_ESTABLISHED);
  {
    Memory here(client, kAll), there(server, kAll | IBV_ACCESS_REMOTE_ATOMIC);
    there.word() = 5;
    receive(server, 3);
    receive(client, 4);
    ibv_qp_ex* const qp = ::ibv_qp_to_qp_ex(client->qp);
    const auto sink = here.sge(8);
    ::ibv_wr_start(qp);
    qp->wr_flags = IBV_SEND_SIGNALED;
    qp->wr_id = 1;
    ::ibv_wr_atomic_fetch_add(qp, there.rkey(), there.address(), 4);
    ::ibv_wr_set_sge(qp, sink.lkey, sink.addr, 8);
    qp->wr_id = 2;
    ::ibv_wr_atomic_cmp_swp(qp, there.rkey(), there.address(), 9, 100);
    ::ibv_wr_set_sge(qp, sink.lkey, sink.addr, 8);
    qp->wr_id = 3;
    ::ibv_wr_rdma_write_imm(qp, there.rkey(), there.address() + 64, htonl(0xAB));
    ::ibv_wr_set_sge(qp, sink.lkey, sink.addr, 8);
    ASSERT_EQ(::ibv_wr_complete(qp), 0);
    const ibv_wc wc = next_completion(server->recv_cq);
    EXPECT_EQ(wc.byte_len, 8U);
    EXPECT_EQ(ntohl(wc.imm_data), 0xABU);
    for (const auto op : {IBV_WC_FETCH_ADD, IBV_WC_COMP_SWAP, IBV_WC_RDMA_WRITE})
      EXPECT_EQ(next_completion(of_qp.send_cq).opcode, op);
    EXPECT_EQ(there.word(), 100U);
    EXPECT_EQ(here.word(), 9U);

    auto back = there.sge(8);
    ASSERT_EQ(post(server, write_with_immediate(8, back, here, 0x01020304)), 0);
    ibv_poll_cq_attr none{};
    const auto until = std::chrono::steady_clock::now() + 10s;
    while (::ibv_start_poll(cq, &none) != 0) ASSERT_LT(std::chrono::steady_clock::now(), until);
    EXPECT_EQ(cq->wr_id, 4U);
    EXPECT_EQ(::ibv_wc_read_opcode(cq), IBV_WC_RECV_RDMA_WITH_IMM);
    EXPECT_EQ(::ibv_wc_read_wc_flags(cq), unsigned{IBV_WC_WITH_IMM});
    EXPECT_EQ(ntohl(::ibv_wc_read_imm_data(cq)), 0x01020304U);
    EXPECT_EQ(::ibv_wc_read_byte_len(cq), 8U);
    ::ibv_end_poll(cq);
  }
  destroy(server);
  destroy(client);
  destroy(listener);
  EXPECT_EQ(::ibv_destroy_cq(of_qp.send_cq), 0);
}

TEST(Rfc7306Device, HasAtomicsOfThisProcess) {
  ASSERT_EQ(kSwitchedOn, 0);
  ibv_device_attr attributes{};
  ASSERT_EQ(::ibv_query_device(dropin::context(), &attributes), 0);
  EXPECT_EQ(attributes.atomic_cap, IBV_ATOMIC_GLOB);
}

}  // namespace
}  // namespace iwarp::dropin::test
