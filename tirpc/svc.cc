// SVCXPRT of libtirpc.
#include <cerrno>
#include <new>

#include "iwarp/tirpc/svc_transport.h"

namespace iwarp::tirpc {
namespace {

SvcTransport& transport_of(SVCXPRT* xprt) {
  return *static_cast<SvcTransport*>(xprt->xp_p1);
}

// No exception passes into libtirpc.
template <class Act>
bool_t guarded(Act act) {
  try {
    return act() ? TRUE : FALSE;
  } catch (const std::bad_alloc&) {
    return FALSE;
  }
}

bool_t receive(SVCXPRT* xprt, rpc_msg* msg) {
  return guarded([&] { return transport_of(xprt).receive(msg); });
}

xprt_stat status(SVCXPRT* xprt) try { return transport_of(xprt).status(); } catch (const std::exception&) {
  return XPRT_IDLE;
}

bool_t get_arguments(SVCXPRT* xprt, xdrproc_t xargs, void* args) {
  return guarded([&] { return transport_of(xprt).get_arguments(xargs, args); });
}

bool_t reply(SVCXPRT* xprt, rpc_msg* msg) {
  return guarded([&] { return transport_of(xprt).reply(msg); });
}

bool_t free_arguments(SVCXPRT*, xdrproc_t xargs, void* args) {
  XDR xdrs{};
  xdrs.x_op = XDR_FREE;
  return (*xargs)(&xdrs, args);
}

// Behind a dispatch routine libtirpc asks for the status in any case, and destroys what has died.
void destroy(SVCXPRT* xprt) {
  xprt_unregister(xprt);
  if (transport_of(xprt).end()) delete &transport_of(xprt);
}

bool_t control(SVCXPRT* xprt, const u_int request, void* info) {
  switch (request) {
    case SVCGET_VERSQUIET:
      *static_cast<int*>(info) = (SVCEXT(xprt)->flags & SVC_VERSQUIET) != 0 ? 1 : 0;
      return TRUE;
    case SVCSET_VERSQUIET:
      SVCEXT(xprt)->flags = *static_cast<const int*>(info) != 0 ? SVCEXT(xprt)->flags | SVC_VERSQUIET
                                                                : SVCEXT(xprt)->flags & ~SVC_VERSQUIET;
      return TRUE;
    default:
      return FALSE;
  }
}

const struct __rpc_svcxprt::xp_ops kOperations { receive, status, get_arguments, reply, free_arguments, destroy };
const struct __rpc_svcxprt::xp_ops2 kControl { control };

int errno_of(const Error& error) {
  switch (error.code) {
    case Errc::kInvalidArgument:
      return EINVAL;
    case Errc::kResource:
      return EMFILE;
    case Errc::kNotConnected:
      return ECONNREFUSED;
    case Errc::kTimeout:
      return ETIMEDOUT;
    case Errc::kPeerRejected:
      return EACCES;
    case Errc::kSystem:
      return EADDRINUSE;
    default:
      return EIO;
  }
}

template <class Act>
int told(Act act) {
  try {
    const auto done = act();
    if (done) return 1;
    errno = errno_of(done.error());
  } catch (const std::bad_alloc&) {
    errno = ENOMEM;
  }
  return 0;
}

SVCXPRT* create(const char* host, std::uint16_t port, const rpcrdma_options* options) {
  const auto settings = read_options(options);
  if (!settings) {
    errno = errno_of(settings.error());
    return nullptr;
  }
  auto made = std::make_unique<SvcTransport>(*settings);
  if (const auto ok = made->open(host, port); !ok) {
    errno = errno_of(ok.error());
    return nullptr;
  }
  SVCXPRT* const xprt = made.release()->xprt();
  xprt->xp_ops = &kOperations;
  xprt->xp_ops2 = &kControl;
  xprt_register(xprt);
  return xprt;
}

}  // namespace
}  // namespace iwarp::tirpc

extern "C" {

__rpc_svcxprt* svc_rpcrdma_create(const char* host, uint16_t port, const rpcrdma_options* options) try {
  return iwarp::tirpc::create(host, port, options);
} catch (const std::bad_alloc&) {
  errno = ENOMEM;
  return nullptr;
}

int svc_rpcrdma_set(__rpc_svcxprt* xprt, uint32_t prog, uint32_t vers) {
  return iwarp::tirpc::told([&] { return iwarp::tirpc::transport_of(xprt).set(prog, vers); });
}

int svc_rpcrdma_unset(__rpc_svcxprt* xprt, uint32_t prog, uint32_t vers) {
  return iwarp::tirpc::told([&] { return iwarp::tirpc::transport_of(xprt).unset(prog, vers); });
}
}
