// Threads that sleep for an event, as in the system call of a device: signals and cancellation get them out. Several
// contexts in one process, and forked children.
#include "tests/dropin/rdma_cm_support.h"
//
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <boost/asio/post.hpp>
#include <chrono>
#include <cstdio>
#include <functional>
#include <future>
#include <thread>
#include <type_traits>

#include "dropin/verbs/interface.h"
#include "tests/dropin/completion.h"
#include "tests/dropin/in_child.h"
#include "tests/support/sanitized.h"

namespace iwarp::dropin::test {
namespace {

using namespace std::chrono_literals;

enum class Wait { kCompletion, kConnection, kRequest, kAsynchronous };

// What a thread can sleep in, with nothing to come.
class Waits : public ::testing::TestWithParam<Wait> {
 protected:
  ~Waits() override {
    destroy(listener_);
    ::rdma_destroy_event_channel(events_);
    ::ibv_destroy_comp_channel(completions_);
    ::ibv_close_device(context_);
  }
  int wait() {
    ibv_cq* cq = nullptr;
    void* of = nullptr;
    rdma_cm_event* event = nullptr;
    rdma_cm_id* id = nullptr;
    ibv_async_event async{};
    switch (GetParam()) {
      case Wait::kCompletion:
        return ::ibv_get_cq_event(completions_, &cq, &of);
      case Wait::kConnection:
        return ::rdma_get_cm_event(events_, &event);
      case Wait::kRequest:
        return ::rdma_get_request(listener_, &id);
      case Wait::kAsynchronous:
        return ::ibv_get_async_event(context_, &async);
    }
    return 0;
  }

