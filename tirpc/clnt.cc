// CLIENT of libtirpc over rpc::Client.
#include <netdb.h>
#include <netinet/in.h>
#include <rpc/rpc.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>

#include "iwarp/rpc/client.h"
#include "iwarp/rpc/iwarp_transport.h"
#include "iwarp/tirpc/options.h"
#include "iwarp/tirpc/process_engine.h"
#include "iwarp/tirpc/rpcbind.h"
#include "iwarp/tirpc/xdr_octets.h"
#include "iwarp/verbs/entropy.h"

namespace iwarp::tirpc {
namespace {

using std::chrono::milliseconds;

// What cl_private points to.
struct Handle {
  Handle(const Settings& settings, const std::string& host, std::uint16_t port)
      : client(process_engine(),
               rpc::over_iwarp(
                   process_engine(),
                   {.host = host, .port = port, .policy = settings.policy, .connect_timeout = settings.timeout}),
               settings.client) {
    std::array<std::byte, 4> random{};
    if (verbs::fill_random(random)) xid = load_be<std::uint32_t>(random);
  }

  CLIENT clnt{};
  rpc::Client client;
  // Guards what follows, and the credential. Of one thread several times: to be refreshed a credential may make Calls
  // of its own, with this handle, as RPCSEC_GSS does.
  std::recursive_mutex mu;
  std::uint32_t program = 0, version = 0, xid = 0;
  std::optional<timeval> timeout;  // of CLSET_TIMEOUT
  timeval last_timeout{25, 0};
  rpc_err error{};
  sockaddr_storage address{};
  socklen_t address_length = 0;
  netbuf address_buffer{};
  std::string netid = "rdma";
};

Handle& handle_of(CLIENT* clnt) {
  return *static_cast<Handle*>(clnt->cl_private);
}

std::size_t word_at(std::uint32_t value, std::byte* to) {
  store_be(std::span<std::byte, 4>(to, 4), value);
  return 4;
}

// The whole RPC Call, or why there is none. A credential may sum up the head as it goes out, the xid included, as
// RPCSEC_GSS does (RFC 2203 s5.3.1).
clnt_stat encode(Handle& h, std::uint32_t xid, rpcproc_t proc, xdrproc_t xargs, void* args, rpc::Octets& out) {
  out.reserve(XdrOctets::kUsualBytes);
  out.resize(24);
  std::size_t at = 0;
  for (const std::uint32_t word : {xid, 0u, 2u, h.program, h.version, static_cast<std::uint32_t>(proc)}) {
    at += word_at(word, out.data() + at);
  }
  XdrOctets stream(out);
  if (!AUTH_MARSHALL(h.clnt.cl_auth, stream.xdr())) return RPC_CANTENCODEARGS;
  if (!AUTH_WRAP(h.clnt.cl_auth, stream.xdr(), xargs, static_cast<caddr_t>(args))) return RPC_CANTENCODEARGS;
  stream.finish();
  return RPC_SUCCESS;
}

// What a Reply says. False: the Call was not executed, and a fresh credential may help.
bool decode(Handle& h, ConstBytes message, xdrproc_t xres, void* res, rpc_msg& reply) {
  XDR xdrs;
  char* const octets = const_cast<char*>(reinterpret_cast<const char*>(message.data()));
  xdrmem_create(&xdrs, octets, static_cast<u_int>(message.size()), XDR_DECODE);
  reply.acpted_rply.ar_verf = _null_auth;
  reply.acpted_rply.ar_results.where = nullptr;
  reply.acpted_rply.ar_results.proc = nothing;
  if (!xdr_replymsg(&xdrs, &reply)) {
    h.error.re_status = RPC_CANTDECODERES;
    return true;
  }
  _seterr_reply(&reply, &h.error);
  const bool executed = h.error.re_status == RPC_SUCCESS;
  if (executed) {
    if (!AUTH_VALIDATE(h.clnt.cl_auth, &reply.acpted_rply.ar_verf)) {
      h.error.re_status = RPC_AUTHERROR;
      h.error.re_why = AUTH_INVALIDRESP;
    } else if (xres != nullptr && !AUTH_UNWRAP(h.clnt.cl_auth, &xdrs, xres, static_cast<caddr_t>(res))) {
      h.error.re_status = RPC_CANTDECODERES;
    }
  }
  if (reply.rm_reply.rp_stat == MSG_ACCEPTED && reply.acpted_rply.ar_verf.oa_base != nullptr) {
    xdrs.x_op = XDR_FREE;
    (void)xdr_opaque_auth(&xdrs, &reply.acpted_rply.ar_verf);
  }
  return executed;
}

void fail(rpc_err& error, const Error& why) {
  error = {};
  switch (why.code) {
    case Errc::kTimeout:
      error.re_status = RPC_TIMEDOUT;
      return;
    case Errc::kMalformedRpc:
      error.re_status = RPC_CANTDECODERES;
      return;
    case Errc::kInvalidArgument:
    case Errc::kQueueFull:
      error.re_status = RPC_CANTSEND;
      error.re_errno = why.code == Errc::kQueueFull ? EAGAIN : EINVAL;
      return;
    case Errc::kRecordTooLong:
      error.re_status = RPC_CANTRECV;
      error.re_errno = EMSGSIZE;
      return;
    case Errc::kConnectionRefused:
      error.re_status = RPC_CANTSEND;
      error.re_errno = ECONNREFUSED;
      return;
    case Errc::kResource:
      error.re_status = RPC_SYSTEMERROR;
      error.re_errno = ENOMEM;
      return;
    default:
      error.re_status = RPC_CANTRECV;
      error.re_errno = ECONNRESET;
  }
}

milliseconds duration(const timeval& t) {
  if (t.tv_sec < 0 || t.tv_usec < 0) return milliseconds(0);
  if (t.tv_sec > 1'000'000'000) return milliseconds::max();
  return milliseconds(t.tv_sec * 1000 + (t.tv_usec + 999) / 1000);
}

// --- the operations of a CLIENT

clnt_stat call(CLIENT* clnt, rpcproc_t proc, xdrproc_t xargs, void* args, xdrproc_t xres, void* res,
               timeval timeout) try {
  Handle& h = handle_of(clnt);
  for (int refreshes = 2;; --refreshes) {
    rpc::Octets message;
    rpc::CallOptions options;
    bool wait = true;
    {
      const std::lock_guard lock(h.mu);
      h.last_timeout = h.timeout.value_or(timeout);
      options.timeout = duration(h.last_timeout);
      wait = options.timeout->count() > 0;
      options.xid = h.xid++;
      h.error = {};
      h.error.re_status = encode(h, *options.xid, proc, xargs, args, message);
      if (h.error.re_status != RPC_SUCCESS) return h.error.re_status;
    }
    if (!wait) {  // goes on its way all the same
      options.one_way = true;
      options.timeout.reset();
    }
    auto reply = h.client.exchange(std::move(message), options);
    const std::lock_guard lock(h.mu);
    if (!reply) {
      fail(h.error, reply.error());
      return h.error.re_status;
    }
    if (!wait) {
      if (xres != nullptr) h.error.re_status = RPC_TIMEDOUT;
      return h.error.re_status;
    }
    rpc_msg answer{};
    if (decode(h, reply->message(), xres, res, answer)) return h.error.re_status;
    const rpc_err error = h.error;
    if (refreshes > 0 && AUTH_REFRESH(h.clnt.cl_auth, &answer)) continue;
    h.error = error;  // not what Calls of the credential have left there
    return error.re_status;
  }
} catch (const std::bad_alloc&) {
  Handle& h = handle_of(clnt);
  const std::lock_guard lock(h.mu);
  h.error.re_status = RPC_SYSTEMERROR;
  h.error.re_errno = ENOMEM;
  return RPC_SYSTEMERROR;
}

void no_abort(CLIENT*) {}

void get_error(CLIENT* clnt, rpc_err* error) {
  Handle& h = handle_of(clnt);
  const std::lock_guard lock(h.mu);
  *error = h.error;
}

bool_t free_results(CLIENT*, xdrproc_t xres, void* res) {
  XDR xdrs{};
  xdrs.x_op = XDR_FREE;
  return (*xres)(&xdrs, res);
}

void destroy(CLIENT* clnt) {
  delete static_cast<Handle*>(clnt->cl_private);
}

template <class T>
bool_t get(void* info, T value) {
  std::memcpy(info, &value, sizeof value);
  return TRUE;
}

template <class T>
bool_t set(const void* info, T& value) {
  std::memcpy(&value, info, sizeof value);
  return TRUE;
}

bool_t control(CLIENT* clnt, u_int request, void* info) {
  Handle& h = handle_of(clnt);
  const std::lock_guard lock(h.mu);
  if (request == CLSET_FD_CLOSE || request == CLSET_FD_NCLOSE) return TRUE;  // it has its connection alone
  if (info == nullptr) return FALSE;
  switch (request) {
    case CLSET_TIMEOUT: {
      timeval asked{};
      set(info, asked);
      if (asked.tv_sec < 0 || asked.tv_sec > 100'000'000 || asked.tv_usec < 0 || asked.tv_usec > 1'000'000)
        return FALSE;
      h.timeout = asked;
      return TRUE;
    }
    case CLGET_TIMEOUT:
      return get(info, h.timeout.value_or(h.last_timeout));
    case CLGET_SERVER_ADDR:
      // The caller has room for a sockaddr: an address of IPv6 would not fit.
      if (h.address.ss_family != AF_INET) return FALSE;
      std::memcpy(info, &h.address, sizeof(sockaddr));
      return TRUE;
    case CLGET_SVC_ADDR:
      return get(info, h.address_buffer);  // points to memory of the handle
    case CLGET_XID:
      return get(info, h.xid - 1);  // of the last Call
    case CLSET_XID:
      return set(info, h.xid);  // of the next
    case CLGET_VERS:
      return get(info, h.version);
    case CLSET_VERS:
      return set(info, h.version);
    case CLGET_PROG:
      return get(info, h.program);
    case CLSET_PROG:
      return set(info, h.program);
    default:
      return FALSE;
  }
}

const CLIENT::clnt_ops kOperations{call, no_abort, get_error, free_results, destroy, control};
char kNoDevice[] = "";

CLIENT* refuse(clnt_stat stat, int error) {
  rpc_createerr.cf_stat = stat;
  rpc_createerr.cf_error.re_status = stat;
  rpc_createerr.cf_error.re_errno = error;
  errno = error;
  return nullptr;
}

// The first address of a host name.
bool resolve(const char* host, std::uint16_t port, Handle& h) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host, std::to_string(port).c_str(), &hints, &found) != 0 || found == nullptr) return false;
  h.address_length = found->ai_addrlen;
  std::memcpy(&h.address, found->ai_addr, found->ai_addrlen);
  ::freeaddrinfo(found);
  h.address_buffer = {sizeof h.address, h.address_length, &h.address};
  if (h.address.ss_family == AF_INET6) h.netid = "rdma6";
  return true;
}

