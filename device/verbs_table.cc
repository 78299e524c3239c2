#include "iwarp/device/verbs_table.h"

#include <dlfcn.h>

namespace iwarp::device {
namespace {

constexpr const char* kInstall = "install the packages libibverbs1, librdmacm1 and ibverbs-providers";

class Library {
 public:
  Library(const char* file, std::string& error) : file_(file), handle_(::dlopen(file, RTLD_NOW)), error_(error) {
    if (handle_ == nullptr && error_.empty()) error_ = std::string(file) + " cannot be loaded: " + kInstall;
  }

  template <class Function>
  void find(Function& to, const char* name) {
    if (handle_ == nullptr) return;
    to = reinterpret_cast<Function>(::dlsym(handle_, name));
    if (to == nullptr && error_.empty())
      error_ = std::string(file_) + " has no " + name + ": it is too old; " + kInstall + " of Debian 12 or newer";
  }

 private:
  const char* file_;
  void* handle_;  // stays loaded
  std::string& error_;
};

void find_rdmacm(VerbsTable& t, std::string& error) {
  Library l("librdmacm.so.1", error);
  l.find(t.create_event_channel, "rdma_create_event_channel");
  l.find(t.destroy_event_channel, "rdma_destroy_event_channel");
  l.find(t.create_id, "rdma_create_id");
  l.find(t.destroy_id, "rdma_destroy_id");
  l.find(t.bind_addr, "rdma_bind_addr");
  l.find(t.listen, "rdma_listen");
  l.find(t.resolve_addr, "rdma_resolve_addr");
  l.find(t.resolve_route, "rdma_resolve_route");
  l.find(t.create_qp, "rdma_create_qp");
  l.find(t.destroy_qp, "rdma_destroy_qp");
  l.find(t.connect, "rdma_connect");
  l.find(t.accept, "rdma_accept");
  l.find(t.reject, "rdma_reject");
  l.find(t.disconnect, "rdma_disconnect");
  l.find(t.get_cm_event, "rdma_get_cm_event");
  l.find(t.ack_cm_event, "rdma_ack_cm_event");
  l.find(t.migrate_id, "rdma_migrate_id");
  l.find(t.get_src_port, "rdma_get_src_port");
  l.find(t.get_devices, "rdma_get_devices");
  l.find(t.free_devices, "rdma_free_devices");
}

void find_ibverbs(VerbsTable& t, std::string& error) {
  Library l("libibverbs.so.1", error);
  l.find(t.get_device_name, "ibv_get_device_name");
  l.find(t.query_device, "ibv_query_device");
  l.find(t.alloc_pd, "ibv_alloc_pd");
  l.find(t.dealloc_pd, "ibv_dealloc_pd");
  l.find(t.create_comp_channel, "ibv_create_comp_channel");
  l.find(t.destroy_comp_channel, "ibv_destroy_comp_channel");
  l.find(t.create_cq, "ibv_create_cq");
  l.find(t.destroy_cq, "ibv_destroy_cq");
  l.find(t.get_cq_event, "ibv_get_cq_event");
  l.find(t.ack_cq_events, "ibv_ack_cq_events");
  l.find(t.get_async_event, "ibv_get_async_event");
  l.find(t.ack_async_event, "ibv_ack_async_event");
  l.find(t.reg_mr, "ibv_reg_mr");
  l.find(t.dereg_mr, "ibv_dereg_mr");
  l.find(t.wc_status_str, "ibv_wc_status_str");
}

LoadedTable load() {
  static VerbsTable table;
  LoadedTable out;
  find_ibverbs(table, out.error);
  find_rdmacm(table, out.error);
  table.post_send = [](ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad) { return ::ibv_post_send(qp, wr, bad); };
  table.post_recv = [](ibv_qp* qp, ibv_recv_wr* wr, ibv_recv_wr** bad) { return ::ibv_post_recv(qp, wr, bad); };
  table.poll_cq = [](ibv_cq* cq, int most, ibv_wc* to) { return ::ibv_poll_cq(cq, most, to); };
  table.req_notify_cq = [](ibv_cq* cq, int solicited) { return ::ibv_req_notify_cq(cq, solicited); };
  if (out.error.empty()) out.table = &table;
  return out;
}

}  // namespace

const LoadedTable& load_verbs() {
  static const LoadedTable loaded = load();
  return loaded;
}

}  // namespace iwarp::device
