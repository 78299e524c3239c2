#include "tests/device/joined_verbs.h"

#include <algorithm>
#include <cerrno>
#include <thread>
#include <utility>

namespace iwarp::device::test {

namespace {

JoinedVerbs* joined = nullptr;  // the one that is

}  // namespace

// The calls of the table that are others than those of a FakeVerbs.
struct JoinedCalls {
  using Lock = std::lock_guard<std::recursive_mutex>;

  static rdma_cm_id* of(const ibv_qp* qp) {
    for (auto& [id, end] : joined->ends_) {
      if (end.qp == qp) return id;
    }
    return nullptr;
  }
  static FakeVerbs::Told told(const rdma_conn_param* param) {
    const auto* const octets = static_cast<const std::byte*>(param->private_data);
    return {.private_data = {octets, octets + param->private_data_len},
            .responder_resources = param->initiator_depth,  // the peer's are told the other way round
            .initiator_depth = param->responder_resources};
  }

  static int listen(rdma_cm_id* id, int backlog) {
    const Lock lock(joined->mu_);
    joined->listening_[id->verbs] = id;
    return joined->fake_.table().listen(id, backlog);
  }
  static int resolve_addr(rdma_cm_id* id, sockaddr* from, sockaddr* to, int ms) {
    const int failed = joined->fake_.table().resolve_addr(id, from, to, ms);
    if (failed == 0) joined->fake_.tell(id, RDMA_CM_EVENT_ADDR_RESOLVED);
    return failed;
  }
  static int resolve_route(rdma_cm_id* id, int ms) {
    const int failed = joined->fake_.table().resolve_route(id, ms);
    if (failed == 0) joined->fake_.tell(id, RDMA_CM_EVENT_ROUTE_RESOLVED);
    return failed;
  }
  static int connect(rdma_cm_id* id, rdma_conn_param* param) {
    const Lock lock(joined->mu_);
    if (joined->fake_.table().connect(id, param) != 0) return -1;
    if (joined->ignores_) return 0;
    const auto listener = joined->listening_.find(id->verbs);
    if (listener == joined->listening_.end()) {
      joined->fake_.tell(id, RDMA_CM_EVENT_REJECTED, {.status = -ECONNREFUSED});
      return 0;
    }
    const std::size_t device = id->verbs->device->name[4] == '1' ? 1 : 0;
    rdma_cm_id* const passive = joined->fake_.request(listener->second, told(param), device);
    joined->ends_[passive].peer = id;
    joined->ends_[id].peer = passive;
    return 0;
  }
  static int accept(rdma_cm_id* id, rdma_conn_param* param) {
    const Lock lock(joined->mu_);
    if (joined->fake_.table().accept(id, param) != 0) return -1;
    rdma_cm_id* const active = joined->ends_[id].peer;
    if (active == nullptr) return 0;  // it has left: nobody will answer
    joined->ends_[id].up = joined->ends_[active].up = true;
    joined->fake_.tell(active, RDMA_CM_EVENT_ESTABLISHED, told(param));
    joined->fake_.tell(id, RDMA_CM_EVENT_ESTABLISHED);
    return 0;
  }
  static int disconnect(rdma_cm_id* id) {
    const Lock lock(joined->mu_);
    joined->part(id, 0);
    return joined->fake_.table().disconnect(id);
  }
  static int create_qp(rdma_cm_id* id, ibv_pd* pd, ibv_qp_init_attr* how) {
    const Lock lock(joined->mu_);
    if (joined->fake_.table().create_qp(id, pd, how) != 0) return -1;
    joined->ends_[id].qp = id->qp;
    return 0;
  }
  static void destroy_qp(rdma_cm_id* id) {
    const Lock lock(joined->mu_);
    joined->ends_[id].receives.clear();
    joined->part(id, 0, id);
    joined->ends_[id].qp = nullptr;
    joined->fake_.table().destroy_qp(id);
  }
  // With requests that nobody has taken.
  static void destroy_event_channel(rdma_event_channel* channel) {
    const Lock lock(joined->mu_);
    for (auto it = joined->ends_.begin(); it != joined->ends_.end();) {
      const auto at = it++;
      if (at->first->channel != channel) continue;
      joined->part(at->first, 0, at->first);
      joined->ends_.erase(at);
    }
    joined->fake_.table().destroy_event_channel(channel);
  }
  static int destroy_id(rdma_cm_id* id) {
    const Lock lock(joined->mu_);
    joined->part(id, 0, id);
    joined->ends_.erase(id);
    std::erase_if(joined->listening_, [id](const auto& each) { return each.second == id; });
    return joined->fake_.table().destroy_id(id);
  }

