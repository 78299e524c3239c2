// rdma_cma.h with the names that the library's own functions have: librdmacm.so.1 jumps from rdma_NAME to
// iwarp_rdma_NAME. To be included before any other header of rdma-core.
#pragma once

#define rdma_accept iwarp_rdma_accept
#define rdma_ack_cm_event iwarp_rdma_ack_cm_event
#define rdma_bind_addr iwarp_rdma_bind_addr
#define rdma_connect iwarp_rdma_connect
#define rdma_create_ep iwarp_rdma_create_ep
#define rdma_create_event_channel iwarp_rdma_create_event_channel
#define rdma_create_id iwarp_rdma_create_id
#define rdma_create_qp iwarp_rdma_create_qp
#define rdma_destroy_ep iwarp_rdma_destroy_ep
#define rdma_destroy_event_channel iwarp_rdma_destroy_event_channel
#define rdma_destroy_id iwarp_rdma_destroy_id
#define rdma_destroy_qp iwarp_rdma_destroy_qp
#define rdma_disconnect iwarp_rdma_disconnect
#define rdma_establish iwarp_rdma_establish
#define rdma_event_str iwarp_rdma_event_str
#define rdma_free_devices iwarp_rdma_free_devices
#define rdma_freeaddrinfo iwarp_rdma_freeaddrinfo
#define rdma_get_cm_event iwarp_rdma_get_cm_event
#define rdma_get_devices iwarp_rdma_get_devices
#define rdma_get_dst_port iwarp_rdma_get_dst_port
#define rdma_get_request iwarp_rdma_get_request
#define rdma_get_src_port iwarp_rdma_get_src_port
#define rdma_getaddrinfo iwarp_rdma_getaddrinfo
#define rdma_init_qp_attr iwarp_rdma_init_qp_attr
#define rdma_join_multicast iwarp_rdma_join_multicast
#define rdma_listen iwarp_rdma_listen
#define rdma_migrate_id iwarp_rdma_migrate_id
#define rdma_reject iwarp_rdma_reject
#define rdma_resolve_addr iwarp_rdma_resolve_addr
#define rdma_resolve_route iwarp_rdma_resolve_route
#define rdma_set_option iwarp_rdma_set_option

#include <rdma/rdma_cma.h>
