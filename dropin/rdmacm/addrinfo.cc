// rdma_getaddrinfo(): names to addresses, as getaddrinfo() has them.
#include <netdb.h>
#include <rdma/rdma_cma.h>

#include <cstdlib>
#include <cstring>
#include <memory>

#include "dropin/rdmacm/address.h"
#include "dropin/rdmacm/entry.h"

namespace iwarp::dropin::rdmacm {
namespace {

void free_list(rdma_addrinfo* list) {
  while (list != nullptr) {
    rdma_addrinfo* const next = list->ai_next;
    std::free(list->ai_src_addr);
    std::free(list->ai_dst_addr);
    std::free(list->ai_src_canonname);
    std::free(list->ai_dst_canonname);
    std::free(list->ai_route);
    std::free(list->ai_connect);
    std::free(list);
    list = next;
  }
}

struct Freed {
  void operator()(rdma_addrinfo* list) const { free_list(list); }
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};

// Copies `size` octets of an address; nothing where there is none.
void copy(const sockaddr* from, socklen_t size, sockaddr*& to, socklen_t& to_size) {
  if (from == nullptr || size == 0) return;
  to = static_cast<sockaddr*>(std::malloc(size));
  if (to == nullptr) throw std::bad_alloc();
  std::memcpy(to, from, size);
  to_size = size;
}

void set_kind(rdma_addrinfo& made, const rdma_addrinfo* hints) {
  made.ai_qp_type = hints != nullptr ? hints->ai_qp_type : 0;
  made.ai_port_space = hints != nullptr ? hints->ai_port_space : 0;
  if (made.ai_port_space == 0) made.ai_port_space = made.ai_qp_type == IBV_QPT_UD ? RDMA_PS_UDP : RDMA_PS_TCP;
  if (made.ai_qp_type == 0) made.ai_qp_type = made.ai_port_space == RDMA_PS_UDP ? IBV_QPT_UD : IBV_QPT_RC;
}

int look_up(const char* node, const char* service, const rdma_addrinfo* hints, rdma_addrinfo** result) {
  std::unique_ptr<rdma_addrinfo, Freed> made(static_cast<rdma_addrinfo*>(std::calloc(1, sizeof(rdma_addrinfo))));
  if (made == nullptr) throw std::bad_alloc();
  const int flags = hints != nullptr ? hints->ai_flags : 0;
  const bool passive = (flags & RAI_PASSIVE) != 0;
  made->ai_flags = flags;
  set_kind(*made, hints);
  if (node != nullptr || service != nullptr) {
    addrinfo wanted{};
    wanted.ai_socktype = SOCK_STREAM;
    if (passive) wanted.ai_flags |= AI_PASSIVE;
    if ((flags & RAI_NUMERICHOST) != 0) wanted.ai_flags |= AI_NUMERICHOST;
    if ((flags & RAI_FAMILY) != 0) wanted.ai_family = hints->ai_family;
    addrinfo* list = nullptr;
    if (const int error = ::getaddrinfo(node, service, &wanted, &list); error != 0) return error;
    const std::unique_ptr<addrinfo, Freed> found(list);
    made->ai_family = found->ai_family;
    if (passive) {
      copy(found->ai_addr, found->ai_addrlen, made->ai_src_addr, made->ai_src_len);
    } else {
      copy(found->ai_addr, found->ai_addrlen, made->ai_dst_addr, made->ai_dst_len);
    }
  } else if (hints != nullptr) {
    made->ai_family = hints->ai_family;
  }
  if (hints != nullptr) {
    if (made->ai_src_addr == nullptr) copy(hints->ai_src_addr, hints->ai_src_len, made->ai_src_addr, made->ai_src_len);
    if (made->ai_dst_addr == nullptr) copy(hints->ai_dst_addr, hints->ai_dst_len, made->ai_dst_addr, made->ai_dst_len);
  }
  *result = made.release();
  return 0;
}

}  // namespace
}  // namespace iwarp::dropin::rdmacm

using namespace iwarp::dropin::rdmacm;

// 0, an EAI_ value of getaddrinfo(), or -1 with errno.
IWARP_ENTRY int iwarp_rdma_getaddrinfo(const char* node, const char* service, const rdma_addrinfo* hints,
                                       rdma_addrinfo** result) {
  if (result == nullptr || (node == nullptr && service == nullptr && hints == nullptr)) return fail(EINVAL);
  return guarded([&] { return look_up(node, service, hints, result); });
}

IWARP_ENTRY void iwarp_rdma_freeaddrinfo(rdma_addrinfo* list) {
  free_list(list);
}
