// The rdma_cm functions of the drop-in libraries, as a program sees them that knows rdma_cma.h only. On the loopback.
#include "tests/dropin/rdma_names.h"
//
#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <thread>

namespace {

using namespace std::chrono_literals;

sockaddr_in loopback(std::uint16_t port = 0) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

template <class Address>
sockaddr* as_sockaddr(Address& address) {
  return reinterpret_cast<sockaddr*>(&address);
}

bool readable(int descriptor, int timeout_ms = 0) {
  pollfd watched{descriptor, POLLIN, 0};
  return ::poll(&watched, 1, timeout_ms) == 1;
}

// An event channel that waits 20 s at most.
class Channel {
 public:
  Channel() : channel_(::rdma_create_event_channel()) {}
  ~Channel() { ::rdma_destroy_event_channel(channel_); }

  operator rdma_event_channel*() const { return channel_; }
  rdma_event_channel* operator->() const { return channel_; }

  // Null: none came, or another.
  rdma_cm_event* take(rdma_cm_event_type type) {
    if (!readable(channel_->fd, 20000)) {
      ADD_FAILURE() << "no " << ::rdma_event_str(type);
      return nullptr;
    }
    rdma_cm_event* event = nullptr;
    EXPECT_EQ(::rdma_get_cm_event(channel_, &event), 0);
    EXPECT_STREQ(::rdma_event_str(event->event), ::rdma_event_str(type)) << event->status;
    if (event->event == type) return event;
    ::rdma_ack_cm_event(event);
    return nullptr;
  }
  void expect(rdma_cm_event_type type, int status = 0) {
    rdma_cm_event* const event = take(type);
    ASSERT_NE(event, nullptr);
    EXPECT_EQ(event->status, status);
    ::rdma_ack_cm_event(event);
  }

 private:
  rdma_event_channel* channel_;
};

rdma_cm_id* make_id(rdma_event_channel* channel) {
  rdma_cm_id* id = nullptr;
  EXPECT_EQ(::rdma_create_id(channel, &id, nullptr, RDMA_PS_TCP), 0) << std::strerror(errno);
  return id;
}

rdma_cm_id* make_listener(rdma_event_channel* channel) {
  rdma_cm_id* const id = make_id(channel);
  auto address = loopback();
  EXPECT_EQ(::rdma_bind_addr(id, as_sockaddr(address)), 0);
  EXPECT_EQ(::rdma_listen(id, 8), 0);
  return id;
}

ibv_qp_init_attr attributes() {
  ibv_qp_init_attr made{};
  made.qp_type = IBV_QPT_RC;
  made.cap = {.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 0};
  return made;
}

void make_queue_pair(rdma_cm_id* id) {
  auto wanted = attributes();
  ASSERT_EQ(::rdma_create_qp(id, nullptr, &wanted), 0) << std::strerror(errno);
}

void destroy(rdma_cm_id* id) {
  ::rdma_destroy_ep(id);
}

// Resolved, with a queue pair.
rdma_cm_id* make_client(Channel& channel, std::uint16_t port) {
  rdma_cm_id* const id = make_id(channel);
  auto peer = loopback(port);
  EXPECT_EQ(::rdma_resolve_addr(id, nullptr, as_sockaddr(peer), 1000), 0);
  channel.expect(RDMA_CM_EVENT_ADDR_RESOLVED);
  EXPECT_EQ(::rdma_resolve_route(id, 1000), 0);
  channel.expect(RDMA_CM_EVENT_ROUTE_RESOLVED);
  make_queue_pair(id);
  return id;
}

// `private_data` stays the caller's.
rdma_conn_param parameters(std::string_view private_data = {}, std::uint8_t responder_resources = 3,
                           std::uint8_t initiator_depth = 5) {
  rdma_conn_param made{};
  made.private_data = private_data.data();
  made.private_data_len = static_cast<std::uint8_t>(private_data.size());
  made.responder_resources = responder_resources;
  made.initiator_depth = initiator_depth;
  return made;
}

std::string private_data_of(const rdma_cm_event& event) {
  return {static_cast<const char*>(event.param.conn.private_data), event.param.conn.private_data_len};
}

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

// As rping's does when it ends.
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
  rdma_cm_id* const first = make_listener(channel);
  auto address = loopback(ntohs(::rdma_get_src_port(first)));
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

// A listener and a client that has resolved its address, each with a channel of its own.
class RdmaCmPair : public ::testing::Test {
 protected:
  void connect() {
    auto wanted = parameters();
    ASSERT_EQ(::rdma_connect(client, &wanted), 0);
  }

