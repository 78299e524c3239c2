// Ids of rdma_cm before they connect, names and devices, as a program sees them that knows rdma_cma.h only.
#include "tests/dropin/rdma_cm_support.h"
//
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace iwarp::dropin::test {
namespace {

using namespace std::chrono_literals;

TEST(RdmaCmId, DestroyingWaitsForTheAcknowledgement) {
  Channel channel;
  rdma_cm_id* const id = make_id(channel);
  auto peer = loopback(1);
  ASSERT_EQ(::rdma_resolve_addr(id, nullptr, as_sockaddr(peer), 1000), 0);
  rdma_cm_event* const event = channel.take(RDMA_CM_EVENT_ADDR_RESOLVED);
  ASSERT_NE(event, nullptr);
  std::atomic<bool> destroyed{false};
  std::thread other([&] {
    ::rdma_destroy_id(id);
    destroyed = true;
  });
  std::this_thread::sleep_for(50ms);
  EXPECT_FALSE(destroyed);
  ::rdma_ack_cm_event(event);
  other.join();
}

TEST(RdmaCmId, TakesItsUntakenEventsAlong) {
  Channel channel;
  rdma_cm_id* const id = make_id(channel);
  auto peer = loopback(1);
  ASSERT_EQ(::rdma_resolve_addr(id, nullptr, as_sockaddr(peer), 1000), 0);
  EXPECT_TRUE(readable(channel->fd));
  ::rdma_destroy_id(id);
  EXPECT_FALSE(readable(channel->fd));
}

TEST(RdmaCmId, MovesItsEventsToAnotherChannel) {
  Channel one, two;
  rdma_cm_id* const id = make_id(one);
  auto peer = loopback(1);
  ASSERT_EQ(::rdma_resolve_addr(id, nullptr, as_sockaddr(peer), 1000), 0);
  ASSERT_EQ(::rdma_migrate_id(id, two), 0);
  EXPECT_EQ(id->channel, static_cast<rdma_event_channel*>(two));
  EXPECT_FALSE(readable(one->fd));
  two.expect(RDMA_CM_EVENT_ADDR_RESOLVED);
  ::rdma_destroy_id(id);
}

TEST(RdmaCmId, HasNoDatagrams) {
  Channel channel;
  rdma_cm_id* id = nullptr;
  EXPECT_EQ(::rdma_create_id(channel, &id, nullptr, RDMA_PS_UDP), -1);
  EXPECT_EQ(errno, EOPNOTSUPP);
  rdma_cm_id* const other = make_id(channel);
  auto group = loopback();
  EXPECT_EQ(::rdma_join_multicast(other, as_sockaddr(group), nullptr), -1);
  EXPECT_EQ(errno, EOPNOTSUPP);
  ::rdma_destroy_id(other);
}

TEST(RdmaCmBind, GivesAPortAtOnceAndKeepsIt) {
  Channel channel;
  rdma_cm_id* const id = make_id(channel);
  auto address = loopback();
  ASSERT_EQ(::rdma_bind_addr(id, as_sockaddr(address)), 0);
  EXPECT_NE(::rdma_get_src_port(id), 0);
  EXPECT_NE(id->verbs, nullptr);
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  auto same = loopback(ntohs(::rdma_get_src_port(id)));
  EXPECT_EQ(::bind(socket, as_sockaddr(same), sizeof same), -1);
  EXPECT_EQ(errno, EADDRINUSE);
  ::close(socket);
  ::rdma_destroy_id(id);
}

TEST(RdmaCmBind, NamesNoDeviceForAnyAddress) {
  Channel channel;
  rdma_cm_id* const id = make_id(channel);
  sockaddr_in any{};
  any.sin_family = AF_INET;
  ASSERT_EQ(::rdma_bind_addr(id, as_sockaddr(any)), 0);
  EXPECT_NE(::rdma_get_src_port(id), 0);
  EXPECT_EQ(id->verbs, nullptr);
  EXPECT_EQ(::rdma_bind_addr(id, as_sockaddr(any)), -1);
  EXPECT_EQ(errno, EINVAL);
  ::rdma_destroy_id(id);
}

TEST(RdmaCmBind, AddressesOfOthersAreNotAvailable) {
  Channel channel;
  rdma_cm_id* const id = make_id(channel);
  auto address = loopback();
  address.sin_addr.s_addr = inet_addr("192.0.2.1");
  EXPECT_EQ(::rdma_bind_addr(id, as_sockaddr(address)), -1);
  EXPECT_EQ(errno, EADDRNOTAVAIL);
  ::rdma_destroy_id(id);
}

TEST(RdmaCmListen, PortIsFreeWhenTheIdIsDestroyed) {
  Channel channel;
  rdma_cm_id* const first = make_id(channel);
  // Not of the ports that the system gives to anybody.
  auto address = loopback(static_cast<std::uint16_t>(20000 + ::getpid() % 10000));
  for (int i = 0; ::rdma_bind_addr(first, as_sockaddr(address)) != 0; ++i) {
    ASSERT_LT(i, 1000);
    address = loopback(static_cast<std::uint16_t>(ntohs(address.sin_port) + 1));
  }
  ASSERT_EQ(::rdma_listen(first, 8), 0);
  rdma_cm_id* const refused = make_id(channel);
  EXPECT_EQ(::rdma_bind_addr(refused, as_sockaddr(address)), -1);
  EXPECT_EQ(errno, EADDRINUSE);
  ::rdma_destroy_id(refused);
  ::rdma_destroy_id(first);
  for (int i = 0; i < 50; ++i) {
    rdma_cm_id* const again = make_id(channel);
    ASSERT_EQ(::rdma_bind_addr(again, as_sockaddr(address)), 0) << std::strerror(errno);
    ASSERT_EQ(::rdma_listen(again, 1), 0) << std::strerror(errno);
    ::rdma_destroy_id(again);
  }
}

TEST(RdmaCmAddrinfo, NothingAskedIsNoAddress) {
  rdma_addrinfo hints{};
  hints.ai_flags = RAI_PASSIVE;
  hints.ai_port_space = RDMA_PS_TCP;
  rdma_addrinfo* found = nullptr;
  ASSERT_EQ(::rdma_getaddrinfo(nullptr, nullptr, &hints, &found), 0);
  EXPECT_EQ(found->ai_src_addr, nullptr);
  EXPECT_EQ(found->ai_dst_addr, nullptr);
  EXPECT_EQ(found->ai_qp_type, IBV_QPT_RC);
  ::rdma_freeaddrinfo(found);
}

TEST(RdmaCmAddrinfo, ServesBothSides) {
  rdma_addrinfo hints{};
  hints.ai_port_space = RDMA_PS_TCP;
  rdma_addrinfo* found = nullptr;
  ASSERT_EQ(::rdma_getaddrinfo("::1", "7", &hints, &found), 0);
  EXPECT_EQ(found->ai_src_addr, nullptr);
  ASSERT_NE(found->ai_dst_addr, nullptr);
  EXPECT_EQ(found->ai_dst_addr->sa_family, AF_INET6);
  ::rdma_freeaddrinfo(found);
  hints.ai_flags = RAI_PASSIVE | RAI_NUMERICHOST;
  ASSERT_EQ(::rdma_getaddrinfo("127.0.0.1", "7", &hints, &found), 0);
  ASSERT_NE(found->ai_src_addr, nullptr);
  EXPECT_EQ(found->ai_dst_addr, nullptr);
  ::rdma_freeaddrinfo(found);
  EXPECT_NE(::rdma_getaddrinfo("no number", "7", &hints, &found), 0);
}

TEST(RdmaCmOptions, OfTheId) {
  Channel channel;
  rdma_cm_id* const id = make_id(channel);
  int on = 1;
  std::uint8_t service = 8;
  EXPECT_EQ(::rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &on, sizeof on), 0);
  EXPECT_EQ(::rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &on, sizeof on), 0);
  EXPECT_EQ(::rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &service, sizeof service), 0);
  EXPECT_EQ(::rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &on, sizeof on), -1);
  EXPECT_EQ(::rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &service, sizeof service), 0);
  EXPECT_EQ(::rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &on, sizeof on), -1);
  EXPECT_EQ(::rdma_set_option(id, RDMA_OPTION_ID, 77, &on, sizeof on), -1);
  EXPECT_EQ(errno, ENOSYS);
  ::rdma_destroy_id(id);
}

