// Several contexts in one process, each with its own events, and what is destroyed with events that nobody took.
#include "tests/dropin/rdma_cm_support.h"
//
#include <fcntl.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "dropin/verbs/interface.h"
#include "tests/dropin/completion.h"

namespace iwarp::dropin::test {
namespace {

using namespace std::chrono_literals;

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
