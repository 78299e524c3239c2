#include "tests/dropin/stress_end.h"

namespace iwarp::stress {
namespace {

constexpr unsigned kDepth = 16;
constexpr std::uint8_t kReads = 4;  // under way at a time
constexpr unsigned kLateAckUs = 3000;

}  // namespace

Totals totals;

End::End(const Course& course, Side side, Shared& shared, rdma_cm_id* id, rdma_event_channel* channel)
    : course_(course),
      side_(side),
      plan_(course.of(side)),
      peer_plan_(course.of(other(side))),
      shared_(shared),
      id_(id) {
  if (channel != nullptr) channels_.push_back(channel);
  for (unsigned i = 0; i < peer_plan_.ops.size(); ++i) {
    if (peer_plan_.ops[i].kind == Kind::kSend) peer_sends_.push_back(i);
  }
}

End::~End() {
  DEMAND(id_ == nullptr);
}

// --- Events

void End::acknowledge_held() {
  if (held_ == nullptr) return;
  DEMAND(::rdma_ack_cm_event(held_) == 0);
  held_ = nullptr;
}

bool End::look(int timeout_ms) {
  rdma_cm_event* const event = next_event(id_->channel, std::chrono::milliseconds(timeout_ms));
  if (event == nullptr) return false;
  if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST) {  // of a client that has gone since
    rdma_cm_id* const stale = event->id;
    DEMAND(::rdma_ack_cm_event(event) == 0);
    DEMAND(::rdma_destroy_id(stale) == 0);
    return true;
  }
  acknowledge_held();
  on_event(event);
  held_ = event;
  if (!plan_.late_ack) acknowledge_held();
  return true;
}

void End::on_event(rdma_cm_event* event) {
  DEMAND(event->id == id_);
  if (event->event == RDMA_CM_EVENT_TIMEWAIT_EXIT) return;
  last_ = event->event;
  if (last_ == RDMA_CM_EVENT_ESTABLISHED) {
    DEMAND(event->status == 0);
    established_ = true;
    totals.established.fetch_add(1);
  } else if (last_ == RDMA_CM_EVENT_DISCONNECTED) {
    DEMAND(established_ && !disconnected_);
    DEMAND(shared_.may_end);
    disconnected_ = true;
  } else if (last_ == RDMA_CM_EVENT_REJECTED) {
    const auto& conn = event->param.conn;
    rejection_.assign(static_cast<const char*>(conn.private_data), conn.private_data_len);
  }
}

void End::expect(rdma_cm_event_type type) {
  while (last_ != type) DEMAND_OR_SAY(look(static_cast<int>(kPatience.count() * 1000)), ::rdma_event_str(type));
}

void End::migrate() {
  acknowledge_held();
  channels_.push_back(::rdma_create_event_channel());
  DEMAND(channels_.back() != nullptr);
  DEMAND(::rdma_migrate_id(id_, channels_.back()) == 0);
  DEMAND(id_->channel == channels_.back());
}

// --- Until it is established

void End::resolve_address() {
  sockaddr_in peer = loopback(shared_.port);
  DEMAND(::rdma_resolve_addr(id_, nullptr, as_sockaddr(peer), 2000) == 0);
}

void End::resolve_route() {
  expect(RDMA_CM_EVENT_ADDR_RESOLVED);
  DEMAND(::rdma_resolve_route(id_, 2000) == 0);
}

std::span<std::byte> End::piece(unsigned part, unsigned op, std::size_t length) const {
  return {memory_.get() + (std::size_t{part} * (kMostOps + kSpareReceives) + op) * kMostOctets, length};
}

unsigned End::origin(Side side, unsigned part, unsigned op) const {
  return ((course_.number * 2 + static_cast<unsigned>(side)) * kParts + part) * 16 + op;
}

