// Two queue pairs of libibverbs in one process, connected over loopback as rdma_cm connects them.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <poll.h>

#include <array>
#include <chrono>
#include <cstring>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "dropin/verbs/interface.h"
#include "iwarp/cm/connector.h"
#include "iwarp/cm/listener.h"
#include "tests/dropin/end.h"

namespace iwarp::dropin {
namespace {

using namespace std::chrono_literals;

struct End : EndObjects {
  End() : EndObjects(65536, Channel::kMade) { set_state(qp, IBV_QPS_INIT); }
};

class DropinConnected : public ::testing::Test {
 protected:
  void connect() {
    auto listener = cm::Listener::listen(
        engine(), {.endpoint = {boost::asio::ip::make_address("127.0.0.1"), 0}, .policy = startup_policy(settings())});
    ASSERT_TRUE(listener);
    std::promise<Error> accepted, connected;
    std::unique_ptr<cm::ConnectRequest> request;
    (*listener)->accept([&](Error e, std::unique_ptr<cm::ConnectRequest> r) {
      if (e) return accepted.set_value(e);
      request = std::move(r);
      request->accept(shared_queue_pair(server.qp), {},
                      [&](Error done, std::shared_ptr<cm::Connection>) { accepted.set_value(done); });
    });
    cm::connect(engine(), shared_queue_pair(client.qp),
                {.host = "127.0.0.1", .port = (*listener)->local().port(), .policy = startup_policy(settings())},
                [&](Error e, std::shared_ptr<cm::Connection>) { connected.set_value(e); });
    ASSERT_FALSE(connected.get_future().get());
    ASSERT_FALSE(accepted.get_future().get());
  }

  [[nodiscard]] ibv_send_wr wr(ibv_wr_opcode op, std::uint64_t id, ibv_sge& sge) {
    ibv_send_wr w{};
    w.wr_id = id;
    w.opcode = op;
    w.send_flags = IBV_SEND_SIGNALED;
    w.sg_list = &sge;
    w.num_sge = 1;
    w.wr.rdma.remote_addr = server.address(1024);
    w.wr.rdma.rkey = server.mr->rkey;
    return w;
  }
  void send(ibv_send_wr w) {
    ibv_send_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_send(client.qp, &w, &bad), 0);
  }

