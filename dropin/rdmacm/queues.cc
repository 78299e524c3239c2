#include "dropin/rdmacm/queues.h"

#include <infiniband/verbs.h>

#include <mutex>
#include <utility>

#include "dropin/rdmacm/cm_id.h"
#include "dropin/rdmacm/entries.h"
#include "dropin/rdmacm/entry.h"
#include "dropin/rdmacm/presented.h"
#include "dropin/verbs/qp.h"
#include "dropin/verbs/rendezvous.h"

namespace iwarp::dropin::rdmacm {
namespace {

// A completion queue with a channel of its own, for who gave none. False, with errno.
bool make_queue(rdma_cm_id* id, std::uint32_t requests, ibv_comp_channel*& channel, ibv_cq*& queue) {
  channel = ::ibv_create_comp_channel(id->verbs);
  if (channel == nullptr) return false;
  const int entries = requests > 0 ? static_cast<int>(requests) : 1;
  queue = ::ibv_create_cq(id->verbs, entries, id, channel, 0);
  if (queue != nullptr) return true;
  const int error = errno;
  (void)::ibv_destroy_comp_channel(std::exchange(channel, nullptr));
  errno = error;
  return false;
}

void destroy_queue(ibv_comp_channel*& channel, ibv_cq*& queue) {
  if (queue != nullptr) (void)::ibv_destroy_cq(std::exchange(queue, nullptr));
  if (channel != nullptr) (void)::ibv_destroy_comp_channel(std::exchange(channel, nullptr));
}

// The application may have named one queue for both, and one channel: Debian's rsockets do.
void destroy_queues(rdma_cm_id* id) {
  if (id->send_cq == id->recv_cq) id->send_cq = nullptr;
  if (id->send_cq_channel == id->recv_cq_channel) id->send_cq_channel = nullptr;
  destroy_queue(id->recv_cq_channel, id->recv_cq);
  destroy_queue(id->send_cq_channel, id->send_cq);
}

// What others have sent to that number, to be connected by ibv_modify_qp(), waits in vain.
void take_over(std::uint32_t number) {
  if (presents_roce()) rendezvous().leave_to_rdma_cm(number);
}

// `create` makes it with the completion queues that it is given.
template <class Attributes, class Create>
int create_queue_pair(rdma_cm_id* id, ibv_pd* pd, Attributes& attributes, const Create& create) {
  if (id->qp != nullptr || id->verbs == nullptr) return fail(EINVAL);
  if (pd == nullptr) pd = id->pd;
  if (pd == nullptr || pd->context != id->verbs) return fail(EINVAL);
  const bool made_send = attributes.send_cq == nullptr && id->send_cq == nullptr;
  const bool made_receive = attributes.recv_cq == nullptr && id->recv_cq == nullptr;
  const auto undo = [&] {
    const int error = errno;
    if (made_send) destroy_queue(id->send_cq_channel, id->send_cq);
    if (made_receive) destroy_queue(id->recv_cq_channel, id->recv_cq);
    return fail(error);
  };
  if (made_receive && !make_queue(id, attributes.cap.max_recv_wr, id->recv_cq_channel, id->recv_cq)) return undo();
  if (made_send && !make_queue(id, attributes.cap.max_send_wr, id->send_cq_channel, id->send_cq)) return undo();
  if (attributes.send_cq == nullptr) attributes.send_cq = id->send_cq;
  if (attributes.recv_cq == nullptr) attributes.recv_cq = id->recv_cq;
  if (attributes.srq == nullptr) attributes.srq = id->srq;
  ibv_qp* const qp = create(pd);
  if (qp == nullptr) return undo();
  set_state(qp, IBV_QPS_INIT);
  take_over(qp->qp_num);
  id->pd = pd;
  id->qp = qp;
  return 0;
}

}  // namespace

std::shared_ptr<verbs::QueuePair> queue_pair_of(Id& id, const rdma_conn_param* wanted) {
  const auto taken = [&](Qp& qp) {
    if (id.ack_timeout) {
      qp.told.timeout = *id.ack_timeout;
      qp.told_mask |= IBV_QP_TIMEOUT;
    }
    return qp.core;
  };
  if (ibv_qp* const own = id.shown()->qp; own != nullptr) return taken(owner(own));
  std::shared_ptr<verbs::QueuePair> named;
  if (wanted != nullptr) {
    const std::lock_guard lock(events_mutex());
    if (Qp* const found = Qp::find(wanted->qp_num); found != nullptr) named = taken(*found);
  }
  if (named != nullptr) {
    take_over(wanted->qp_num);
  } else {
    errno = EINVAL;
  }
  return named;
}

}  // namespace iwarp::dropin::rdmacm

