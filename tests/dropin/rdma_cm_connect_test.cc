// Connections of rdma_cm and their ends, as a program sees them that knows rdma_cma.h only.
#include "tests/dropin/rdma_cm_support.h"
//
#include <atomic>
#include <chrono>
#include <random>
#include <set>
#include <string>
#include <thread>

#include "tests/dropin/completion.h"

namespace iwarp::dropin::test {
namespace {

using namespace std::chrono_literals;

// As rping's does when it ends.
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

// Its last message waits in the completion queue when the peer goes.
TEST_F(RdmaCmPair, EndIsToldBehindWhatCameBeforeIt) {
  for (const bool polls : {true, false}) {
    rdma_cm_id* const from = polls ? client : make_client(active, ntohs(::rdma_get_src_port(listener)));
    rdma_cm_id* const server = establish(from);
    ASSERT_NE(server, nullptr);
    ibv_recv_wr receive{};
    ibv_recv_wr* bad_receive = nullptr;
    ASSERT_EQ(::ibv_post_recv(server->qp, &receive, &bad_receive), 0);

    ibv_send_wr empty{};
    empty.opcode = IBV_WR_SEND;
    empty.send_flags = IBV_SEND_SIGNALED;
    ibv_send_wr* bad = nullptr;
    const auto began = std::chrono::steady_clock::now();
    ASSERT_EQ(::ibv_post_send(from->qp, &empty, &bad), 0);
    ASSERT_EQ(::rdma_disconnect(from), 0);
    active.expect(RDMA_CM_EVENT_DISCONNECTED);
    if (polls) {
      const bool told = readable(passive->fd, 30);
      if (std::chrono::steady_clock::now() - began < 90ms) {
        EXPECT_FALSE(told);
      }
      EXPECT_EQ(next_completion(server->recv_cq).status, IBV_WC_SUCCESS);
    }
    passive.expect(RDMA_CM_EVENT_DISCONNECTED);
    destroy(from);
    destroy(server);
  }
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

}  // namespace
}  // namespace iwarp::dropin::test
