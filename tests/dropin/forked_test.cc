// Forked children, which open the device anew and can do no harm with what they have inherited.
#include "tests/dropin/rdma_cm_support.h"
//
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>

#include <array>
#include <cstdio>
#include <type_traits>

#include "dropin/verbs/interface.h"
#include "tests/dropin/completion.h"
#include "tests/dropin/in_child.h"
#include "tests/support/sanitized.h"

namespace iwarp::dropin::test {
namespace {

// Connects within this process, over rdma_cm.
bool connects() {
  Channel passive, active;
  rdma_cm_id* const listener = make_listener(passive);
  rdma_cm_id* const client = make_client(active, ntohs(::rdma_get_src_port(listener)));
  auto wanted = parameters();
  bool good = ::rdma_connect(client, &wanted) == 0;
  rdma_cm_event* event = passive.take(RDMA_CM_EVENT_CONNECT_REQUEST);
  if (event == nullptr) return false;
  rdma_cm_id* const server = event->id;
  ::rdma_ack_cm_event(event);
  make_queue_pair(server);
  good = good && ::rdma_accept(server, &wanted) == 0;
  passive.expect(RDMA_CM_EVENT_ESTABLISHED);
  active.expect(RDMA_CM_EVENT_ESTABLISHED);
  destroy(client);
  destroy(server);
  destroy(listener);
  return good && !::testing::Test::HasFailure();
}

class Forked : public RdmaCmPair {
 protected:
  void SetUp() override {
    if (iwarp::test::kSanitized)
      GTEST_SKIP() << "libsanitizer's allocator does not give back at fork() what another thread has locked";
    server = establish(client);
    ASSERT_NE(server, nullptr);
  }
  ~Forked() override {
    destroy(client);
    if (server != nullptr) destroy(server);
    destroy(listener);
  }
  rdma_cm_id* server = nullptr;
};

TEST_F(Forked, AChildOpensTheDeviceAnew) {
  EXPECT_EQ(in_child(connects), 0);
  EXPECT_TRUE(connects()) << "the parent goes on";
  EXPECT_EQ(in_child([] { return in_child(connects) == 0 && connects(); }), 0) << "and so do children's children";
}

// A process that has used up its keys of threads: what another library keeps by one of them stays as it was.
TEST(Key, ThatCannotBeHadTouchesNobodyElses) {
  if (iwarp::test::kSanitized) GTEST_SKIP() << "as for Forked";
  EXPECT_EQ(in_child([] {
              pthread_key_t some{};
              while (::pthread_key_create(&some, nullptr) == 0) {
              }
              if (::pthread_setspecific(0, &some) != 0) return false;
              struct sigaction action {};
              action.sa_handler = [](int) {};
              if (::sigaction(SIGUSR1, &action, nullptr) != 0) return false;
              if (::sigaction(SIGUSR1, nullptr, &action) != 0 || ::sigaction(SIGALRM, &action, nullptr) != 0)
                return false;
              ibv_comp_channel* const channel = ::ibv_create_comp_channel(::ibv_open_device(dropin::device()));
              ibv_cq* cq = nullptr;
              void* of = nullptr;
              const itimerval soon{.it_interval = {.tv_sec = 0, .tv_usec = 100'000}, .it_value = {0, 100'000}};
              if (::setitimer(ITIMER_REAL, &soon, nullptr) != 0) return false;
              const bool interrupted = ::ibv_get_cq_event(channel, &cq, &of) == -1 && errno == EINTR;
              return interrupted && ::pthread_getspecific(0) == &some;
            }),
            0);
}

// As interpreters do that destroy what they have inherited.
TEST_F(Forked, WhatAChildDestroysStaysTheParents) {
  ASSERT_EQ(::ibv_req_notify_cq(server->recv_cq, 0), 0);
  ibv_recv_wr wr{};
  ibv_recv_wr* bad = nullptr;
  ASSERT_EQ(::ibv_post_recv(server->qp, &wr, &bad), 0);
  ibv_send_wr send{};
  send.opcode = IBV_WR_SEND;
  ibv_send_wr* bad_send = nullptr;
  ASSERT_EQ(::ibv_post_send(client->qp, &send, &bad_send), 0);
  ASSERT_TRUE(readable(server->recv_cq_channel->fd, 10000));  // an event waits
  EXPECT_EQ(in_child([&] {
              ibv_wc wc{};
              const bool idle = ::ibv_poll_cq(server->recv_cq, 1, &wc) == 0;
              ibv_cq* cq = nullptr;
              void* of = nullptr;
              const bool refused = ::ibv_get_cq_event(server->recv_cq_channel, &cq, &of) == -1 && errno == EINVAL;
              destroy(server);
              destroy(client);
              destroy(listener);
              ::rdma_destroy_event_channel(passive);
              return idle && refused && connects();
            }),
            0);
  ibv_cq* cq = nullptr;
  void* of = nullptr;
  ASSERT_TRUE(readable(server->recv_cq_channel->fd));
  ASSERT_EQ(::ibv_get_cq_event(server->recv_cq_channel, &cq, &of), 0);
  EXPECT_EQ(cq, server->recv_cq);
  ::ibv_ack_cq_events(cq, 1);
  ibv_wc wc{};
  EXPECT_EQ(::ibv_poll_cq(cq, 1, &wc), 1);
  EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
}

// Whether what gives null, or an errno value, refuses with EINVAL.
template <class Make>
bool refuses(const char* what, const Make& make) {
  errno = 0;
  const auto got = make();
  bool refused = false;
  if constexpr (std::is_pointer_v<decltype(got)>) {
    refused = got == nullptr && errno == EINVAL;
  } else {
    refused = got == EINVAL || (got == -1 && errno == EINVAL);
  }
  if (!refused) std::fprintf(stderr, "%s in a forked child: not refused\n", what);
  return refused;
}

TEST_F(Forked, AChildMakesNothingOfWhatItHasInherited) {
  ibv_context* const context = dropin::context();
  ibv_comp_channel* const completions = ::ibv_create_comp_channel(context);
  ibv_pd* const pd = ::ibv_alloc_pd(context);
  ibv_cq* const cq = ::ibv_create_cq(context, 4, nullptr, nullptr, 0);
  std::array<char, 64> memory{};
  ibv_mr* const mr = ::ibv_reg_mr(pd, memory.data(), memory.size(), IBV_ACCESS_LOCAL_WRITE);
  ibv_srq_init_attr of_srq{};
  of_srq.attr = {.max_wr = 4, .max_sge = 1, .srq_limit = 0};
  ibv_srq* const srq = ::ibv_create_srq(pd, &of_srq);
  EXPECT_EQ(in_child([&] {
              bool good = refuses("ibv_alloc_pd", [&] { return ::ibv_alloc_pd(context); });
              good &= refuses("ibv_create_cq", [&] { return ::ibv_create_cq(context, 4, nullptr, nullptr, 0); });
              good &= refuses("ibv_create_comp_channel", [&] { return ::ibv_create_comp_channel(context); });
              good &= refuses("ibv_reg_mr", [&] { return ::ibv_reg_mr(pd, memory.data(), 8, 0); });
              good &= refuses("ibv_create_srq", [&] { return ::ibv_create_srq(pd, &of_srq); });
              ibv_srq_attr limit{};
              good &= refuses("ibv_modify_srq", [&] { return ::ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT); });
              good &= refuses("ibv_query_srq", [&] { return ::ibv_query_srq(srq, &limit); });
              auto wanted = attributes();
              wanted.send_cq = wanted.recv_cq = cq;
              good &= refuses("ibv_create_qp", [&] { return ::ibv_create_qp(pd, &wanted); });
              ibv_qp_attr change{};
              change.qp_state = IBV_QPS_ERR;
              good &= refuses("ibv_modify_qp", [&] { return ::ibv_modify_qp(server->qp, &change, IBV_QP_STATE); });
              good &= ::ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, pd, nullptr, 0, 0) == IBV_REREG_MR_ERR_INPUT;
              // Of its own context, with what is the parent's.
              ibv_context* const own = dropin::context();
              ibv_cq* const own_cq = ::ibv_create_cq(own, 4, nullptr, nullptr, 0);
              ibv_pd* const own_pd = ::ibv_alloc_pd(own);
              good &= own != context && own_cq != nullptr && own_pd != nullptr;
              good &=
                  refuses("a queue with a channel", [&] { return ::ibv_create_cq(own, 4, nullptr, completions, 0); });
              wanted.send_cq = own_cq;
              good &= refuses("a queue pair with a queue", [&] { return ::ibv_create_qp(own_pd, &wanted); });
              wanted.recv_cq = own_cq;
              wanted.srq = srq;
              good &= refuses("a queue pair with a shared queue", [&] { return ::ibv_create_qp(own_pd, &wanted); });
              good &= refuses("a queue pair with a domain", [&] { return ::ibv_create_qp(pd, &wanted); });
              // And of rdma_cm.
              auto address = loopback();
              auto how = parameters();
              good &= refuses("rdma_listen", [&] { return ::rdma_listen(listener, 1); });
              good &= refuses("rdma_disconnect", [&] { return ::rdma_disconnect(server); });
              good &= refuses("rdma_connect", [&] { return ::rdma_connect(client, &how); });
              good &= refuses("rdma_accept", [&] { return ::rdma_accept(server, &how); });
              good &= refuses("rdma_bind_addr", [&] { return ::rdma_bind_addr(client, as_sockaddr(address)); });
              return good && connects();
            }),
            0);
  EXPECT_EQ(::ibv_destroy_srq(srq), 0);
  EXPECT_EQ(::ibv_dereg_mr(mr), 0);
  EXPECT_EQ(::ibv_destroy_cq(cq), 0);
  EXPECT_EQ(::ibv_dealloc_pd(pd), 0);
  EXPECT_EQ(::ibv_destroy_comp_channel(completions), 0);
}

}  // namespace
}  // namespace iwarp::dropin::test
