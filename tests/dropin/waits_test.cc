// Threads that sleep for an event, as in the system call of a device: signals and cancellation get them out.
#include "tests/dropin/rdma_cm_support.h"
//
#include <pthread.h>
#include <signal.h>

#include <array>
#include <atomic>
#include <boost/asio/post.hpp>
#include <chrono>
#include <functional>
#include <future>
#include <thread>

#include "dropin/verbs/interface.h"
#include "tests/dropin/completion.h"

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

}  // namespace
}  // namespace iwarp::dropin::test