using namespace iwarp::dropin::rdmacm;

IWARP_ENTRY int iwarp_rdma_create_qp(rdma_cm_id* id, ibv_pd* pd, ibv_qp_init_attr* attributes) {
  if (id == nullptr || attributes == nullptr) return fail(EINVAL);
  return guarded([&] {
    return create_queue_pair(id, pd, *attributes, [&](ibv_pd* domain) { return ::ibv_create_qp(domain, attributes); });
  });
}

IWARP_ENTRY int iwarp_rdma_create_qp_ex(rdma_cm_id* id, ibv_qp_init_attr_ex* attributes) {
  if (id == nullptr || attributes == nullptr) return fail(EINVAL);
  return guarded([&] {
    ibv_pd* const pd = (attributes->comp_mask & IBV_QP_INIT_ATTR_PD) != 0 ? attributes->pd : nullptr;
    return create_queue_pair(id, pd, *attributes, [&](ibv_pd* domain) {
      attributes->comp_mask |= IBV_QP_INIT_ATTR_PD;
      attributes->pd = domain;
      return ::ibv_create_qp_ex(id->verbs, attributes);
    });
  });
}

IWARP_ENTRY void iwarp_rdma_destroy_qp(rdma_cm_id* id) {
  if (id == nullptr || id->qp == nullptr) return;
  (void)::ibv_destroy_qp(std::exchange(id->qp, nullptr));
  guarded([&] { destroy_queues(id); });
}

IWARP_ENTRY int iwarp_rdma_create_srq(rdma_cm_id* id, ibv_pd* pd, ibv_srq_init_attr* attributes) {
  if (id == nullptr || attributes == nullptr) return fail(EINVAL);
  if (id->srq != nullptr || id->verbs == nullptr) return fail(EINVAL);
  return guarded([&] {
    if (pd == nullptr) pd = id->pd;
    id->srq = ::ibv_create_srq(pd, attributes);
    if (id->srq == nullptr) return -1;
    id->pd = pd;
    return 0;
  });
}

IWARP_ENTRY int iwarp_rdma_create_srq_ex(rdma_cm_id* id, ibv_srq_init_attr_ex* attributes) {
  if (id == nullptr || attributes == nullptr) return fail(EINVAL);
  if (id->srq != nullptr || id->verbs == nullptr) return fail(EINVAL);
  return guarded([&] {
    if ((attributes->comp_mask & IBV_SRQ_INIT_ATTR_PD) == 0 || attributes->pd == nullptr) {
      attributes->comp_mask |= IBV_SRQ_INIT_ATTR_PD;
      attributes->pd = id->pd;
    }
    id->srq = ::ibv_create_srq_ex(id->verbs, attributes);
    if (id->srq == nullptr) return -1;
    id->pd = attributes->pd;
    return 0;
  });
}

IWARP_ENTRY void iwarp_rdma_destroy_srq(rdma_cm_id* id) {
  if (id == nullptr || id->srq == nullptr) return;
  (void)::ibv_destroy_srq(std::exchange(id->srq, nullptr));
}