void End::prepare() {
  if (side_ == Side::kClient) expect(RDMA_CM_EVENT_ROUTE_RESOLVED);
  const std::size_t octets = std::size_t{kParts} * (kMostOps + kSpareReceives) * kMostOctets;
  memory_.reset(new std::byte[octets]);
  pd_ = ::ibv_alloc_pd(id_->verbs);
  DEMAND(pd_ != nullptr);
  mr_ = ::ibv_reg_mr(pd_, memory_.get(), octets,
                     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
  DEMAND(mr_ != nullptr);
  if (plan_.sleeps) {
    completions_ = ::ibv_create_comp_channel(id_->verbs);
    DEMAND(completions_ != nullptr);
  }
  for (int i = 0; i < (plan_.two_queues ? 2 : 1); ++i) {
    queues_.push_back(::ibv_create_cq(id_->verbs, 4 * kDepth, nullptr, completions_, 0));
    DEMAND(queues_.back() != nullptr);
    DEMAND(!plan_.sleeps || ::ibv_req_notify_cq(queues_.back(), 0) == 0);
  }
  ibv_qp_init_attr wanted{};
  wanted.qp_type = IBV_QPT_RC;
  wanted.sq_sig_all = 1;
  wanted.send_cq = queues_.front();
  wanted.recv_cq = queues_.back();
  wanted.cap = {.max_send_wr = kDepth,
                .max_recv_wr = kDepth,
                .max_send_sge = 1,
                .max_recv_sge = 1,
                .max_inline_data = kMostInlined};
  DEMAND(::rdma_create_qp(id_, pd_, &wanted) == 0);
  qp_ = id_->qp;
  for (unsigned i = 0; i < plan_.ops.size(); ++i) {
    if (plan_.ops[i].kind != Kind::kRead) fill(piece(kOut, i, plan_.ops[i].length), origin(side_, kOut, i));
  }
  for (unsigned i = 0; i < peer_plan_.ops.size(); ++i) {
    if (peer_plan_.ops[i].kind == Kind::kRead)
      fill(piece(kSource, i, peer_plan_.ops[i].length), origin(side_, kSource, i));
  }
  do {
    receive();
  } while (!plan_.late_receives && receives_ < peer_sends_.size() + kSpareReceives);
  auto& told = shared_.of(side_);
  told.target = reinterpret_cast<std::uintptr_t>(piece(kTarget, 0, 0).data());
  told.source = reinterpret_cast<std::uintptr_t>(piece(kSource, 0, 0).data());
  told.key = mr_->rkey;
}

void End::receive() {
  if (receives_ == peer_sends_.size() + kSpareReceives) return;
  DEMAND(post_receive(qp_, kFirstReceive + receives_, piece(kIn, receives_, kMostOctets), mr_->lkey) == 0);
  ++receives_;
}

rdma_conn_param End::parameters() const {
  rdma_conn_param wanted{};
  wanted.private_data = &course_.number;
  wanted.private_data_len = sizeof course_.number;
  wanted.responder_resources = wanted.initiator_depth = kReads;
  return wanted;
}

void End::connect() {
  if (plan_.migrates_before) migrate();
  rdma_conn_param wanted = parameters();
  DEMAND(::rdma_connect(id_, &wanted) == 0);
}

void End::accept() {
  if (plan_.migrates_before) migrate();
  rdma_conn_param wanted = parameters();
  DEMAND(::rdma_accept(id_, &wanted) == 0);
}

rdma_cm_event_type End::outcome() {
  Doing::now("waits for the outcome");
  last_ = RDMA_CM_EVENT_ADDR_CHANGE;
  while (last_ == RDMA_CM_EVENT_ADDR_CHANGE) DEMAND(look(static_cast<int>(kPatience.count() * 1000)));
  return last_;
}

// --- The end

void End::forget_memory() {
  if (mr_ == nullptr) return;
  DEMAND(::ibv_dereg_mr(mr_) == 0);
  mr_ = nullptr;
  memory_.reset();
}

void End::end_established() {
  ibv_qp_attr attr{};
  switch (plan_.way) {
    case Way::kDisconnect:
    case Way::kDisconnectAndGo:
      DEMAND(::rdma_disconnect(id_) == 0);
      if (plan_.way == Way::kDisconnect) {
        while (!disconnected_) DEMAND(look(static_cast<int>(kPatience.count() * 1000)));
      }
      break;
    case Way::kError:
      attr.qp_state = IBV_QPS_ERR;
      DEMAND(::ibv_modify_qp(qp_, &attr, IBV_QP_STATE) == 0);
      drain();
      break;
    case Way::kDeregister:
      forget_memory();
      pause_us(500);
      break;
    case Way::kQueuePairFirst:
    case Way::kIdFirst:
      break;
  }
}

// The event that it holds is acknowledged when it is half way.
void End::destroy_id() {
  if (held_ != nullptr) {
    late_ = std::thread([held = held_] {
      pause_us(kLateAckUs);
      DEMAND(::rdma_ack_cm_event(held) == 0);
    });
    held_ = nullptr;
  }
  DEMAND(::rdma_destroy_id(id_) == 0);
  id_ = nullptr;
  if (late_.joinable()) late_.join();
}

void End::destroy_queues() {
  for (ibv_cq* const queue : queues_) DEMAND(::ibv_destroy_cq(queue) == 0);
  if (completions_ != nullptr) DEMAND(::ibv_destroy_comp_channel(completions_) == 0);
  if (pd_ != nullptr) DEMAND(::ibv_dealloc_pd(pd_) == 0);
}

// What they are does not matter any more.
void End::poll_until(const std::atomic<bool>& stopped) const {
  ibv_wc some[4];
  while (!stopped) {
    for (ibv_cq* const queue : queues_) DEMAND(::ibv_poll_cq(queue, 4, some) >= 0);
  }
}

void End::finish() {
  Doing::now("finishes");
  shared_.may_end = true;
  std::atomic<bool> stopped{false};
  std::thread poller;
  if (plan_.polled_meanwhile) poller = std::thread([&] { poll_until(stopped); });
  pause_us(plan_.pause_us);
  if (established_) end_established();
  Doing::now("destroys");
  if (qp_ != nullptr && plan_.way != Way::kIdFirst) {
    ::rdma_destroy_qp(id_);
    qp_ = nullptr;
    if (plan_.frees_at_once) forget_memory();
  }
  destroy_id();
  if (qp_ != nullptr) DEMAND(::ibv_destroy_qp(qp_) == 0);
  forget_memory();
  stopped = true;
  if (poller.joinable()) poller.join();
  destroy_queues();
  for (rdma_event_channel* const channel : channels_) ::rdma_destroy_event_channel(channel);
  Doing::now("is done");
}

}  // namespace iwarp::stress