  static int post_recv(ibv_qp* qp, ibv_recv_wr* wr, ibv_recv_wr** bad) {
    const Lock lock(joined->mu_);
    JoinedVerbs::End& end = joined->ends_[of(qp)];
    for (; wr != nullptr; wr = wr->next) {
      ibv_recv_wr one = *wr;
      one.next = nullptr;
      if (const int failed = joined->fake_.table().post_recv(qp, &one, bad); failed != 0) return failed;
      end.receives.emplace_back(wr->wr_id, *wr->sg_list);
    }
    if (!end.up && end.peer == nullptr) joined->flush(of(qp));  // it has ended
    return 0;
  }
  static int post_send(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr**) {
    const Lock lock(joined->mu_);
    rdma_cm_id* const id = of(qp);
    for (; wr != nullptr; wr = wr->next) {
      ibv_wc done{};
      done.wr_id = wr->wr_id;
      const bool up = joined->ends_[id].up;
      if (up && wr->opcode == IBV_WR_SEND && joined->sends_left_ > 0 && --joined->sends_left_ == 0)
        joined->part(id, -ECONNRESET);
      if (!joined->ends_[id].up) {
        done.status = IBV_WC_WR_FLUSH_ERR;
      } else if (!joined->execute(id, *wr)) {
        ADD_FAILURE() << "a request of opcode " << wr->opcode << " breaks a rule";
        done.status = IBV_WC_REM_ACCESS_ERR;
      }
      joined->fake_.complete(id, done);
      if (done.status == IBV_WC_REM_ACCESS_ERR) joined->part(id, 0);
    }
    return 0;
  }
  static ibv_mr* reg_mr(ibv_pd* pd, void* address, std::size_t bytes, int access) {
    const Lock lock(joined->mu_);
    ibv_mr* const made = joined->fake_.table().reg_mr(pd, address, bytes, access);
    if (made == nullptr) return nullptr;
    made->addr = address;
    made->length = bytes;
    joined->regions_[made] = access;
    return made;
  }
  static int dereg_mr(ibv_mr* region) {
    const Lock lock(joined->mu_);
    const int failed = joined->fake_.table().dereg_mr(region);
    if (failed == 0) joined->regions_.erase(region);
    return failed;
  }
};

JoinedVerbs::JoinedVerbs() : table_(fake_.table()) {
  joined = this;
  table_.listen = JoinedCalls::listen;
  table_.resolve_addr = JoinedCalls::resolve_addr;
  table_.resolve_route = JoinedCalls::resolve_route;
  table_.connect = JoinedCalls::connect;
  table_.accept = JoinedCalls::accept;
  table_.disconnect = JoinedCalls::disconnect;
  table_.create_qp = JoinedCalls::create_qp;
  table_.destroy_qp = JoinedCalls::destroy_qp;
  table_.destroy_id = JoinedCalls::destroy_id;
  table_.destroy_event_channel = JoinedCalls::destroy_event_channel;
  table_.post_recv = JoinedCalls::post_recv;
  table_.post_send = JoinedCalls::post_send;
  table_.reg_mr = JoinedCalls::reg_mr;
  table_.dereg_mr = JoinedCalls::dereg_mr;
}

JoinedVerbs::~JoinedVerbs() {
  for (int i = 0; i < 2000 && fake_.live() > 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  joined = nullptr;
}

std::size_t JoinedVerbs::cut() {
  const JoinedCalls::Lock lock(mu_);
  std::size_t were = 0;
  for (auto& [id, end] : ends_) {
    if (!end.up) continue;
    ++were;
    part(id, -ECONNRESET);
  }
  return were;
}

void JoinedVerbs::cut_at_send(std::uint64_t n) {
  const JoinedCalls::Lock lock(mu_);
  sends_left_ = n;
}

void JoinedVerbs::ignore_requests() {
  const JoinedCalls::Lock lock(mu_);
  ignores_ = true;
}

std::uint64_t JoinedVerbs::written() const {
  const JoinedCalls::Lock lock(mu_);
  return written_;
}

std::uint64_t JoinedVerbs::read() const {
  const JoinedCalls::Lock lock(mu_);
  return read_;
}

std::size_t JoinedVerbs::connections() const {
  const JoinedCalls::Lock lock(mu_);
  std::size_t ends = 0;
  for (const auto& [id, end] : ends_) ends += end.up ? 1 : 0;
  return ends / 2;
}

std::byte* JoinedVerbs::reach(const ibv_pd* pd, std::uint32_t key, bool remote, std::uint64_t address,
                              std::size_t bytes, int access) {
  for (const auto& [region, rights] : regions_) {
    if ((remote ? region->rkey : region->lkey) != key) continue;
    const auto begin = reinterpret_cast<std::uint64_t>(region->addr);
    const bool inside = address >= begin && address - begin <= region->length &&
                        bytes <= region->length - static_cast<std::size_t>(address - begin);
    return inside && region->pd == pd && (rights & access) == access ? reinterpret_cast<std::byte*>(address) : nullptr;
  }
  return nullptr;
}

bool JoinedVerbs::gather(const ibv_qp* qp, const ibv_send_wr& wr, std::vector<std::byte>& to) {
  for (int i = 0; i < wr.num_sge; ++i) {
    const ibv_sge& s = wr.sg_list[i];
    const std::byte* const from = reach(qp->pd, s.lkey, false, s.addr, s.length, 0);
    if (from == nullptr) return false;
    to.insert(to.end(), from, from + s.length);
  }
  return true;
}

bool JoinedVerbs::execute(rdma_cm_id* id, const ibv_send_wr& wr) {
  rdma_cm_id* const peer = ends_[id].peer;
  if (wr.opcode == IBV_WR_RDMA_READ) {
    const ibv_sge& sink = wr.sg_list[0];
    const std::byte* const from =
        reach(peer->qp->pd, wr.wr.rdma.rkey, true, wr.wr.rdma.remote_addr, sink.length, IBV_ACCESS_REMOTE_READ);
    // An RNIC names the sink by an STag.
    const bool rnic = id->verbs->device->transport_type == IBV_TRANSPORT_IWARP;
    std::byte* const into = reach(id->qp->pd, sink.lkey, false, sink.addr, sink.length,
                                  IBV_ACCESS_LOCAL_WRITE | (rnic ? IBV_ACCESS_REMOTE_WRITE : 0));
    if (from == nullptr || into == nullptr) return false;
    std::copy_n(from, sink.length, into);
    read_ += sink.length;
    return true;
  }
  std::vector<std::byte> octets;
  if (!gather(id->qp, wr, octets)) return false;
  if (wr.opcode == IBV_WR_RDMA_WRITE) {
    std::byte* const into =
        reach(peer->qp->pd, wr.wr.rdma.rkey, true, wr.wr.rdma.remote_addr, octets.size(), IBV_ACCESS_REMOTE_WRITE);
    if (into == nullptr) return false;
    std::copy(octets.begin(), octets.end(), into);
    written_ += octets.size();
    return true;
  }
  auto& receives = ends_[peer].receives;
  if (wr.opcode != IBV_WR_SEND || receives.empty()) return false;  // nobody can invalidate memory of a program
  const auto [wr_id, sge] = receives.front();
  std::byte* const into = reach(peer->qp->pd, sge.lkey, false, sge.addr, sge.length, IBV_ACCESS_LOCAL_WRITE);
  if (into == nullptr || octets.size() > sge.length) return false;
  receives.pop_front();
  std::copy(octets.begin(), octets.end(), into);
  fake_.complete(peer, wr_id, IBV_WC_SUCCESS, static_cast<std::uint32_t>(octets.size()));
  return true;
}

void JoinedVerbs::flush(rdma_cm_id* id) {
  for (const auto& [wr_id, sge] : std::exchange(ends_[id].receives, {}))
    fake_.complete(id, wr_id, IBV_WC_WR_FLUSH_ERR, 0);
}

void JoinedVerbs::part(rdma_cm_id* id, int status, const rdma_cm_id* not_told) {
  const auto found = ends_.find(id);
  if (found == ends_.end()) return;
  rdma_cm_id* const peer = std::exchange(found->second.peer, nullptr);
  const bool was_up = std::exchange(found->second.up, false);
  if (peer == nullptr) return;
  ends_[peer].peer = nullptr;
  ends_[peer].up = false;
  for (rdma_cm_id* const each : {id, peer}) {
    if (each == not_told) continue;
    if (was_up) {
      flush(each);
      fake_.tell(each, RDMA_CM_EVENT_DISCONNECTED, {.status = status});
    } else {
      fake_.tell(each, RDMA_CM_EVENT_REJECTED, {.status = -ECONNRESET});
    }
  }
}

}  // namespace iwarp::device::test