  ibv_context* context_ = ::ibv_open_device(dropin::device());
  ibv_comp_channel* completions_ = ::ibv_create_comp_channel(context_);
  rdma_event_channel* events_ = ::rdma_create_event_channel();
  rdma_cm_id* listener_ = make_listener(nullptr);
};

struct Sleeper {
  std::function<int()> wait;
  std::atomic<bool> began{false}, over{false};
  std::atomic<int> result{0}, error{0};
  std::atomic<std::thread::id> id{};
};

void* sleep_in(void* of) {
  auto& self = *static_cast<Sleeper*>(of);
  self.id = std::this_thread::get_id();
  self.began = true;
  const int result = self.wait();
  self.error = errno;
  self.result = result;
  self.over = true;
  return of;
}

// It sleeps when this returns. With less time it may be moving the octets itself yet.
void begin(pthread_t& thread, Sleeper& sleeper, std::chrono::microseconds time = 30ms) {
  ASSERT_EQ(::pthread_create(&thread, nullptr, sleep_in, &sleeper), 0);
  while (!sleeper.began) std::this_thread::yield();
  std::this_thread::sleep_for(time);
}

std::atomic<int> handled{0};

void handle(int flags) {
  struct sigaction action {};
  action.sa_handler = [](int) { ++handled; };
  action.sa_flags = flags;
  ASSERT_EQ(::sigaction(SIGUSR1, &action, nullptr), 0);
}

TEST_P(Waits, AThreadMayBeCancelled) {
  Sleeper sleeper{.wait = [this] { return wait(); }};
  pthread_t thread{};
  begin(thread, sleeper);
  ASSERT_EQ(::pthread_cancel(thread), 0);
  void* result = nullptr;
  ASSERT_EQ(::pthread_join(thread, &result), 0);
  EXPECT_EQ(result, PTHREAD_CANCELED);
}

TEST_P(Waits, OneThatWasCancelledBeforeDoesNotSleep) {
  std::atomic<bool> go{false};
  Sleeper sleeper{.wait = [&] {
    while (!go) {
    }
    return wait();
  }};
  pthread_t thread{};
  begin(thread, sleeper);
  ASSERT_EQ(::pthread_cancel(thread), 0);
  go = true;
  void* result = nullptr;
  ASSERT_EQ(::pthread_join(thread, &result), 0);
  EXPECT_EQ(result, PTHREAD_CANCELED);
}

// What it calls until it sleeps is no cancellation point, though it makes system calls that are.
TEST(Cancellation, WaitsForTheEndOfACall) {
  Channel channel;
  rdma_cm_id* const id = make_id(channel);
  auto peer = loopback(1);
  ASSERT_EQ(::rdma_resolve_addr(id, nullptr, as_sockaddr(peer), 1000), 0);
  ASSERT_TRUE(readable(channel->fd));
  std::atomic<bool> go{false}, took{false};
  Sleeper sleeper{.wait = [&] {
    while (!go) {
    }
    rdma_cm_event* event = nullptr;
    const int result = ::rdma_get_cm_event(channel, &event);
    took = result == 0;
    if (took) ::rdma_ack_cm_event(event);
    ::rdma_destroy_id(make_id(channel));
    return result;
  }};
  pthread_t thread{};
  begin(thread, sleeper);
  ASSERT_EQ(::pthread_cancel(thread), 0);
  go = true;
  ASSERT_EQ(::pthread_join(thread, nullptr), 0);
  EXPECT_TRUE(took);
  ::rdma_destroy_id(id);
}

// Likewise of a queue pair and of its queue, with an event that waits.
TEST_F(RdmaCmPair, CallsOfVerbsAreNotCancelledHalfWay) {
  rdma_cm_id* const server = establish(client);
  ASSERT_NE(server, nullptr);
  ibv_recv_wr receive{};
  ibv_recv_wr* bad_receive = nullptr;
  for (rdma_cm_id* const id : {client, server}) ASSERT_EQ(::ibv_post_recv(id->qp, &receive, &bad_receive), 0);
  ASSERT_EQ(::ibv_req_notify_cq(server->recv_cq, 0), 0);
  ibv_send_wr send{};
  send.opcode = IBV_WR_SEND;
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(::ibv_post_send(client->qp, &send, &bad), 0);
  ASSERT_TRUE(readable(server->recv_cq_channel->fd, 20000));
  std::atomic<bool> go{false}, done{false};
  Sleeper sleeper{.wait = [&] {
    while (!go) {
    }
    ibv_cq* cq = nullptr;
    void* of = nullptr;
    bool good = ::ibv_get_cq_event(server->recv_cq_channel, &cq, &of) == 0;
    if (good) ::ibv_ack_cq_events(cq, 1);
    ibv_wc wc{};
    ibv_send_wr* refused = nullptr;
    good = good && ::ibv_poll_cq(server->recv_cq, 1, &wc) == 1 && ::ibv_poll_cq(server->recv_cq, 1, &wc) == 0 &&
           ::ibv_post_send(server->qp, &send, &refused) == 0;
    done = good;
    ::pthread_testcancel();
    return 0;
  }};
  pthread_t thread{};
  begin(thread, sleeper);
  ASSERT_EQ(::pthread_cancel(thread), 0);
  go = true;
  void* result = nullptr;
  ASSERT_EQ(::pthread_join(thread, &result), 0);
  EXPECT_TRUE(done);
  EXPECT_EQ(result, PTHREAD_CANCELED);
  EXPECT_EQ(next_completion(client->recv_cq).status, IBV_WC_SUCCESS);
  destroy(client);
  destroy(server);
  destroy(listener);
}

TEST_P(Waits, ASignalEndsIt) {
  handle(0);
  Sleeper sleeper{.wait = [this] { return wait(); }};
  pthread_t thread{};
  begin(thread, sleeper);
  ASSERT_EQ(::pthread_kill(thread, SIGUSR1), 0);
  ASSERT_EQ(::pthread_join(thread, nullptr), 0);
  EXPECT_EQ(sleeper.result, -1);
  EXPECT_EQ(sleeper.error, EINTR);
}

// While the thread moves octets, of which it knows by itself when the time for that is over.
TEST_P(Waits, ASignalEndsItAtOnceAsWell) {
  handle(0);
  unsigned by_the_first = 0;
  constexpr unsigned kTimes = 20;
  for (unsigned i = 0; i < kTimes; ++i) {
    Sleeper sleeper{.wait = [this] { return wait(); }};
    pthread_t thread{};
    begin(thread, sleeper, 500us);
    for (unsigned signals = 1;; ++signals) {
      ASSERT_EQ(::pthread_kill(thread, SIGUSR1), 0);
      for (int looks = 0; looks < 200 && !sleeper.over; ++looks) std::this_thread::sleep_for(1ms);
      if (!sleeper.over) continue;  // it had not begun to wait
      by_the_first += signals == 1 ? 1 : 0;
      break;
    }
    ASSERT_EQ(::pthread_join(thread, nullptr), 0);
    EXPECT_EQ(sleeper.result, -1);
    EXPECT_EQ(sleeper.error, EINTR);
  }
  EXPECT_GE(by_the_first, kTimes / 2);
}

TEST_P(Waits, AThreadMayBeCancelledAtOnceAsWell) {
  for (int i = 0; i < 20; ++i) {
    Sleeper sleeper{.wait = [this] { return wait(); }};
    pthread_t thread{};
    begin(thread, sleeper, 200us);
    ASSERT_EQ(::pthread_cancel(thread), 0);
    void* result = nullptr;
    ASSERT_EQ(::pthread_join(thread, &result), 0);
    EXPECT_EQ(result, PTHREAD_CANCELED);
  }
}

// Of a signal that comes so long after it began, and whose handler says that calls go on.
class WaitsOn : public Waits {
 protected:
  void signalled_after(std::chrono::microseconds time) {
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "the thread sanitizer calls handlers when a call of the C library ends, and this one goes on";
#endif
    handle(SA_RESTART);
    handled = 0;
    Sleeper sleeper{.wait = [this] { return wait(); }};
    sleeper.result = 77;
    pthread_t thread{};
    begin(thread, sleeper, time);
    ASSERT_EQ(::pthread_kill(thread, SIGUSR1), 0);
    while (handled == 0) std::this_thread::sleep_for(1ms);
    std::this_thread::sleep_for(20ms);
    EXPECT_EQ(sleeper.result, 77) << "it sleeps on";
    ASSERT_EQ(::pthread_cancel(thread), 0);
    void* result = nullptr;
    ASSERT_EQ(::pthread_join(thread, &result), 0);
    EXPECT_EQ(result, PTHREAD_CANCELED) << "it had returned";
  }
};

TEST_P(WaitsOn, WhileItSleeps) {
  signalled_after(30ms);
}
TEST_P(WaitsOn, WhileItMovesTheOctets) {
  signalled_after(500us);
}

INSTANTIATE_TEST_SUITE_P(Each, WaitsOn,
                         ::testing::Values(Wait::kCompletion, Wait::kConnection, Wait::kRequest, Wait::kAsynchronous));
INSTANTIATE_TEST_SUITE_P(Each, Waits,
                         ::testing::Values(Wait::kCompletion, Wait::kConnection, Wait::kRequest, Wait::kAsynchronous));

// Who moves the octets while threads wait.
class Leads : public Waits {
 protected:
  static std::thread::id runner() {
    std::promise<std::thread::id> ran;
    boost::asio::post(engine().io(), [&] { ran.set_value(std::this_thread::get_id()); });
    return ran.get_future().get();
  }
  static void end(pthread_t thread, Sleeper& sleeper) {
    while (!sleeper.over) {
      ASSERT_EQ(::pthread_kill(thread, SIGUSR1), 0);
      std::this_thread::sleep_for(5ms);
    }
    ASSERT_EQ(::pthread_join(thread, nullptr), 0);
  }
  // How often the thread that waits does, of some times.
  unsigned times_it_leads() {
    handle(0);
    unsigned led = 0;
    for (int i = 0; i < 40; ++i) {
      Sleeper sleeper{.wait = [this] { return wait(); }};
      pthread_t thread{};
      begin(thread, sleeper, 200us);
      led += runner() == sleeper.id.load() ? 1 : 0;
      end(thread, sleeper);
    }
    return led;
  }
};

TEST_P(Leads, TheThreadThatWaits) {
  const unsigned led = times_it_leads();
  if (GetParam() == Wait::kAsynchronous) {
    EXPECT_EQ(led, 0U) << "it waits for what hardly ever comes";
  } else {
    EXPECT_GT(led, 0U);
  }
}

TEST_P(Leads, AfterOthersWereCancelled) {
  Sleeper sleeper{.wait = [this] { return wait(); }};
  pthread_t thread{};
  begin(thread, sleeper);
  ASSERT_EQ(::pthread_cancel(thread), 0);
  ASSERT_EQ(::pthread_join(thread, nullptr), 0);
  if (GetParam() != Wait::kAsynchronous) {
    EXPECT_GT(times_it_leads(), 0U);
  }
}

TEST_P(Leads, NobodyBesideOneThatSleepsForACompletion) {
  handle(0);
  ibv_comp_channel* const other = ::ibv_create_comp_channel(context_);
  Sleeper first{.wait = [&] {
    ibv_cq* cq = nullptr;
    void* of = nullptr;
    return ::ibv_get_cq_event(other, &cq, &of);
  }};
  pthread_t thread{};
  begin(thread, first);
  EXPECT_EQ(times_it_leads(), 0U);
  EXPECT_NE(runner(), first.id.load());
  end(thread, first);
  ::ibv_destroy_comp_channel(other);
}

INSTANTIATE_TEST_SUITE_P(Each, Leads,
                         ::testing::Values(Wait::kCompletion, Wait::kConnection, Wait::kRequest, Wait::kAsynchronous));

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

TEST(Contexts, HaveTheirOwnDescriptorAndEvents) {
  ibv_context* const one = ::ibv_open_device(dropin::device());
  ibv_context* const two = ::ibv_open_device(dropin::device());
  ASSERT_NE(one->async_fd, two->async_fd);
  ASSERT_EQ(::fcntl(one->async_fd, F_SETFL, O_NONBLOCK), 0);
  EXPECT_EQ(::fcntl(two->async_fd, F_GETFL) & O_NONBLOCK, 0);
  ibv_pd* const pd = ::ibv_alloc_pd(two);
  ibv_srq_init_attr of_srq{};
  of_srq.attr = {.max_wr = 4, .max_sge = 1, .srq_limit = 0};
  ibv_srq* const srq = ::ibv_create_srq(pd, &of_srq);
  ASSERT_NE(srq, nullptr);
  ibv_srq_attr limit{};
  limit.srq_limit = 1;
  ASSERT_EQ(::ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT), 0);  // nothing is posted: it is reached
  EXPECT_TRUE(readable(two->async_fd, 10000));
  EXPECT_FALSE(readable(one->async_fd));
  ibv_async_event event{};
  EXPECT_EQ(::ibv_get_async_event(one, &event), -1);
  EXPECT_EQ(errno, EAGAIN);
  ASSERT_EQ(::ibv_get_async_event(two, &event), 0);
  EXPECT_EQ(event.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
  EXPECT_EQ(event.element.srq, srq);
  ::ibv_ack_async_event(&event);
  EXPECT_EQ(::ibv_destroy_srq(srq), 0);
  EXPECT_EQ(::ibv_dealloc_pd(pd), 0);
  EXPECT_EQ(::ibv_close_device(two), 0);
  EXPECT_EQ(::ibv_close_device(one), 0);
}

// An event that was not taken is not given while the queue waits to be destroyed.
TEST(CompletionQueues, AreDestroyedWithEventsThatNobodyTook) {
  ibv_context* const context = ::ibv_open_device(dropin::device());
  ibv_pd* const pd = ::ibv_alloc_pd(context);
  ibv_comp_channel* const channel = ::ibv_create_comp_channel(context);
  ibv_cq* const cq = ::ibv_create_cq(context, 4, nullptr, channel, 0);
  ibv_qp_attr over{};
  over.qp_state = IBV_QPS_ERR;
  const auto event = [&] {
    ibv_qp_init_attr of_qp{};
    of_qp.send_cq = of_qp.recv_cq = cq;
    of_qp.qp_type = IBV_QPT_RC;
    of_qp.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 0};
    ibv_qp* const qp = ::ibv_create_qp(pd, &of_qp);
    ibv_recv_wr wr{};
    ibv_recv_wr* bad = nullptr;
    EXPECT_EQ(::ibv_post_recv(qp, &wr, &bad), 0);
    EXPECT_EQ(::ibv_req_notify_cq(cq, 0), 0);
    EXPECT_EQ(::ibv_modify_qp(qp, &over, IBV_QP_STATE), 0);
    EXPECT_EQ(::ibv_destroy_qp(qp), 0);
  };
  event();
  ibv_cq* got = nullptr;
  void* of = nullptr;
  ASSERT_EQ(::ibv_get_cq_event(channel, &got, &of), 0);
  event();
  std::atomic<bool> destroyed{false};
  std::thread other([&] {
    EXPECT_EQ(::ibv_destroy_cq(cq), 0);
    destroyed = true;
  });
  std::this_thread::sleep_for(50ms);
  EXPECT_FALSE(destroyed) << "it waits for the acknowledgement";
  EXPECT_FALSE(readable(channel->fd));
  ::ibv_ack_cq_events(cq, 1);
  other.join();
  EXPECT_EQ(::ibv_destroy_comp_channel(channel), 0);
  EXPECT_EQ(::ibv_dealloc_pd(pd), 0);
  EXPECT_EQ(::ibv_close_device(context), 0);
}

}  // namespace
}  // namespace iwarp::dropin::test