  Channel passive, active;
  rdma_cm_id* const listener = make_listener(passive);
  rdma_cm_id* const client = make_client(active, ntohs(::rdma_get_src_port(listener)));
};

TEST_F(RdmaCmPair, TellsBothEndsWhatTheOtherOneWants) {
  auto wanted = parameters("who is there");
  ASSERT_EQ(::rdma_connect(client, &wanted), 0);

  rdma_cm_event* event = passive.take(RDMA_CM_EVENT_CONNECT_REQUEST);
  ASSERT_NE(event, nullptr);
  rdma_cm_id* const server = event->id;
  EXPECT_EQ(event->listen_id, listener);
  EXPECT_EQ(server->channel, static_cast<rdma_event_channel*>(passive));
  EXPECT_NE(server->verbs, nullptr);
  EXPECT_EQ(private_data_of(*event), "who is there");
  EXPECT_EQ(event->param.conn.responder_resources, 5);  // the peer's initiator_depth
  EXPECT_EQ(event->param.conn.initiator_depth, 3);
  ::rdma_ack_cm_event(event);
  make_queue_pair(server);
  auto answer = parameters("me", 5, 3);
  ASSERT_EQ(::rdma_accept(server, &answer), 0);
  passive.expect(RDMA_CM_EVENT_ESTABLISHED);

  event = active.take(RDMA_CM_EVENT_ESTABLISHED);
  ASSERT_NE(event, nullptr);
  EXPECT_EQ(event->id, client);
  EXPECT_EQ(private_data_of(*event), "me");
  EXPECT_EQ(event->param.conn.responder_resources, 3);
  EXPECT_EQ(event->param.conn.initiator_depth, 5);
  ::rdma_ack_cm_event(event);
  EXPECT_EQ(::rdma_get_src_port(client), ::rdma_get_dst_port(server));
  EXPECT_EQ(::rdma_get_dst_port(client), ::rdma_get_src_port(server));
  EXPECT_EQ(::rdma_establish(client), 0);

  ASSERT_EQ(::rdma_disconnect(client), 0);
  active.expect(RDMA_CM_EVENT_DISCONNECTED);
  passive.expect(RDMA_CM_EVENT_DISCONNECTED);
  EXPECT_EQ(::rdma_disconnect(server), 0);
  EXPECT_FALSE(readable(active->fd, 50));
  EXPECT_FALSE(readable(passive->fd, 50));
  destroy(client);
  destroy(server);
  destroy(listener);
}

TEST_F(RdmaCmPair, IsRejectedWithPrivateData) {
  connect();
  rdma_cm_event* event = passive.take(RDMA_CM_EVENT_CONNECT_REQUEST);
  ASSERT_NE(event, nullptr);
  rdma_cm_id* const server = event->id;
  ::rdma_ack_cm_event(event);
  EXPECT_EQ(::rdma_reject(server, "no", 2), 0);
  EXPECT_EQ(::rdma_reject(server, "no", 2), -1);
  event = active.take(RDMA_CM_EVENT_REJECTED);
  ASSERT_NE(event, nullptr);
  EXPECT_EQ(event->status, -ECONNREFUSED);
  EXPECT_EQ(private_data_of(*event), "no");
  ::rdma_ack_cm_event(event);
  destroy(server);
  destroy(client);
  destroy(listener);
}

TEST(RdmaCmConnect, IsRejectedWhereNobodyListens) {
  Channel channel;
  rdma_cm_id* const listener = make_listener(channel);
  const auto port = ntohs(::rdma_get_src_port(listener));
  destroy(listener);
  rdma_cm_id* const client = make_client(channel, port);
  auto wanted = parameters();
  ASSERT_EQ(::rdma_connect(client, &wanted), 0);
  channel.expect(RDMA_CM_EVENT_REJECTED, -ECONNREFUSED);
  destroy(client);
}

TEST_F(RdmaCmPair, UntakenRequestsAreRejectedWithTheListener) {
  connect();
  ASSERT_TRUE(readable(passive->fd, 20000));
  destroy(listener);
  active.expect(RDMA_CM_EVENT_REJECTED, -ECONNREFUSED);
  destroy(client);
}

TEST_F(RdmaCmPair, MayBeGivenUp) {
  connect();
  ASSERT_TRUE(readable(passive->fd, 20000));
  destroy(client);
  destroy(listener);
  EXPECT_FALSE(readable(active->fd));
}

TEST_F(RdmaCmPair, PrivateDataHasALimit) {
  const std::string data(252, 'x');
  auto wanted = parameters(data);
  EXPECT_EQ(::rdma_connect(client, &wanted), -1);
  EXPECT_EQ(errno, EINVAL);
  auto longest = parameters(std::string_view(data).substr(0, 251));
  ASSERT_EQ(::rdma_connect(client, &longest), 0);
  rdma_cm_event* const event = passive.take(RDMA_CM_EVENT_CONNECT_REQUEST);
  ASSERT_NE(event, nullptr);
  EXPECT_EQ(private_data_of(*event), std::string(251, 'x'));
  rdma_cm_id* const server = event->id;
  ::rdma_ack_cm_event(event);
  destroy(server);  // undecided: rejected
  active.expect(RDMA_CM_EVENT_REJECTED, -ECONNREFUSED);
  destroy(client);
  destroy(listener);
}

// A server that accepts, rejects or drops what comes, and ends its connections when their peers do.
class RandomServer {
 public:
  RandomServer() : listener_(make_listener(channel_)), thread_([this] { run(); }) {}
  ~RandomServer() {
    stopped_ = true;
    thread_.join();
    for (rdma_cm_id* id : ids_) destroy(id);
    destroy(listener_);
  }
  [[nodiscard]] std::uint16_t port() const { return ntohs(::rdma_get_src_port(listener_)); }