// A program may name the queues itself, and the same for both directions; they go with the queue pair.
TEST(RdmaCmQueues, OneForBothDirections) {
  Channel channel;
  rdma_cm_id* const id = make_id(channel);
  auto peer = loopback(9);
  ASSERT_EQ(::rdma_resolve_addr(id, nullptr, as_sockaddr(peer), 1000), 0);
  channel.expect(RDMA_CM_EVENT_ADDR_RESOLVED);
  id->recv_cq_channel = id->send_cq_channel = ::ibv_create_comp_channel(id->verbs);
  ASSERT_NE(id->recv_cq_channel, nullptr);
  const int descriptor = id->recv_cq_channel->fd;
  id->recv_cq = id->send_cq = ::ibv_create_cq(id->verbs, 16, nullptr, id->recv_cq_channel, 0);
  ASSERT_NE(id->recv_cq, nullptr);
  make_queue_pair(id);
  ::rdma_destroy_qp(id);
  EXPECT_EQ(id->recv_cq, nullptr);
  EXPECT_EQ(id->send_cq, nullptr);
  EXPECT_EQ(id->recv_cq_channel, nullptr);
  EXPECT_EQ(id->send_cq_channel, nullptr);
  EXPECT_EQ(::fcntl(descriptor, F_GETFD), -1);
  ::rdma_destroy_id(id);
}

TEST(RdmaCmDevices, AreOne) {
  int count = 0;
  ibv_context** const devices = ::rdma_get_devices(&count);
  ASSERT_NE(devices, nullptr);
  EXPECT_EQ(count, 1);
  EXPECT_NE(devices[0], nullptr);
  EXPECT_EQ(devices[1], nullptr);
  ::rdma_free_devices(devices);
}

}  // namespace
}  // namespace iwarp::dropin::test
