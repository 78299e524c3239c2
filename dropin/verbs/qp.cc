#include "dropin/verbs/qp.h"

#include <algorithm>
#include <unordered_map>

#include "dropin/verbs/cq.h"
#include "dropin/verbs/device.h"
#include "dropin/verbs/interface.h"
#include "dropin/verbs/pd.h"
#include "dropin/verbs/per_process.h"
#include "dropin/verbs/post.h"
#include "dropin/verbs/rendezvous.h"
#include "dropin/verbs/srq.h"
#include "dropin/verbs/wr_builder.h"
#include "iwarp/cm/link.h"

namespace iwarp::dropin {
namespace {

// By number, those that events can name. Guarded by events_mutex().
PerProcess<std::unordered_map<std::uint32_t, Qp*>> numbered;
std::unordered_map<std::uint32_t, Qp*>& all() {
  return numbered.get();
}

constexpr std::uint32_t kLeastInline = 64;

[[nodiscard]] bool fits(const ibv_qp_cap& cap) {
  return cap.max_send_wr <= static_cast<std::uint32_t>(kMostRequests) &&
         cap.max_recv_wr <= static_cast<std::uint32_t>(kMostRequests) && cap.max_send_sge <= rdmap::kMaxSge &&
         cap.max_recv_sge <= rdmap::kMaxSge && cap.max_inline_data <= kMostInline;
}

int modify(Qp& qp, const ibv_qp_attr& attr, int mask) {
  // Addresses of InfiniBand's own connecting: here rdma_cm connects.
  if ((mask & (IBV_QP_AV | IBV_QP_DEST_QPN | IBV_QP_ALT_PATH)) != 0) return EOPNOTSUPP;
  if ((mask & IBV_QP_ACCESS_FLAGS) != 0) qp.access.store(attr.qp_access_flags);
  if ((mask & IBV_QP_STATE) == 0) return 0;
  const auto set = [&](ibv_qp_state state) {
    qp.before_connection.store(state);
    qp.face().state = qp.state();
    return 0;
  };
  const auto now = qp.core->state();
  switch (attr.qp_state) {
    case IBV_QPS_RESET:
      return now == verbs::QueuePairState::kInit ? set(attr.qp_state) : EINVAL;
    case IBV_QPS_INIT:
    case IBV_QPS_RTR:
    case IBV_QPS_RTS:  // the connection brings it there; who asks before or after finds that it is granted
      return now == verbs::QueuePairState::kInit || now == verbs::QueuePairState::kRtr ||
                     now == verbs::QueuePairState::kRts
                 ? set(attr.qp_state)
                 : EINVAL;
    case IBV_QPS_SQD: {
      const int error = answer(qp.core->modify(verbs::QueuePairState::kSqDrain));
      qp.face().state = qp.state();
      return error;
    }
    case IBV_QPS_ERR: {
      if (now == verbs::QueuePairState::kRts || now == verbs::QueuePairState::kSqDrain) {
        qp.core->leave(verbs::QueuePair::Unfinished::kFlushed);  // the peer still gets what has completed
      } else if (const int error = answer(qp.core->modify(verbs::QueuePairState::kError)); error != 0) {
        return error;
      }
      qp.face().state = qp.state();
      return 0;
    }
    case IBV_QPS_SQE:
    case IBV_QPS_UNKNOWN:
      break;
  }
  return EINVAL;
}

}  // namespace

Qp::Qp() {
  ::pthread_mutex_init(&face().mutex, nullptr);
  ::pthread_cond_init(&face().cond, nullptr);
}

Qp::~Qp() {
  if (has_number) rendezvous().give_back(options.number);
  ::pthread_mutex_destroy(&face().mutex);
  ::pthread_cond_destroy(&face().cond);
}

// The core is asked when it matters, and until the answer is yes.
SendRules Qp::rules_for(int opcode) {
  if (needs_agreement(opcode) && !rfc7306.load()) {
    if (const auto has = sender->query(); has && has->rfc7306) {
      send_immediate.store(has->send_immediate);
      rfc7306.store(true);
    }
  }
  return {.all_signaled = all_signaled, .rfc7306 = rfc7306.load(), .send_immediate = send_immediate.load()};
}

Qp* Qp::find(std::uint32_t number) {
  const auto found = all().find(number);
  return found == all().end() ? nullptr : found->second;
}

ibv_qp_state Qp::state() const {
  const auto now = core->state();
  // Where ibv_modify_qp() connects, the state is what it says.
  if (path_told && now != verbs::QueuePairState::kError && sender->state() != verbs::QueuePairState::kError)
    return before_connection.load();
  return to_qp_state(path_told ? verbs::QueuePairState::kError : now, before_connection.load());
}

void Qp::retire() {
  ibv_qp& qp = face();
  if (sender != core) cm::Link(std::move(sender)).leave();
  sender.reset();
  cm::Link(std::move(core)).leave();
  owner(qp.send_cq).core->drop(qp.qp_num);
  if (qp.recv_cq != qp.send_cq) owner(qp.recv_cq).core->drop(qp.qp_num);
}

std::shared_ptr<verbs::QueuePair> shared_queue_pair(ibv_qp* qp) {
  return owner(qp).core;
}

verbs::QueuePair& queue_pair(ibv_qp* qp) {
  return *owner(qp).core;
}

void set_state(ibv_qp* qp, ibv_qp_state state) {
  owner(qp).before_connection.store(state);
  qp->state = owner(qp).state();
}

int make_qp(ibv_pd* pd, ibv_qp_init_attr& attr, std::unique_ptr<Qp>& out) {
  if (attr.qp_type != IBV_QPT_RC) return EOPNOTSUPP;
  if (attr.send_cq == nullptr || attr.recv_cq == nullptr || !fits(attr.cap)) return EINVAL;
  if (!owner(pd).process.alive() || !owner(attr.send_cq).process.alive() || !owner(attr.recv_cq).process.alive() ||
      (attr.srq != nullptr && !owner(attr.srq).process.alive()))
    return EINVAL;
  auto qp = std::make_unique<Qp>();
  verbs::QueuePair::Options options{.send_cq = &*owner(attr.send_cq).core, .recv_cq = &*owner(attr.recv_cq).core};
  options.stream = stream_options(settings());
  options.stream.sq_depth = std::max(attr.cap.max_send_wr, 1U);
  options.stream.rq_depth = std::max(attr.cap.max_recv_wr, 1U);
  // Programs post a few octets inline without asking for any: devices have more than they are asked for.
  attr.cap.max_inline_data = std::max(attr.cap.max_inline_data, kLeastInline);
  options.stream.max_inline = attr.cap.max_inline_data;
  if (attr.srq != nullptr) options.srq = &*owner(attr.srq).core;
  if (settings().present == Present::kRoce) {
    if (const int error = rendezvous().take_number(options.number); error != 0) return error;
    qp->has_number = true;
    qp->before_connection = IBV_QPS_RESET;
  }
  qp->options = options;
  qp->core = qp->sender = std::make_shared<verbs::QueuePair>(owner(pd).core, options);
  if (const auto& usable = qp->core->usable(); !usable) return to_errno(usable.error().code);
  qp->all_signaled = attr.sq_sig_all != 0;
  attr.cap.max_send_sge = attr.cap.max_recv_sge = rdmap::kMaxSge;
  if (attr.srq != nullptr) attr.cap.max_recv_wr = attr.cap.max_recv_sge = 0;
  qp->init = attr;
  ibv_qp& face = qp->face();
  face.context = pd->context;
  face.qp_context = attr.qp_context;
  face.pd = pd;
  face.send_cq = attr.send_cq;
  face.recv_cq = attr.recv_cq;
  face.srq = attr.srq;
  face.handle = face.qp_num = qp->core->number();
  face.state = IBV_QPS_RESET;
  face.qp_type = attr.qp_type;
  out = std::move(qp);
  return 0;
}

ibv_qp* publish(std::unique_ptr<Qp> qp) {
  ibv_qp& face = qp->face();
  {
    const std::lock_guard lock(events_mutex());
    all().emplace(face.qp_num, qp.get());
  }
  owner(face.pd).users.fetch_add(1);
  owner(face.send_cq).users.fetch_add(1);
  owner(face.recv_cq).users.fetch_add(1);
  if (face.srq != nullptr) owner(face.srq).users.fetch_add(1);
  return &qp.release()->face();
}

int post_send(ibv_qp* qp, ibv_send_wr* list, ibv_send_wr** bad) {
  *bad = list;
  return guarded([&] {
    Qp& q = owner(qp);
    return post_list<rdmap::SendWr>(
        list, bad,
        [&](const ibv_send_wr& in, rdmap::SendWr& out) { return to_send_wr(in, q.rules_for(opcode_of(in)), out); },
        [&](std::span<const rdmap::SendWr> some, std::size_t* posted) { return q.sender->post_send(some, posted); });
  });
}

int post_recv(ibv_qp* qp, ibv_recv_wr* list, ibv_recv_wr** bad) {
  *bad = list;
  return guarded([&] {
    return post_list<rdmap::RecvWr>(list, bad, to_recv_wr,
                                    [&](std::span<const rdmap::RecvWr> some, std::size_t* posted) {
                                      return owner(qp).core->post_recv(some, posted);
                                    });
  });
}

}  // namespace iwarp::dropin

