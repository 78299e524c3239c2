// The calls of rdma-core's libibverbs and librdmacm as a table. The real one is loaded when a device is asked for, so
// that a program starts without these libraries; tests fill in their own. Each entry is as its manual page has it.
#pragma once

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <string>

namespace iwarp::device {

struct VerbsTable {
  // librdmacm
  rdma_event_channel* (*create_event_channel)() = nullptr;
  void (*destroy_event_channel)(rdma_event_channel*) = nullptr;
  int (*create_id)(rdma_event_channel*, rdma_cm_id**, void*, rdma_port_space) = nullptr;
  int (*destroy_id)(rdma_cm_id*) = nullptr;
  int (*bind_addr)(rdma_cm_id*, sockaddr*) = nullptr;
  int (*listen)(rdma_cm_id*, int) = nullptr;
  int (*resolve_addr)(rdma_cm_id*, sockaddr*, sockaddr*, int) = nullptr;
  int (*resolve_route)(rdma_cm_id*, int) = nullptr;
  int (*create_qp)(rdma_cm_id*, ibv_pd*, ibv_qp_init_attr*) = nullptr;
  void (*destroy_qp)(rdma_cm_id*) = nullptr;
  int (*connect)(rdma_cm_id*, rdma_conn_param*) = nullptr;
  int (*accept)(rdma_cm_id*, rdma_conn_param*) = nullptr;
  int (*reject)(rdma_cm_id*, const void*, std::uint8_t) = nullptr;
  int (*disconnect)(rdma_cm_id*) = nullptr;
  int (*get_cm_event)(rdma_event_channel*, rdma_cm_event**) = nullptr;
  int (*ack_cm_event)(rdma_cm_event*) = nullptr;
  int (*migrate_id)(rdma_cm_id*, rdma_event_channel*) = nullptr;
  __be16 (*get_src_port)(rdma_cm_id*) = nullptr;
  ibv_context** (*get_devices)(int*) = nullptr;
  void (*free_devices)(ibv_context**) = nullptr;
  // libibverbs
  const char* (*get_device_name)(ibv_device*) = nullptr;
  int (*query_device)(ibv_context*, ibv_device_attr*) = nullptr;
  ibv_pd* (*alloc_pd)(ibv_context*) = nullptr;
  int (*dealloc_pd)(ibv_pd*) = nullptr;
  ibv_comp_channel* (*create_comp_channel)(ibv_context*) = nullptr;
  int (*destroy_comp_channel)(ibv_comp_channel*) = nullptr;
  ibv_cq* (*create_cq)(ibv_context*, int, void*, ibv_comp_channel*, int) = nullptr;
  int (*destroy_cq)(ibv_cq*) = nullptr;
  int (*get_cq_event)(ibv_comp_channel*, ibv_cq**, void**) = nullptr;
  void (*ack_cq_events)(ibv_cq*, unsigned) = nullptr;
  int (*get_async_event)(ibv_context*, ibv_async_event*) = nullptr;
  void (*ack_async_event)(ibv_async_event*) = nullptr;
  ibv_mr* (*reg_mr)(ibv_pd*, void*, std::size_t, int) = nullptr;
  int (*dereg_mr)(ibv_mr*) = nullptr;
  const char* (*wc_status_str)(ibv_wc_status) = nullptr;
  // Inline functions of their headers.
  int (*post_send)(ibv_qp*, ibv_send_wr*, ibv_send_wr**) = nullptr;
  int (*post_recv)(ibv_qp*, ibv_recv_wr*, ibv_recv_wr**) = nullptr;
  int (*poll_cq)(ibv_cq*, int, ibv_wc*) = nullptr;
  int (*req_notify_cq)(ibv_cq*, int) = nullptr;
};

// A table, or the sentence that says what is to be installed. The table is never freed.
struct LoadedTable {
  const VerbsTable* table = nullptr;
  std::string error{};
};
// Of libibverbs.so.1 and librdmacm.so.1, as the dynamic loader finds them. Loaded once in a process. Thread-safe.
[[nodiscard]] const LoadedTable& load_verbs();

}  // namespace iwarp::device
