// What the tests of rdma_cm begin with: ids, channels and a pair of them, on the loopback.
#pragma once

#include "tests/dropin/rdma_names.h"
//
#include <gtest/gtest.h>
#include <poll.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>

#include "tests/dropin/loopback.h"

namespace iwarp::dropin::test {

template <class Address>
sockaddr* as_sockaddr(Address& address) {
  return reinterpret_cast<sockaddr*>(&address);
}

inline bool readable(int descriptor, int timeout_ms = 0) {
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

inline rdma_cm_id* make_id(rdma_event_channel* channel) {
  rdma_cm_id* id = nullptr;
  EXPECT_EQ(::rdma_create_id(channel, &id, nullptr, RDMA_PS_TCP), 0) << std::strerror(errno);
  return id;
}

inline rdma_cm_id* make_listener(rdma_event_channel* channel) {
  rdma_cm_id* const id = make_id(channel);
  auto address = loopback();
  EXPECT_EQ(::rdma_bind_addr(id, as_sockaddr(address)), 0);
  EXPECT_EQ(::rdma_listen(id, 8), 0);
  return id;
}

inline ibv_qp_init_attr attributes() {
  ibv_qp_init_attr made{};
  made.qp_type = IBV_QPT_RC;
  made.cap = {.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 0};
  return made;
}

inline void make_queue_pair(rdma_cm_id* id) {
  auto wanted = attributes();
  ASSERT_EQ(::rdma_create_qp(id, nullptr, &wanted), 0) << std::strerror(errno);
}

inline void destroy(rdma_cm_id* id) {
  ::rdma_destroy_ep(id);
}

// Resolved, with a queue pair.
inline rdma_cm_id* make_client(Channel& channel, std::uint16_t port) {
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
inline rdma_conn_param parameters(std::string_view private_data = {}, std::uint8_t responder_resources = 3,
                                  std::uint8_t initiator_depth = 5) {
  rdma_conn_param made{};
  made.private_data = private_data.data();
  made.private_data_len = static_cast<std::uint8_t>(private_data.size());
  made.responder_resources = responder_resources;
  made.initiator_depth = initiator_depth;
  return made;
}

inline std::string private_data_of(const rdma_cm_event& event) {
  return {static_cast<const char*>(event.param.conn.private_data), event.param.conn.private_data_len};
}

// A listener and a client that has resolved its address, each with a channel of its own.
class RdmaCmPair : public ::testing::Test {
 protected:
  void connect() {
    auto wanted = parameters();
    ASSERT_EQ(::rdma_connect(client, &wanted), 0);
  }
  // The id of the next request. Null: something went wrong.
  rdma_cm_id* requested() {
    rdma_cm_event* const event = passive.take(RDMA_CM_EVENT_CONNECT_REQUEST);
    if (event == nullptr) return nullptr;
    rdma_cm_id* const id = event->id;
    ::rdma_ack_cm_event(event);
    return id;
  }
  // The passive end of what `from` connects to, being accepted. Null, likewise.
  rdma_cm_id* accept(rdma_cm_id* from) {
    auto wanted = parameters();
    EXPECT_EQ(::rdma_connect(from, &wanted), 0);
    rdma_cm_id* const accepted = requested();
    if (accepted == nullptr) return nullptr;
    make_queue_pair(accepted);
    EXPECT_EQ(::rdma_accept(accepted, &wanted), 0);
    return accepted;
  }
  // The same, established at both ends.
  rdma_cm_id* establish(rdma_cm_id* from) {
    rdma_cm_id* const accepted = accept(from);
    if (accepted == nullptr) return nullptr;
    passive.expect(RDMA_CM_EVENT_ESTABLISHED);
    active.expect(RDMA_CM_EVENT_ESTABLISHED);
    return accepted;
  }

  Channel passive, active;
  rdma_cm_id* const listener = make_listener(passive);
  rdma_cm_id* const client = make_client(active, ntohs(::rdma_get_src_port(listener)));
};

}  // namespace iwarp::dropin::test