  End server, client;
};

TEST_F(DropinConnected, SendsWritesAndReads) {
  for (std::uint64_t i = 0; i < 4; ++i) server.receive(100 + i, 0, 512);
  connect();
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  ASSERT_EQ(ibv_query_qp(client.qp, &attr, IBV_QP_STATE, &init), 0);
  EXPECT_EQ(attr.qp_state, IBV_QPS_RTS);
  EXPECT_GT(attr.max_rd_atomic, 0);

  std::strcpy(client.memory.data(), "a message");
  ibv_sge sge{.addr = client.address(0), .length = 10, .lkey = client.mr->lkey};
  ibv_sge sink{.addr = client.address(2048), .length = 10, .lkey = client.mr->lkey};
  ibv_send_wr read = wr(IBV_WR_RDMA_READ, 3, sink);
  ibv_send_wr write = wr(IBV_WR_RDMA_WRITE, 2, sge);
  ibv_send_wr first = wr(IBV_WR_SEND, 1, sge);
  first.next = &write;
  write.next = &read;
  send(first);

  ibv_wc wc = server.next();
  EXPECT_EQ(wc.wr_id, 100U);
  EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  EXPECT_EQ(wc.opcode, IBV_WC_RECV);
  EXPECT_EQ(wc.byte_len, 10U);
  EXPECT_EQ(wc.qp_num, server.qp->qp_num);
  EXPECT_STREQ(server.memory.data(), "a message");
  const std::array<ibv_wc_opcode, 3> ops = {IBV_WC_SEND, IBV_WC_RDMA_WRITE, IBV_WC_RDMA_READ};
  for (std::size_t i = 0; i < ops.size(); ++i) {
    wc = client.next();
    EXPECT_EQ(wc.wr_id, i + 1);
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    EXPECT_EQ(wc.opcode, ops[i]);
    EXPECT_EQ(wc.qp_num, client.qp->qp_num);
  }
  EXPECT_STREQ(server.memory.data() + 1024, "a message");
  EXPECT_STREQ(client.memory.data() + 2048, "a message");
}

TEST_F(DropinConnected, InlineDataMayChangeAtOnceAndNeedNoKey) {
  server.receive(1, 0, 64);
  connect();
  char octets[] = "inline";
  ibv_sge sge{.addr = reinterpret_cast<std::uintptr_t>(octets), .length = sizeof octets, .lkey = 0};
  ibv_send_wr w = wr(IBV_WR_SEND, 1, sge);
  w.send_flags |= IBV_SEND_INLINE;
  send(w);
  std::memset(octets, 'x', sizeof octets);
  EXPECT_EQ(server.next().byte_len, sizeof octets);
  EXPECT_STREQ(server.memory.data(), "inline");
}

TEST_F(DropinConnected, UnsignalledRequestsCompleteSilently) {
  server.receive(1, 0, 64);
  server.receive(2, 0, 64);
  connect();
  ibv_sge sge{.addr = client.address(0), .length = 4, .lkey = client.mr->lkey};
  ibv_send_wr w = wr(IBV_WR_SEND, 1, sge);
  w.send_flags = 0;
  send(w);
  send(wr(IBV_WR_SEND, 2, sge));
  EXPECT_EQ(client.next().wr_id, 2U);
}

TEST_F(DropinConnected, AMessageWaitsForItsReceive) {
  connect();
  ibv_sge sge{.addr = client.address(0), .length = 4, .lkey = client.mr->lkey};
  send(wr(IBV_WR_SEND, 1, sge));
  std::this_thread::sleep_for(50ms);
  ibv_wc wc{};
  EXPECT_EQ(ibv_poll_cq(server.cq, 1, &wc), 0);
  server.receive(7, 0, 64);
  wc = server.next();
  EXPECT_EQ(wc.wr_id, 7U);
  EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
}

TEST_F(DropinConnected, AThreadSleepsForAnEventUntilAMessageComes) {
  server.receive(1, 0, 64);
  ASSERT_EQ(ibv_req_notify_cq(server.cq, 0), 0);
  connect();
  auto got = std::async(std::launch::async, [&] {
    ibv_cq* cq = nullptr;
    void* of = nullptr;
    EXPECT_EQ(ibv_get_cq_event(server.channel, &cq, &of), 0);
    EXPECT_EQ(of, &server);
    ibv_ack_cq_events(cq, 1);
    return cq;
  });
  EXPECT_EQ(got.wait_for(50ms), std::future_status::timeout);
  ibv_sge sge{.addr = client.address(0), .length = 4, .lkey = client.mr->lkey};
  send(wr(IBV_WR_SEND, 1, sge));
  EXPECT_EQ(got.get(), server.cq);
  EXPECT_EQ(server.next().wr_id, 1U);
}

TEST_F(DropinConnected, WhoArmsAndLeavesCompletionsBehindIsToldOfThem) {
  for (std::uint64_t i = 0; i < 3; ++i) server.receive(i, 0, 64);
  connect();
  ibv_sge sge{.addr = client.address(0), .length = 4, .lkey = client.mr->lkey};
  for (std::uint64_t i = 0; i < 3; ++i) send(wr(IBV_WR_SEND, i, sge));
  std::this_thread::sleep_for(50ms);
  // A completion for each event, as perftest polls a few.
  ASSERT_EQ(::fcntl(server.channel->fd, F_SETFL, O_NONBLOCK), 0);
  ibv_cq* cq = nullptr;
  void* of = nullptr;
  for (std::uint64_t i = 0; i < 3; ++i) {
    ASSERT_EQ(ibv_req_notify_cq(server.cq, 0), 0);
    EXPECT_EQ(ibv_get_cq_event(server.channel, &cq, &of), -1);
    EXPECT_EQ(server.next().wr_id, i);
    if (i == 2) break;  // nothing is left
    ASSERT_EQ(ibv_get_cq_event(server.channel, &cq, &of), 0);
    EXPECT_EQ(cq, server.cq);
    ibv_ack_cq_events(cq, 1);
    EXPECT_EQ(ibv_get_cq_event(server.channel, &cq, &of), -1) << "one for each time";
  }
  EXPECT_EQ(ibv_get_cq_event(server.channel, &cq, &of), -1);
  // Still armed; and an event that nobody has taken goes with its queue.
  server.receive(9, 0, 64);
  send(wr(IBV_WR_SEND, 9, sge));
  pollfd one{.fd = server.channel->fd, .events = POLLIN, .revents = 0};
  EXPECT_EQ(::poll(&one, 1, 10000), 1);
}

TEST_F(DropinConnected, QueuesOfOneChannelAreToldInOrder) {
  std::array<ibv_cq*, 3> cqs{};
  for (auto& cq : cqs) cq = ibv_create_cq(server.context, 4, nullptr, server.channel, 0);
  std::array<ibv_qp*, 3> qps{};
  for (std::size_t i = 0; i < cqs.size(); ++i) {
    ibv_qp_init_attr attr{};
    attr.send_cq = attr.recv_cq = cqs[i];
    attr.qp_type = IBV_QPT_RC;
    attr.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 0};
    qps[i] = ibv_create_qp(server.pd, &attr);
    ASSERT_EQ(ibv_req_notify_cq(cqs[i], 0), 0);
    ibv_recv_wr wr{};
    ibv_recv_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_recv(qps[i], &wr, &bad), 0);
  }
  ibv_qp_attr over{};
  over.qp_state = IBV_QPS_ERR;
  for (const std::size_t i : {2, 0, 1}) ASSERT_EQ(ibv_modify_qp(qps[i], &over, IBV_QP_STATE), 0);
  for (auto* qp : qps) ASSERT_EQ(ibv_destroy_qp(qp), 0);
  ASSERT_EQ(ibv_destroy_cq(cqs[0]), 0);  // from between the others
  for (const std::size_t i : {2, 1}) {
    ibv_cq* cq = nullptr;
    void* of = nullptr;
    ASSERT_EQ(ibv_get_cq_event(server.channel, &cq, &of), 0);
    EXPECT_EQ(cq, cqs[i]);
    ibv_ack_cq_events(cq, 1);
    ASSERT_EQ(ibv_destroy_cq(cq), 0);
  }
  pollfd one{.fd = server.channel->fd, .events = POLLIN, .revents = 0};
  EXPECT_EQ(::poll(&one, 1, 0), 0);
}

