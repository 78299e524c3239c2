// `dropin_stress pairs`: many queue pairs in one process, all with traffic at once, over one completion queue that
// several threads poll, over one each, and over one each with a completion channel for all.
#include "tests/dropin/stress_member.h"
//
#include <cstdio>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <thread>

namespace iwarp::stress {
namespace {

enum class Layout { kOneQueue, kManyQueues, kChannel };
constexpr std::array kLayouts = {Layout::kOneQueue, Layout::kManyQueues, Layout::kChannel};

constexpr unsigned kPollers = 4;

// All of them. Members 2k and 2k + 1 are peers.
class Fleet {
 public:
  Fleet(Layout layout, unsigned count) : layout_(layout) {
    int devices = 0;
    ibv_context** const list = ::rdma_get_devices(&devices);
    DEMAND(list != nullptr && devices == 1);
    context_ = list[0];
    ::rdma_free_devices(list);
    pd_ = ::ibv_alloc_pd(context_);
    DEMAND(pd_ != nullptr);
    if (layout == Layout::kChannel) {
      channel_ = ::ibv_create_comp_channel(context_);
      DEMAND(channel_ != nullptr);
    }
    const unsigned queues = layout == Layout::kOneQueue ? 1 : count;
    for (unsigned i = 0; i < queues; ++i) {
      const int room = static_cast<int>((kWindow + kReceives) * (count / queues));
      queues_.push_back(::ibv_create_cq(context_, room, nullptr, channel_, 0));
      DEMAND(queues_.back() != nullptr);
      if (layout == Layout::kChannel) DEMAND(::ibv_req_notify_cq(queues_.back(), 0) == 0);
    }
    for (unsigned i = 0; i < count; ++i) members_.emplace_back(i);
    for (unsigned i = 0; i < count; ++i) members_[i].meet(members_[i ^ 1]);
  }
  ~Fleet() {
    for (ibv_cq* const queue : queues_) DEMAND(::ibv_destroy_cq(queue) == 0);
    if (channel_ != nullptr) DEMAND(::ibv_destroy_comp_channel(channel_) == 0);
    DEMAND(::ibv_dealloc_pd(pd_) == 0);
  }
  Fleet(const Fleet&) = delete;
  Fleet& operator=(const Fleet&) = delete;

  [[nodiscard]] Member& member(unsigned i) { return members_[i]; }
  [[nodiscard]] unsigned count() const { return static_cast<unsigned>(members_.size()); }
  void make(unsigned i, rdma_cm_id* id = nullptr) {
    members_[i].make(context_, pd_, queues_[queues_.size() == 1 ? 0 : i], id);
    const std::lock_guard lock(mutex_);
    numbers_[members_[i].qp->qp_num] = i;
  }
  [[nodiscard]] ibv_context* context() const { return context_; }

  void exchange() {
    std::vector<std::thread> threads;
    const unsigned pollers = layout_ == Layout::kChannel ? 1 : kPollers;
    for (unsigned i = 0; i < pollers; ++i) threads.emplace_back([this, i, pollers] { poll(i, pollers); });
    for (Member& member : members_) member.begin();
    for (auto& thread : threads) thread.join();
  }
  void destroy() {
    for (Member& member : members_) member.destroy();
  }

