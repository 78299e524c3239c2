#include "dropin/verbs/context.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <type_traits>

#include "dropin/verbs/c_face.h"
#include "dropin/verbs/cq.h"
#include "dropin/verbs/device.h"
#include "dropin/verbs/events.h"
#include "dropin/verbs/interface.h"
#include "dropin/verbs/per_process.h"
#include "dropin/verbs/qp.h"
#include "dropin/verbs/srq.h"

#undef ibv_query_port

namespace iwarp::dropin {
namespace {

constexpr std::uint8_t kPort = 1;

int query_port(ibv_context*, std::uint8_t port, ibv_port_attr* attr, std::size_t size) {
  if (port != kPort) return EINVAL;
  const ibv_port_attr all = port_attributes();
  std::memset(attr, 0, size);
  std::memcpy(attr, &all, std::min(size, sizeof all));
  return 0;
}

int query_device_ex(ibv_context*, const ibv_query_device_ex_input* input, ibv_device_attr_ex* attr, std::size_t size) {
  if (input != nullptr && input->comp_mask != 0) return EINVAL;
  if (size < sizeof attr->orig_attr) return EINVAL;
  ibv_device_attr_ex all{};
  all.orig_attr = device_attributes();
  all.device_cap_flags_ex = all.orig_attr.device_cap_flags;
  all.cq_mod_caps = {.max_cq_count = 0xffff, .max_cq_period = 0xffff};
  all.phys_port_cnt_ex = 1;
  std::memset(attr, 0, size);
  std::memcpy(attr, &all, std::min(size, sizeof all));
  return 0;
}

}  // namespace

Opened::Opened() {
  const auto fd = events->fd();
  if (!fd) throw std::system_error(to_errno(fd.error().code), std::generic_category());
  make_blocking(*fd);
  face.owner = this;
  verbs_context& c = face.c;
  c.sz = sizeof(verbs_context);
  c.query_port = query_port;
  c.query_device_ex = query_device_ex;
  c.create_cq_ex = create_cq_ex;
  c.modify_cq = modify_cq;
  c.create_qp_ex = create_qp_ex;
  ibv_context& base = c.context;
  base.device = device();
  base.ops.poll_cq = poll_cq;
  base.ops.req_notify_cq = req_notify_cq;
  base.ops.post_srq_recv = post_srq_recv;
  base.ops.post_send = post_send;
  base.ops.post_recv = post_recv;
  base.cmd_fd = base.async_fd = *fd;
  base.num_comp_vectors = 1;
  ::pthread_mutex_init(&base.mutex, nullptr);
  base.abi_compat = __VERBS_ABI_IS_EXTENDED;
}

Opened::~Opened() {
  events->silence();
  ::pthread_mutex_destroy(&shown()->mutex);
}

Opened& Opened::of(ibv_context* context) {
  static_assert(std::is_standard_layout_v<Face> && offsetof(Face, c) == 0);
  return *reinterpret_cast<Face*>(reinterpret_cast<std::byte*>(context) - offsetof(verbs_context, context))->owner;
}

const std::shared_ptr<verbs::Context>& shared_context() {
  return engine().context();
}

namespace {

struct Usual {
  std::mutex mutex;
  std::unique_ptr<Opened> opened;  // never closed
};
PerProcess<Usual> usual;

}  // namespace

ibv_context* context() {
  return made<ibv_context>([](ibv_context*& out) {
    const std::lock_guard lock(usual.get().mutex);
    auto& opened = usual.get().opened;
    if (opened == nullptr) opened = std::make_unique<Opened>();
    out = opened->shown();
    return 0;
  });
}

}  // namespace iwarp::dropin

using namespace iwarp;
using namespace iwarp::dropin;

extern "C" {

ibv_context* ibv_open_device(ibv_device* which) {
  return made<ibv_context>([&](ibv_context*& out) {
    if (which != device()) return ENODEV;
    out = (new Opened)->shown();
    return 0;
  });
}

int ibv_close_device(ibv_context* context) {
  return guarded([&] {
    Opened& opened = Opened::of(context);
    if (!opened.process.alive() || context == dropin::context()) return 0;  // rdma_cm's own lives with the process
    delete &opened;
    return 0;
  });
}

int ibv_query_device(ibv_context*, ibv_device_attr* attr) {
  return guarded([&] {
    *attr = device_attributes();
    return 0;
  });
}

// For programs that know the attributes only up to port_cap_flags2.
int ibv_query_port(ibv_context* context, std::uint8_t port, _compat_ibv_port_attr* attr) {
  return query_port(context, port, reinterpret_cast<ibv_port_attr*>(attr), offsetof(ibv_port_attr, port_cap_flags2));
}

int ibv_query_gid(ibv_context*, std::uint8_t port, int index, ibv_gid* out) {
  if (port != kPort || index != 0) return minus_one(EINVAL);
  return minus_one(guarded([&] {
    *out = gid();
    return 0;
  }));
}

int _ibv_query_gid_ex(ibv_context*, std::uint32_t port, std::uint32_t index, ibv_gid_entry* entry, std::uint32_t flags,
                      std::size_t entry_size) {
  if (port != kPort || index != 0 || flags != 0 || entry_size < sizeof *entry) return EINVAL;
  return guarded([&] {
    const bool is_roce = settings().present == Present::kRoce;
    *entry = {.gid = gid(),
              .gid_index = 0,
              .port_num = kPort,
              .gid_type = is_roce ? IBV_GID_TYPE_ROCE_V2 : IBV_GID_TYPE_IB,
              .ndev_ifindex = interface_index()};
    return 0;
  });
}

ssize_t _ibv_query_gid_table(ibv_context* context, ibv_gid_entry* entries, std::size_t most, std::uint32_t flags,
                             std::size_t entry_size) {
  if (most == 0) return -EINVAL;
  const int error = _ibv_query_gid_ex(context, kPort, 0, entries, flags, entry_size);
  return error == 0 ? 1 : -error;
}

// A private function of Debian's library, which ibv_devinfo calls: 0 is "IB/RoCE v1", which iWARP devices are as well,
// and 1 is "RoCE v2".
int ibv_query_gid_type(ibv_context*, std::uint8_t port, unsigned index, int* type) {
  if (port != kPort || index != 0) return minus_one(EINVAL);
  *type = settings().present == Present::kRoce ? 1 : 0;
  return 0;
}

int ibv_query_pkey(ibv_context*, std::uint8_t port, int index, __be16* pkey) {
  if (port != kPort || index != 0) return minus_one(EINVAL);
  *pkey = 0xffff;
  return 0;
}

int ibv_get_pkey_index(ibv_context*, std::uint8_t port, __be16 pkey) {
  return port == kPort && pkey == 0xffff ? 0 : minus_one(EINVAL);
}
}