TEST_F(DropinConnected, SolicitedEventsOnly) {
  server.receive(1, 0, 64);
  server.receive(2, 0, 64);
  ASSERT_EQ(ibv_req_notify_cq(server.cq, 1), 0);
  connect();
  ibv_sge sge{.addr = client.address(0), .length = 4, .lkey = client.mr->lkey};
  send(wr(IBV_WR_SEND, 1, sge));
  EXPECT_EQ(server.next().wr_id, 1U);
  pollfd one{.fd = server.channel->fd, .events = POLLIN, .revents = 0};
  EXPECT_EQ(::poll(&one, 1, 0), 0);
  ibv_send_wr w = wr(IBV_WR_SEND, 2, sge);
  w.send_flags |= IBV_SEND_SOLICITED;
  send(w);
  EXPECT_EQ(::poll(&one, 1, 10000), 1);
}

TEST_F(DropinConnected, WhatWasSentBeforeDestroyingArrives) {
  for (std::uint64_t i = 0; i < 10; ++i) server.receive(i, i * 4096, 4096);
  connect();
  ibv_sge sge{.addr = client.address(0), .length = 4096, .lkey = client.mr->lkey};
  client.memory.assign(client.memory.size(), 'z');
  for (std::uint64_t i = 0; i < 10; ++i) send(wr(IBV_WR_SEND, i, sge));
  for (std::uint64_t i = 0; i < 10; ++i) EXPECT_EQ(client.next().status, IBV_WC_SUCCESS);
  client.destroy();
  for (std::uint64_t i = 0; i < 10; ++i) {
    const ibv_wc wc = server.next();
    EXPECT_EQ(wc.wr_id, i);
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  }
  EXPECT_EQ(server.memory[10 * 4096 - 1], 'z');
  server.receive(11, 0, 8);
  const ibv_wc wc = server.next();
  EXPECT_EQ(wc.wr_id, 11U);
  EXPECT_EQ(wc.status, IBV_WC_WR_FLUSH_ERR) << "the peer has gone";
}

TEST_F(DropinConnected, NothingIsToldOfADestroyedQueuePair) {
  for (std::uint64_t i = 0; i < 4; ++i) client.receive(i, 0, 64);
  connect();
  client.destroy();
  server.destroy();
  const auto until = std::chrono::steady_clock::now() + 100ms;
  ibv_wc wc{};
  while (std::chrono::steady_clock::now() < until) ASSERT_EQ(ibv_poll_cq(client.cq, 1, &wc), 0);
}

TEST_F(DropinConnected, ErrEndsTheConnectionAndFlushes) {
  client.receive(5, 0, 64);
  connect();
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_ERR;
  ASSERT_EQ(ibv_modify_qp(client.qp, &attr, IBV_QP_STATE), 0);
  const ibv_wc wc = client.next();
  EXPECT_EQ(wc.wr_id, 5U);
  EXPECT_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(client.qp->state, IBV_QPS_ERR);
}

TEST_F(DropinConnected, AViolationIsAnAsynchronousEvent) {
  server.receive(1, 0, 64);
  connect();
  ibv_sge sge{.addr = client.address(0), .length = 4, .lkey = client.mr->lkey};
  ibv_send_wr w = wr(IBV_WR_RDMA_WRITE, 1, sge);
  w.wr.rdma.rkey = 0x12345678;
  send(w);
  ibv_async_event event{};
  std::array<bool, 2> heard{};
  for (std::size_t i = 0; i < heard.size(); ++i) {
    ASSERT_EQ(ibv_get_async_event(server.context, &event), 0);
    EXPECT_EQ(event.event_type, IBV_EVENT_QP_FATAL);
    heard[event.element.qp == server.qp ? 0 : 1] = true;
    ibv_ack_async_event(&event);
  }
  EXPECT_TRUE(heard[0] && heard[1]);
  EXPECT_EQ(server.next().status, IBV_WC_WR_FLUSH_ERR);
}

}  // namespace
}  // namespace iwarp::dropin