CLIENT* create(const char* host, std::uint32_t prog, std::uint32_t vers, std::uint16_t port,
               const rpcrdma_options* options) {
  auto settings = read_options(options);
  if (!settings || host == nullptr) return refuse(RPC_SYSTEMERROR, EINVAL);
  if (port == 0) {
    const auto known = find_port(host, prog, vers, settings->timeout, settings->rpcbind_socket);
    if (!known) return refuse(known.error().code == Errc::kNotConnected ? RPC_RPCBFAILURE : RPC_PROGNOTREGISTERED, 0);
    port = *known;
  }
  auto h = std::make_unique<Handle>(*settings, host, port);
  if (!resolve(host, port, *h)) return refuse(RPC_UNKNOWNHOST, 0);
  h->program = prog;
  h->version = vers;
  // Connected now, as over TCP; what the server says of the program is told by the Calls.
  const auto there = h->client.call({prog, vers, 0}, {}, {.timeout = settings->timeout});
  if (!there) {
    rpc_err error{};
    fail(error, there.error());
    return refuse(error.re_status == RPC_TIMEDOUT ? RPC_TIMEDOUT : RPC_SYSTEMERROR, error.re_errno);
  }
  h->clnt.cl_auth = authnone_create();
  h->clnt.cl_ops = const_cast<CLIENT::clnt_ops*>(&kOperations);
  h->clnt.cl_private = h.get();
  h->clnt.cl_netid = h->netid.data();
  h->clnt.cl_tp = kNoDevice;
  return &h.release()->clnt;
}

}  // namespace
}  // namespace iwarp::tirpc

extern "C" __rpc_client* clnt_rpcrdma_create(const char* host, uint32_t prog, uint32_t vers, uint16_t port,
                                             const rpcrdma_options* options) try {
  return iwarp::tirpc::create(host, prog, vers, port, options);
} catch (const std::bad_alloc&) {
  return iwarp::tirpc::refuse(RPC_SYSTEMERROR, ENOMEM);
}