 private:
  [[nodiscard]] bool over() {
    for (Member& member : members_) {
      if (!member.over()) return false;
    }
    return true;
  }
  void poll(unsigned first, unsigned every) {
    const Doing doing("polls");
    auto until = std::chrono::steady_clock::now() + kPatience;
    unsigned idle = 0;
    while (!over_) {
      bool any = false;
      if (layout_ == Layout::kChannel) {
        any = take_event();
      } else if (layout_ == Layout::kOneQueue) {
        any = take(queues_.front());
      } else {
        for (unsigned i = first; i < queues_.size(); i += every) any |= take(queues_[i]);
      }
      const auto now = std::chrono::steady_clock::now();
      if (any) {
        Doing::now("polls");
        until = now + kPatience;
        idle = 0;
      } else if (++idle % 16 == 0) {
        if (over()) over_ = true;
        pause_us(100);
        if (now >= until) say();
      }
    }
  }
  [[noreturn]] void say() {
    std::string text;
    for (Member& member : members_) {
      if (!member.over()) text += "\n" + member.text();
    }
    give_up(__FILE__, __LINE__, "nothing moves", text);
  }
  bool take(ibv_cq* queue) {
    ibv_wc some[8];
    const int n = ::ibv_poll_cq(queue, 8, some);
    DEMAND(n >= 0);
    for (int i = 0; i < n; ++i) members_[numbers_.at(some[i].qp_num)].completed(some[i]);
    return n > 0;
  }
  bool take_event() {
    if (!readable(channel_->fd, 5)) return false;
    ibv_cq* queue = nullptr;
    void* context = nullptr;
    DEMAND(::ibv_get_cq_event(channel_, &queue, &context) == 0);
    ::ibv_ack_cq_events(queue, 1);
    DEMAND(::ibv_req_notify_cq(queue, 0) == 0);
    while (take(queue)) {
    }
    return true;
  }

