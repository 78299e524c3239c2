// What programs on amd64 have compiled into them: the sizes and places of libibverbs' objects, of Debian 12's header.
// Another header that has others cannot make a drop-in library.
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <cstddef>

#if defined(__x86_64__)

static_assert(sizeof(ibv_device) == 664);
static_assert(sizeof(ibv_context) == 328);
static_assert(offsetof(ibv_context, ops) == 8);
static_assert(offsetof(ibv_context, ops.alloc_mw) == 64);
static_assert(offsetof(ibv_context, ops.poll_cq) == 96);
static_assert(offsetof(ibv_context, ops.req_notify_cq) == 104);
static_assert(offsetof(ibv_context, ops.post_srq_recv) == 168);
static_assert(offsetof(ibv_context, ops.post_send) == 208);
static_assert(offsetof(ibv_context, ops.post_recv) == 216);
static_assert(offsetof(ibv_context, cmd_fd) == 264);
static_assert(offsetof(ibv_context, async_fd) == 268);
static_assert(offsetof(ibv_context, num_comp_vectors) == 272);
static_assert(offsetof(ibv_context, mutex) == 280);
static_assert(offsetof(ibv_context, abi_compat) == 320);
static_assert(sizeof(verbs_context) == 648);
static_assert(offsetof(verbs_context, query_port) == 0);
static_assert(offsetof(verbs_context, create_cq_ex) == 200);
static_assert(offsetof(verbs_context, query_device_ex) == 216);
static_assert(offsetof(verbs_context, create_qp_ex) == 264);
static_assert(offsetof(verbs_context, sz) == 312);
static_assert(offsetof(verbs_context, context) == 320);
static_assert(sizeof(ibv_pd) == 16);
static_assert(sizeof(ibv_mr) == 48);
static_assert(sizeof(ibv_comp_channel) == 16);
static_assert(sizeof(ibv_cq) == 128);
static_assert(sizeof(ibv_cq_ex) == 288);
static_assert(sizeof(ibv_srq) == 128);
static_assert(sizeof(ibv_qp) == 160);
static_assert(sizeof(ibv_qp_ex) == 352);
static_assert(sizeof(ibv_wc) == 48);
static_assert(sizeof(ibv_send_wr) == 128);
static_assert(sizeof(ibv_recv_wr) == 32);
static_assert(sizeof(ibv_port_attr) == 52);
static_assert(sizeof(ibv_device_attr) == 232);
static_assert(sizeof(ibv_device_attr_ex) == 400);
static_assert(sizeof(rdma_event_channel) == 4);
static_assert(sizeof(rdma_cm_id) == 416);
static_assert(offsetof(rdma_cm_id, channel) == 8);
static_assert(offsetof(rdma_cm_id, context) == 16);
static_assert(offsetof(rdma_cm_id, qp) == 24);
static_assert(offsetof(rdma_cm_id, route) == 32);
static_assert(offsetof(rdma_cm_id, event) == 352);
static_assert(sizeof(rdma_conn_param) == 24);
static_assert(offsetof(rdma_conn_param, qp_num) == 16);
static_assert(sizeof(rdma_cm_event) == 80);
static_assert(offsetof(rdma_cm_event, param) == 24);
static_assert(sizeof(rdma_addrinfo) == 96);
static_assert(offsetof(rdma_addrinfo, ai_src_addr) == 24);

#endif
