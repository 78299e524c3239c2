// Addresses of an id: bind, resolve.
#include "dropin/rdmacm/bind.h"

#include <netinet/in.h>

#include "dropin/rdmacm/address.h"
#include "dropin/rdmacm/entries.h"
#include "dropin/rdmacm/entry.h"

namespace iwarp::dropin::rdmacm {

using boost::asio::ip::tcp;

Descriptor bind_socket(const tcp::endpoint& local, bool v6_only, tcp::endpoint& got) {
  const int family = local.protocol().family();
  Descriptor socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return {};
  // Connections of the past that wait for their end keep nobody from the port; who listens there does, in listen().
  const int on = 1, off = 0;
  if (::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0) return {};
  if (family == AF_INET6) {
    const int& only = v6_only ? on : off;
    if (::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &only, sizeof only) != 0) return {};
  }
  if (::bind(socket.get(), local.data(), static_cast<socklen_t>(local.size())) != 0) return {};
  sockaddr_storage name{};
  socklen_t size = sizeof name;
  if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&name), &size) != 0) return {};
  got = *endpoint_of(reinterpret_cast<const sockaddr*>(&name));
  return socket;
}

int bind_id(Id& id, const tcp::endpoint& local) {
  if (!id.process.alive() || id.state != Id::State::kIdle) return fail(EINVAL);
  tcp::endpoint got;
  Descriptor socket = bind_socket(local, id.v6_only.value_or(false), got);
  if (!socket) return -1;
  if (!local.address().is_unspecified() && id.set_device() != 0) return -1;
  id.set_local(got);
  id.bound = std::move(socket);
  id.bound_by_application = true;
  id.state = Id::State::kBound;
  return 0;
}

namespace {

int resolve_address(Id& id, const sockaddr* source, const sockaddr* destination) {
  const auto peer = endpoint_of(destination);
  if (!peer || !id.process.alive()) return fail(EINVAL);
  if (source != nullptr && id.state == Id::State::kIdle) {
    const auto local = endpoint_of(source);
    if (!local || local->protocol() != peer->protocol()) return fail(EINVAL);
    if (bind_id(id, *local) != 0) return -1;
  }
  if (id.state != Id::State::kIdle && id.state != Id::State::kBound) return fail(EINVAL);
  tcp::endpoint from = id.local();
  if (id.state == Id::State::kBound && from.protocol() != peer->protocol()) return fail(EINVAL);
  if (id.state == Id::State::kIdle || from.address().is_unspecified()) {
    tcp::endpoint routed;
    if (const int error = route_to(*peer, routed); error != 0) {
      id.tell(RDMA_CM_EVENT_ADDR_ERROR, -error);
      return id.complete();
    }
    routed.port(id.state == Id::State::kBound ? from.port() : 0);
    from = routed;
  }
  if (id.set_device() != 0) return -1;
  id.set_local(from);
  // The address of nowhere is this host's, as for sockets.
  id.set_peer(peer->address().is_unspecified() ? tcp::endpoint(from.address(), peer->port()) : *peer);
  id.state = Id::State::kAddressResolved;
  id.tell(RDMA_CM_EVENT_ADDR_RESOLVED);
  return id.complete();
}

}  // namespace
}  // namespace iwarp::dropin::rdmacm

using namespace iwarp::dropin::rdmacm;

IWARP_ENTRY int iwarp_rdma_bind_addr(rdma_cm_id* id, sockaddr* address) {
  if (id == nullptr) return fail(EINVAL);
  return guarded([&] {
    const auto local = endpoint_of(address);
    if (!local) return fail(address == nullptr ? EINVAL : EAFNOSUPPORT);
    return bind_id(Id::of(id), *local);
  });
}

IWARP_ENTRY int iwarp_rdma_resolve_addr(rdma_cm_id* id, sockaddr* source, sockaddr* destination, int /*timeout_ms*/) {
  if (id == nullptr) return fail(EINVAL);
  return guarded([&] { return resolve_address(Id::of(id), source, destination); });
}

// TCP finds its way itself.
IWARP_ENTRY int iwarp_rdma_resolve_route(rdma_cm_id* id, int /*timeout_ms*/) {
  if (id == nullptr) return fail(EINVAL);
  return guarded([&] {
    Id& own = Id::of(id);
    if (!own.process.alive() || own.state != Id::State::kAddressResolved) return fail(EINVAL);
    own.state = Id::State::kRouteResolved;
    own.tell(RDMA_CM_EVENT_ROUTE_RESOLVED);
    return own.complete();
  });
}

namespace {

in_port_t port_of(const sockaddr& address, const sockaddr_in& v4, const sockaddr_in6& v6) {
  if (address.sa_family == AF_INET) return v4.sin_port;
  return address.sa_family == AF_INET6 ? v6.sin6_port : in_port_t{0};
}

}  // namespace

IWARP_ENTRY __be16 iwarp_rdma_get_src_port(rdma_cm_id* id) {
  const auto& address = id->route.addr;
  return port_of(address.src_addr, address.src_sin, address.src_sin6);
}

IWARP_ENTRY __be16 iwarp_rdma_get_dst_port(rdma_cm_id* id) {
  const auto& address = id->route.addr;
  return port_of(address.dst_addr, address.dst_sin, address.dst_sin6);
}
