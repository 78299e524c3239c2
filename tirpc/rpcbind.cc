#include "iwarp/tirpc/rpcbind.h"

#include <netdb.h>
#include <rpc/rpc.h>
#include <rpc/rpcb_prot.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <charconv>
#include <cstring>
#include <memory>

#include "iwarp/tirpc/xdr_octets.h"

namespace iwarp::tirpc {
namespace {

struct DestroyClient {
  void operator()(CLIENT* clnt) const {
    auth_destroy(clnt->cl_auth);
    clnt_destroy(clnt);
  }
};
using Rpcbind = std::unique_ptr<CLIENT, DestroyClient>;

timeval seconds(std::chrono::milliseconds ms) {
  const auto whole = std::chrono::duration_cast<std::chrono::seconds>(ms);
  return {whole.count() + 1, 0};
}

Rpcbind over(int fd, const sockaddr* address, socklen_t length) {
  netbuf to{length, length, const_cast<sockaddr*>(address)};
  CLIENT* const clnt = clnt_vc_create(fd, &to, RPCBPROG, RPCBVERS, 0, 0);
  if (clnt == nullptr) {
    ::close(fd);
    return nullptr;
  }
  clnt_control(clnt, CLSET_FD_CLOSE, nullptr);
  return Rpcbind(clnt);
}

Rpcbind over_local(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_LOCAL;
  if (path.size() >= sizeof address.sun_path) return nullptr;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  const int fd = ::socket(AF_LOCAL, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return nullptr;
  const auto* const generic = reinterpret_cast<const sockaddr*>(&address);
  if (::connect(fd, generic, sizeof address) != 0) {
    ::close(fd);
    return nullptr;
  }
  return over(fd, generic, sizeof address);
}

Rpcbind over_tcp(const std::string& host, std::chrono::milliseconds timeout) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), "111", &hints, &found) != 0) return nullptr;
  Rpcbind made;
  for (const addrinfo* a = found; a != nullptr && !made; a = a->ai_next) {
    const int fd = ::socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) continue;
    const timeval limit = seconds(timeout);  // of connect(), on Linux
    (void)::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    if (::connect(fd, a->ai_addr, a->ai_addrlen) != 0) {
      ::close(fd);
      continue;
    }
    made = over(fd, a->ai_addr, a->ai_addrlen);
  }
  ::freeaddrinfo(found);
  return made;
}

Result<void> ask(const std::string& socket, rpcproc_t procedure, const Registration& what) {
  const Rpcbind rpcbind = over_local(socket);
  if (!rpcbind) return make_error(Errc::kNotConnected, "rpcbind does not answer");
  std::string netid = what.netid, address = what.address, owner = std::to_string(::geteuid());
  RPCB parms{};
  parms.r_prog = what.program;
  parms.r_vers = what.version;
  parms.r_netid = netid.data();
  parms.r_addr = address.data();
  parms.r_owner = owner.data();
  bool_t done = FALSE;
  const clnt_stat stat = clnt_call(rpcbind.get(), procedure, reinterpret_cast<xdrproc_t>(xdr_rpcb), &parms,
                                   reinterpret_cast<xdrproc_t>(xdr_bool), &done, (timeval{10, 0}));
  if (stat == RPC_TIMEDOUT) return make_error(Errc::kTimeout, "rpcbind does not answer");
  if (stat != RPC_SUCCESS) return make_error(Errc::kNotConnected, "rpcbind refuses the call");
  if (!done) return make_error(Errc::kPeerRejected, "rpcbind refuses the entry");
  return {};
}

Result<std::uint16_t> find_in(CLIENT* rpcbind, std::uint32_t program, std::uint32_t version, timeval limit) {
  rpcblist_ptr list = nullptr;
  const auto filter = reinterpret_cast<xdrproc_t>(xdr_rpcblist_ptr);
  const clnt_stat stat = clnt_call(rpcbind, RPCBPROC_DUMP, nothing, nullptr, filter, &list, limit);
  if (stat != RPC_SUCCESS) return make_error(Errc::kNotConnected, "rpcbind does not answer");
  Result<std::uint16_t> out = make_error(Errc::kInvalidArgument, "rpcbind knows no such program of rdma or rdma6");
  for (const rpcblist* entry = list; entry != nullptr; entry = entry->rpcb_next) {
    const RPCB& map = entry->rpcb_map;
    const bool rdma = std::strcmp(map.r_netid, "rdma") == 0 || std::strcmp(map.r_netid, "rdma6") == 0;
    if (!rdma || map.r_prog != program || map.r_vers != version) continue;
    if (const auto port = port_of(map.r_addr)) out = *port;
  }
  clnt_freeres(rpcbind, filter, &list);
  return out;
}

}  // namespace

Result<void> set(const std::string& socket, const Registration& what) {
  (void)unset(socket, what);  // RPCBPROC_SET never replaces
  return ask(socket, RPCBPROC_SET, what);
}

Result<void> unset(const std::string& socket, const Registration& what) {
  return ask(socket, RPCBPROC_UNSET, what);
}

Result<std::uint16_t> find_port(const std::string& host, std::uint32_t program, std::uint32_t version,
                                std::chrono::milliseconds timeout, const std::string& socket) {
  const bool here = host == "localhost" || host.starts_with("127.") || host == "::1";
  Rpcbind rpcbind = here ? over_local(socket) : nullptr;
  if (!rpcbind) rpcbind = over_tcp(host, timeout);
  if (!rpcbind) return make_error(Errc::kNotConnected, "rpcbind does not answer");
  return find_in(rpcbind.get(), program, version, seconds(timeout));
}

std::string universal_address(const std::string& address, std::uint16_t port) {
  return address + '.' + std::to_string(port >> 8) + '.' + std::to_string(port & 0xff);
}

Result<std::uint16_t> port_of(const std::string& universal) {
  const auto bad = make_error(Errc::kInvalidArgument, "not a universal address");
  const auto low_dot = universal.rfind('.');
  if (low_dot == std::string::npos || low_dot == 0) return bad;
  const auto high_dot = universal.rfind('.', low_dot - 1);
  if (high_dot == std::string::npos) return bad;
  unsigned high = 256, low = 256;
  const char* const text = universal.c_str();
  const auto first = std::from_chars(text + high_dot + 1, text + low_dot, high);
  const auto second = std::from_chars(text + low_dot + 1, text + universal.size(), low);
  if (first.ptr != text + low_dot || second.ptr != text + universal.size() || high > 255 || low > 255) return bad;
  return static_cast<std::uint16_t>(high << 8 | low);
}

}  // namespace iwarp::tirpc