  const Layout layout_;
  ibv_context* context_ = nullptr;
  ibv_pd* pd_ = nullptr;
  ibv_comp_channel* channel_ = nullptr;
  std::vector<ibv_cq*> queues_;
  std::deque<Member> members_;
  std::mutex mutex_;
  std::map<std::uint32_t, unsigned> numbers_;  // complete before there is traffic
  std::atomic<bool> over_{false};
};

struct Told {
  rdma_cm_event_type type;
  rdma_cm_id* id;
  unsigned number;  // of a CONNECT_REQUEST
};
Told take(rdma_event_channel* channel) {
  for (;;) {
    rdma_cm_event* const event = next_event(channel, kPatience);
    DEMAND(event != nullptr);
    Told told{event->event, event->id, 0};
    if (told.type == RDMA_CM_EVENT_CONNECT_REQUEST)
      std::memcpy(&told.number, event->param.conn.private_data, sizeof told.number);
    DEMAND(::rdma_ack_cm_event(event) == 0);
    Doing::now(::rdma_event_str(told.type));
    if (told.type != RDMA_CM_EVENT_TIMEWAIT_EXIT) return told;
  }
}
void take(rdma_event_channel* channel, rdma_cm_event_type type) {
  const Told told = take(channel);
  DEMAND_OR_SAY(told.type == type, std::string(::rdma_event_str(told.type)) + ", not " + ::rdma_event_str(type));
}

rdma_conn_param parameters(const unsigned& number) {
  rdma_conn_param wanted{};
  wanted.private_data = &number;
  wanted.private_data_len = sizeof number;
  wanted.responder_resources = wanted.initiator_depth = kWindow;
  return wanted;
}

// By rdma_cm, each step of all connections at once. Even members connect, odd ones accept.
void by_rdma_cm(Fleet& fleet) {
  rdma_event_channel* const active = ::rdma_create_event_channel();
  rdma_event_channel* const passive = ::rdma_create_event_channel();
  DEMAND(active != nullptr && passive != nullptr);
  const unsigned connections = fleet.count() / 2;
  rdma_cm_id* const listener = make_listener(passive, static_cast<int>(connections));
  sockaddr_in peer = loopback(ntohs(::rdma_get_src_port(listener)));
  std::vector<rdma_cm_id*> ids(connections);
  for (auto& id : ids) DEMAND(::rdma_create_id(active, &id, nullptr, RDMA_PS_TCP) == 0);
  for (auto* id : ids) DEMAND(::rdma_resolve_addr(id, nullptr, as_sockaddr(peer), 2000) == 0);
  for (unsigned i = 0; i < connections; ++i) take(active, RDMA_CM_EVENT_ADDR_RESOLVED);
  for (auto* id : ids) DEMAND(::rdma_resolve_route(id, 2000) == 0);
  for (unsigned i = 0; i < connections; ++i) take(active, RDMA_CM_EVENT_ROUTE_RESOLVED);
  for (unsigned i = 0; i < connections; ++i) {
    fleet.make(2 * i, ids[i]);
    fleet.member(2 * i).post_receives();
    auto wanted = parameters(i);
    DEMAND(::rdma_connect(ids[i], &wanted) == 0);
  }
  for (unsigned established = 0; established < connections;) {
    const Told told = take(passive);
    if (told.type != RDMA_CM_EVENT_CONNECT_REQUEST) {
      DEMAND_OR_SAY(told.type == RDMA_CM_EVENT_ESTABLISHED, ::rdma_event_str(told.type));
      ++established;
      continue;
    }
    DEMAND(told.number < connections);
    fleet.make(2 * told.number + 1, told.id);
    fleet.member(2 * told.number + 1).post_receives();
    auto wanted = parameters(told.number);
    DEMAND(::rdma_accept(told.id, &wanted) == 0);
  }
  for (unsigned i = 0; i < connections; ++i) take(active, RDMA_CM_EVENT_ESTABLISHED);
  fleet.exchange();
  for (auto* id : ids) DEMAND(::rdma_disconnect(id) == 0);
  for (unsigned i = 0; i < connections; ++i) take(active, RDMA_CM_EVENT_DISCONNECTED);
  for (unsigned i = 0; i < connections; ++i) take(passive, RDMA_CM_EVENT_DISCONNECTED);
  fleet.destroy();
  DEMAND(::rdma_destroy_id(listener) == 0);
  ::rdma_destroy_event_channel(active);
  ::rdma_destroy_event_channel(passive);
}

// As programs of InfiniBand do.
void by_modifying(Fleet& fleet) {
  constexpr std::uint32_t kPsn = 0x1000;
  for (unsigned i = 0; i < fleet.count(); ++i) {
    fleet.make(i);
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_INIT;
    attr.port_num = 1;
    attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
    DEMAND(::ibv_modify_qp(fleet.member(i).qp, &attr,
                           IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0);
    fleet.member(i).post_receives();
  }
  for (unsigned i = 0; i < fleet.count(); ++i) {
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_RTR;
    attr.path_mtu = IBV_MTU_1024;
    attr.dest_qp_num = fleet.member(i ^ 1).qp->qp_num;
    attr.rq_psn = kPsn + (i ^ 1);
    attr.max_dest_rd_atomic = kWindow;
    attr.min_rnr_timer = 12;
    attr.ah_attr.is_global = 1;
    attr.ah_attr.port_num = 1;
    attr.ah_attr.grh.hop_limit = 1;
    DEMAND(::ibv_query_gid(fleet.context(), 1, 0, &attr.ah_attr.grh.dgid) == 0);
    DEMAND(::ibv_modify_qp(fleet.member(i).qp, &attr,
                           IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                               IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0);
    attr.qp_state = IBV_QPS_RTS;
    attr.timeout = 14;
    attr.retry_cnt = attr.rnr_retry = 7;
    attr.sq_psn = kPsn + i;
    attr.max_rd_atomic = kWindow;
    DEMAND(::ibv_modify_qp(fleet.member(i).qp, &attr,
                           IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                               IBV_QP_MAX_QP_RD_ATOMIC) == 0);
  }
  fleet.exchange();
  fleet.destroy();
}

}  // namespace

void pairs(const Settings& settings) {
  const Doing doing("connects");
  const unsigned count = settings.count / 2 * 2;
  {
    Fleet first(Layout::kOneQueue, 2);  // for what a process makes at first use and keeps
    presents_roce() ? by_modifying(first) : by_rdma_cm(first);
  }
  pause_us(100000);
  const std::size_t before = descriptors();
  for (const Layout layout : kLayouts) {
    {
      Fleet fleet(layout, count);
      by_rdma_cm(fleet);
    }
    demand_descriptors(before);
    if (!presents_roce()) continue;
    {
      Fleet fleet(layout, count);
      by_modifying(fleet);
    }
    demand_descriptors(before);
  }
  std::printf("%u queue pairs, %u requests of each, over one completion queue, many, and a channel\n", count, kRounds);
}

}  // namespace iwarp::stress
