// Functions of librdmacm.so.1 that others of them are made of; each does what rdma_NAME() does.
#pragma once

#include <rdma/rdma_cma.h>

extern "C" {
int iwarp_rdma_create_id(rdma_event_channel* channel, rdma_cm_id** id, void* context, rdma_port_space space);
int iwarp_rdma_destroy_id(rdma_cm_id* id);
int iwarp_rdma_bind_addr(rdma_cm_id* id, sockaddr* address);
int iwarp_rdma_resolve_addr(rdma_cm_id* id, sockaddr* source, sockaddr* destination, int timeout_ms);
int iwarp_rdma_resolve_route(rdma_cm_id* id, int timeout_ms);
int iwarp_rdma_create_qp(rdma_cm_id* id, ibv_pd* pd, ibv_qp_init_attr* attributes);
void iwarp_rdma_destroy_qp(rdma_cm_id* id);
void iwarp_rdma_destroy_srq(rdma_cm_id* id);
int iwarp_rdma_reject(rdma_cm_id* id, const void* data, uint8_t size);
}
