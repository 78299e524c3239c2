// rdma_create_ep() and rdma_destroy_ep(): an id that is resolved, or bound, in one call. It is synchronous.
#include "dropin/rdmacm/address.h"
#include "dropin/rdmacm/bind.h"
#include "dropin/rdmacm/cm_id.h"
#include "dropin/rdmacm/entries.h"
#include "dropin/rdmacm/entry.h"

namespace iwarp::dropin::rdmacm {
namespace {

constexpr int kTimeoutMs = 2000;

int begin_passive(rdma_cm_id* id, const rdma_addrinfo& with, ibv_pd* pd, const ibv_qp_init_attr* attributes) {
  if (iwarp_rdma_bind_addr(id, with.ai_src_addr) != 0) return -1;
  if (attributes == nullptr) return 0;
  Id& own = Id::of(id);
  own.endpoint_attributes = *attributes;
  own.endpoint_attributes->qp_type = static_cast<ibv_qp_type>(with.ai_qp_type);
  own.endpoint_pd = pd;
  return 0;
}

int begin_active(rdma_cm_id* id, const rdma_addrinfo& with, ibv_pd* pd, ibv_qp_init_attr* attributes) {
  if (iwarp_rdma_resolve_addr(id, with.ai_src_addr, with.ai_dst_addr, kTimeoutMs) != 0) return -1;
  if (iwarp_rdma_resolve_route(id, kTimeoutMs) != 0) return -1;
  if (attributes == nullptr) return 0;
  attributes->qp_type = static_cast<ibv_qp_type>(with.ai_qp_type);
  return iwarp_rdma_create_qp(id, pd, attributes);
}

}  // namespace
}  // namespace iwarp::dropin::rdmacm

using namespace iwarp::dropin::rdmacm;

IWARP_ENTRY int iwarp_rdma_create_ep(rdma_cm_id** id, rdma_addrinfo* with, ibv_pd* pd, ibv_qp_init_attr* attributes) {
  if (id == nullptr || with == nullptr) return fail(EINVAL);
  rdma_cm_id* made = nullptr;
  if (iwarp_rdma_create_id(nullptr, &made, nullptr, static_cast<rdma_port_space>(with->ai_port_space)) != 0) return -1;
  const bool passive = (with->ai_flags & RAI_PASSIVE) != 0;
  const int result = guarded(
      [&] { return passive ? begin_passive(made, *with, pd, attributes) : begin_active(made, *with, pd, attributes); });
  if (result != 0) {
    const int error = errno;
    (void)iwarp_rdma_destroy_id(made);
    return fail(error);
  }
  *id = made;
  return 0;
}

IWARP_ENTRY void iwarp_rdma_destroy_ep(rdma_cm_id* id) {
  if (id == nullptr) return;
  iwarp_rdma_destroy_qp(id);
  iwarp_rdma_destroy_srq(id);
  (void)iwarp_rdma_destroy_id(id);
}