using namespace iwarp;
using namespace iwarp::dropin;

extern "C" {

ibv_qp* ibv_create_qp(ibv_pd* pd, ibv_qp_init_attr* attr) {
  return made<ibv_qp>([&](ibv_qp*& out) {
    std::unique_ptr<Qp> qp;
    const int error = make_qp(pd, *attr, qp);
    if (error == 0) out = publish(std::move(qp));
    return error;
  });
}

int ibv_query_qp(ibv_qp* qp, ibv_qp_attr* attr, int, ibv_qp_init_attr* init) {
  return guarded([&] {
    Qp& q = owner(qp);
    const auto core = q.core->query();
    if (!core) return to_errno(core.error().code);
    *attr = {};
    attr->qp_state = attr->cur_qp_state = qp->state = q.state();
    attr->path_mtu = IBV_MTU_4096;
    attr->path_mig_state = IBV_MIG_MIGRATED;
    attr->qp_access_flags = q.access.load();
    attr->cap = q.init.cap;
    attr->sq_draining = core->draining ? 1 : 0;
    attr->max_rd_atomic = static_cast<std::uint8_t>(std::min<unsigned>(core->ord, 255));
    attr->max_dest_rd_atomic = static_cast<std::uint8_t>(std::min<unsigned>(core->ird, 255));
    attr->port_num = 1;
    tell_as_set(q, *attr);
    *init = q.init;
    return 0;
  });
}

int ibv_modify_qp(ibv_qp* qp, ibv_qp_attr* attr, int mask) {
  return guarded([&] {
    if (!owner(qp).process.alive()) return EINVAL;
    return settings().present == Present::kRoce ? modify_as_roce(owner(qp), *attr, mask)
                                                : modify(owner(qp), *attr, mask);
  });
}

int ibv_destroy_qp(ibv_qp* qp) {
  if (!owner(qp).process.alive()) return 0;
  return guarded([&] {
    const std::unique_ptr<Qp> q(&owner(qp));
    {
      std::unique_lock lock(events_mutex());
      all().erase(qp->qp_num);  // no event names it from here on
      wait_settled(q->async_events, lock);
    }
    q->retire();
    owner(qp->send_cq).users.fetch_sub(1);
    owner(qp->recv_cq).users.fetch_sub(1);
    if (qp->srq != nullptr) owner(qp->srq).users.fetch_sub(1);
    owner(qp->pd).users.fetch_sub(1);
    return 0;
  });
}
}
