// Options of an id, the list of devices, and what an iWARP device does not have.
#include <cstdlib>
#include <cstring>

#include "dropin/rdmacm/cm_id.h"
#include "dropin/rdmacm/entries.h"
#include "dropin/rdmacm/entry.h"

namespace iwarp::dropin::rdmacm {
namespace {

int set_id_option(Id& id, int name, const void* value, std::size_t size) {
  switch (name) {
    case RDMA_OPTION_ID_TOS:
      return size == sizeof(std::uint8_t) ? 0 : fail(EINVAL);
    case RDMA_OPTION_ID_ACK_TIMEOUT:  // of other transports: kept and told, and changes nothing
      if (size != sizeof(std::uint8_t)) return fail(EINVAL);
      id.ack_timeout = *static_cast<const std::uint8_t*>(value);
      return 0;
    case RDMA_OPTION_ID_REUSEADDR:  // always on: see bind_id()
      return size == sizeof(int) ? 0 : fail(EINVAL);
    case RDMA_OPTION_ID_AFONLY: {
      if (size != sizeof(int)) return fail(EINVAL);
      if (id.state != Id::State::kIdle) return fail(EINVAL);  // it is bound
      int only = 0;
      std::memcpy(&only, value, sizeof only);
      id.v6_only = only != 0;
      return 0;
    }
    default:
      return fail(ENOSYS);
  }
}

}  // namespace
}  // namespace iwarp::dropin::rdmacm

using namespace iwarp::dropin::rdmacm;

IWARP_ENTRY int iwarp_rdma_set_option(rdma_cm_id* id, int level, int name, void* value, std::size_t size) {
  if (id == nullptr || value == nullptr) return fail(EINVAL);
  if (level != RDMA_OPTION_ID) return fail(ENOSYS);  // paths of InfiniBand
  return guarded([&] { return set_id_option(Id::of(id), name, value, size); });
}

IWARP_ENTRY ibv_context** iwarp_rdma_get_devices(int* count) {
  if (count != nullptr) *count = 0;
  return guarded([&]() -> ibv_context** {
    ibv_context* const only = iwarp::dropin::context();
    if (only == nullptr) return nullptr;
    auto** const list = static_cast<ibv_context**>(std::calloc(2, sizeof(ibv_context*)));
    if (list == nullptr) return nullptr;
    list[0] = only;
    if (count != nullptr) *count = 1;
    return list;
  });
}

IWARP_ENTRY void iwarp_rdma_free_devices(ibv_context** list) {
  std::free(list);
}

IWARP_ENTRY int iwarp_rdma_join_multicast(rdma_cm_id* /*id*/, sockaddr* /*address*/, void* /*context*/) {
  return fail(EOPNOTSUPP);
}

IWARP_ENTRY int iwarp_rdma_join_multicast_ex(rdma_cm_id* /*id*/, rdma_cm_join_mc_attr_ex* /*group*/,
                                             void* /*context*/) {
  return fail(EOPNOTSUPP);
}

IWARP_ENTRY int iwarp_rdma_leave_multicast(rdma_cm_id* /*id*/, sockaddr* /*address*/) {
  return fail(EOPNOTSUPP);
}

IWARP_ENTRY int iwarp_rdma_set_local_ece(rdma_cm_id* /*id*/, ibv_ece* /*ece*/) {
  return fail(EOPNOTSUPP);
}

IWARP_ENTRY int iwarp_rdma_get_remote_ece(rdma_cm_id* /*id*/, ibv_ece* /*ece*/) {
  return fail(EOPNOTSUPP);
}
