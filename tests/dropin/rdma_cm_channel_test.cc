// Event channels of rdma_cm, as a program sees them that knows rdma_cma.h only.
#include "tests/dropin/rdma_cm_support.h"
//
#include <fcntl.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace iwarp::dropin::test {
namespace {

using namespace std::chrono_literals;

TEST(RdmaCmChannel, IsReadableWhileEventsWait) {
  Channel channel;
  rdma_cm_id* const id = make_id(channel);
  EXPECT_FALSE(readable(channel->fd));
  auto peer = loopback(1);
  ASSERT_EQ(::rdma_resolve_addr(id, nullptr, as_sockaddr(peer), 1000), 0);
  EXPECT_TRUE(readable(channel->fd));
  ASSERT_EQ(::rdma_resolve_route(id, 1000), 0);
  channel.expect(RDMA_CM_EVENT_ADDR_RESOLVED);
  EXPECT_TRUE(readable(channel->fd));
  channel.expect(RDMA_CM_EVENT_ROUTE_RESOLVED);
  EXPECT_FALSE(readable(channel->fd));
  EXPECT_EQ(::rdma_destroy_id(id), 0);
}

TEST(RdmaCmChannel, DoesNotWaitWithNonBlock) {
  Channel channel;
  ASSERT_EQ(::fcntl(channel->fd, F_SETFL, O_NONBLOCK), 0);
  rdma_cm_event* event = nullptr;
  EXPECT_EQ(::rdma_get_cm_event(channel, &event), -1);
  EXPECT_EQ(errno, EAGAIN);
}

TEST(RdmaCmChannel, WaitsForAnEventOfAnotherThread) {
  Channel channel;
  rdma_cm_id* const id = make_id(channel);
  std::thread other([&] {
    std::this_thread::sleep_for(50ms);
    auto peer = loopback(1);
    EXPECT_EQ(::rdma_resolve_addr(id, nullptr, as_sockaddr(peer), 1000), 0);
  });
  rdma_cm_event* event = nullptr;
  EXPECT_EQ(::rdma_get_cm_event(channel, &event), 0);
  EXPECT_EQ(event->id, id);
  other.join();
  ::rdma_ack_cm_event(event);
  ::rdma_destroy_id(id);
}

TEST(RdmaCmChannel, ThreadStaysInADestroyedOne) {
  rdma_event_channel* const channel = ::rdma_create_event_channel();
  // Both outlive the test, for the thread does.
  static std::atomic<bool> began{false}, returned{false};
  std::thread([channel] {
    began = true;
    rdma_cm_event* event = nullptr;
    (void)::rdma_get_cm_event(channel, &event);
    returned = true;
  }).detach();
  while (!began) std::this_thread::sleep_for(1ms);
  ::rdma_destroy_event_channel(channel);
  std::this_thread::sleep_for(50ms);
  EXPECT_FALSE(returned);
}

}  // namespace
}  // namespace iwarp::dropin::test
