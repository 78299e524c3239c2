// What a FakeVerbs is made of, and the calls of its table: for its own sources.
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include "tests/device/fake_verbs.h"

namespace iwarp::device::test {

// The one that is.
inline FakeVerbs* fake = nullptr;

inline int new_event() {
  return ::eventfd(0, EFD_NONBLOCK | EFD_SEMAPHORE | EFD_CLOEXEC);
}

inline void ring(int descriptor) {
  const std::uint64_t one = 1;
  ASSERT_EQ(::write(descriptor, &one, sizeof one), static_cast<ssize_t>(sizeof one));
}

// False: nothing rang; errno is EAGAIN.
inline bool heard(int descriptor) {
  std::uint64_t one = 0;
  return ::read(descriptor, &one, sizeof one) == static_cast<ssize_t>(sizeof one);
}

struct FakeVerbs::Channel {
  rdma_event_channel c{};
  struct Event {
    rdma_cm_event c{};
    std::vector<std::byte> octets;
    rdma_cm_id* counts_on = nullptr;
  };
  std::deque<std::unique_ptr<Event>> events;
};

struct FakeVerbs::Id {
  rdma_cm_id c{};
  int unacknowledged = 0;
  ibv_qp qp{};
};

struct FakeVerbs::Cq {
  ibv_cq c{};
  std::deque<ibv_wc> done;
  bool armed = false;
};

struct FakeVerbs::Completions {
  ibv_comp_channel c{};
  std::deque<ibv_cq*> rang;
};

// The calls of the table.
struct Calls {
  using Id = FakeVerbs::Id;
  using Channel = FakeVerbs::Channel;
  using Cq = FakeVerbs::Cq;
  using Completions = FakeVerbs::Completions;
  using Lock = std::lock_guard<std::recursive_mutex>;

  static Id& of(rdma_cm_id* id) { return *reinterpret_cast<Id*>(id); }
  static Channel& of(rdma_event_channel* channel) { return *reinterpret_cast<Channel*>(channel); }
  static Cq& of(ibv_cq* cq) { return *reinterpret_cast<Cq*>(cq); }

  static void push(Channel& to, std::unique_ptr<Channel::Event> event);
  static int create_id(rdma_event_channel* channel, rdma_cm_id** id, void*, rdma_port_space);
  static int destroy_id(rdma_cm_id* id);
  static void destroy_event_channel(rdma_event_channel* channel);
  static int get_cm_event(rdma_event_channel* channel, rdma_cm_event** event);
  static int ack_cm_event(rdma_cm_event* event);
  static int migrate_id(rdma_cm_id* id, rdma_event_channel* channel);
  static int create_qp(rdma_cm_id* id, ibv_pd* pd, ibv_qp_init_attr* how);
  static int connect(rdma_cm_id* id, rdma_conn_param* param);
  static int decide(const char* call, rdma_cm_id*, rdma_conn_param* param);
  static int post_send(ibv_qp*, ibv_send_wr* wr, ibv_send_wr** bad);
  static int post_recv(ibv_qp*, ibv_recv_wr* wr, ibv_recv_wr** bad);
  static int poll_cq(ibv_cq* cq, int most, ibv_wc* to);
  static void fill_rdmacm(VerbsTable& t);
  static void fill_ibverbs(VerbsTable& t);
};

}  // namespace iwarp::device::test