 private:
  void run() {
    while (!stopped_ || readable(channel_->fd, 100)) {
      if (!readable(channel_->fd, 20)) continue;
      rdma_cm_event* event = nullptr;
      ASSERT_EQ(::rdma_get_cm_event(channel_, &event), 0);
      rdma_cm_id* const id = event->id;
      const auto type = event->event;
      ::rdma_ack_cm_event(event);
      if (type == RDMA_CM_EVENT_CONNECT_REQUEST) {
        ids_.insert(id);
        decide(id);
      } else if (type == RDMA_CM_EVENT_DISCONNECTED || type == RDMA_CM_EVENT_CONNECT_ERROR) {
        if (random_() % 2 == 0) (void)::rdma_disconnect(id);
        end(id);
      }
    }
  }
  void decide(rdma_cm_id* id) {
    auto answer = parameters();
    switch (random_() % 8) {
      case 0:
        EXPECT_EQ(::rdma_reject(id, "no", 2), 0);
        return end(id);
      case 1:
        return end(id);
      case 2:
        make_queue_pair(id);
        (void)::rdma_accept(id, &answer);
        return end(id);
      default:
        make_queue_pair(id);
        (void)::rdma_accept(id, &answer);
    }
  }
  void end(rdma_cm_id* id) {
    ids_.erase(id);
    destroy(id);
  }

  Channel channel_;
  rdma_cm_id* listener_;
  std::minstd_rand random_{1};
  std::set<rdma_cm_id*> ids_;
  std::atomic<bool> stopped_{false};
  std::thread thread_;
};

void connect_at_random(std::uint16_t port, unsigned seed) {
  std::minstd_rand random(seed);
  Channel channel;
  for (int i = 0; i < 100; ++i) {
    rdma_cm_id* const id = make_client(channel, port);
    auto wanted = parameters();
    EXPECT_EQ(::rdma_connect(id, &wanted), 0);
    const auto choice = random() % 4;
    if (choice == 1) std::this_thread::sleep_for(std::chrono::microseconds(random() % 2000));
    if (choice >= 2) {
      ASSERT_TRUE(readable(channel->fd, 20000));
      rdma_cm_event* event = nullptr;
      ASSERT_EQ(::rdma_get_cm_event(channel, &event), 0);
      const bool established = event->event == RDMA_CM_EVENT_ESTABLISHED;
      EXPECT_TRUE(established || event->event == RDMA_CM_EVENT_REJECTED) << ::rdma_event_str(event->event);
      ::rdma_ack_cm_event(event);
      if (choice == 3 && established) {
        EXPECT_EQ(::rdma_disconnect(id), 0);
        channel.expect(RDMA_CM_EVENT_DISCONNECTED);
      }
    }
    destroy(id);
  }
  EXPECT_FALSE(readable(channel->fd));
}

TEST(RdmaCmConnect, MayEndAtAnyMoment) {
  RandomServer server;
  std::thread one([&] { connect_at_random(server.port(), 2); });
  std::thread two([&] { connect_at_random(server.port(), 3); });
  connect_at_random(server.port(), 4);
  one.join();
  two.join();
}

TEST(RdmaCmSynchronous, CallsKeepTheirEvent) {
  rdma_cm_id* const id = make_id(nullptr);
  auto peer = loopback(1);
  ASSERT_EQ(::rdma_resolve_addr(id, nullptr, as_sockaddr(peer), 1000), 0);
  ASSERT_NE(id->event, nullptr);
  EXPECT_EQ(id->event->event, RDMA_CM_EVENT_ADDR_RESOLVED);
  ASSERT_EQ(::rdma_resolve_route(id, 1000), 0);
  EXPECT_EQ(id->event->event, RDMA_CM_EVENT_ROUTE_RESOLVED);
  make_queue_pair(id);
  EXPECT_NE(id->send_cq, nullptr);
  EXPECT_NE(id->recv_cq_channel, nullptr);
  EXPECT_EQ(::rdma_connect(id, nullptr), -1);  // nobody listens at port 1
  EXPECT_EQ(errno, ECONNREFUSED);
  EXPECT_EQ(id->event->event, RDMA_CM_EVENT_REJECTED);
  destroy(id);
}

TEST(RdmaCmSynchronous, EndpointsConnectAndDisconnect) {
  rdma_addrinfo hints{};
  hints.ai_flags = RAI_PASSIVE;
  hints.ai_port_space = RDMA_PS_TCP;
  rdma_addrinfo* found = nullptr;
  ASSERT_EQ(::rdma_getaddrinfo("127.0.0.1", "0", &hints, &found), 0);
  rdma_cm_id* listener = nullptr;
  auto wanted = attributes();
  ASSERT_EQ(::rdma_create_ep(&listener, found, nullptr, &wanted), 0);
  ::rdma_freeaddrinfo(found);
  ASSERT_EQ(::rdma_listen(listener, 0), 0);
  const auto port = std::to_string(ntohs(::rdma_get_src_port(listener)));

  std::thread server([&] {
    rdma_cm_id* id = nullptr;
    ASSERT_EQ(::rdma_get_request(listener, &id), 0) << std::strerror(errno);
    EXPECT_NE(id->qp, nullptr);
    EXPECT_NE(id->channel, listener->channel);
    EXPECT_EQ(::rdma_accept(id, nullptr), 0) << std::strerror(errno);
    EXPECT_EQ(::rdma_disconnect(id), 0);
    EXPECT_EQ(id->event->event, RDMA_CM_EVENT_DISCONNECTED);
    destroy(id);
  });
  hints.ai_flags = 0;
  ASSERT_EQ(::rdma_getaddrinfo("127.0.0.1", port.c_str(), &hints, &found), 0);
  rdma_cm_id* client = nullptr;
  ASSERT_EQ(::rdma_create_ep(&client, found, nullptr, &wanted), 0);
  ::rdma_freeaddrinfo(found);
  EXPECT_EQ(::rdma_connect(client, nullptr), 0) << std::strerror(errno);
  EXPECT_EQ(::rdma_disconnect(client), 0);
  EXPECT_EQ(::rdma_disconnect(client), 0);  // it has ended: nothing to wait for
  server.join();
  destroy(client);
  destroy(listener);
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
  EXPECT_EQ(::rdma_set_option(id, RDMA_OPTION_ID, 77, &on, sizeof on), -1);
  EXPECT_EQ(errno, ENOSYS);
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
