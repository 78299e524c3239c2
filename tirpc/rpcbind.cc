#include "iwarp/tirpc/rpcbind.h"

#include <netdb.h>
#include <rpc/rpc.h>
#include <rpc/rpcb_prot.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <system_error>
#include <thread>

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

// The list of a rpcbind, of which nothing is kept but what is looked for. Who answers is not trusted.
struct Search {
  static constexpr unsigned kMostEntries = 4096;
  static constexpr u_int kMostText = 255;  // octets of an address, say

  std::uint32_t program = 0, version = 0;
  std::string_view netid{};  // of the address that the port is for
  std::chrono::steady_clock::time_point until{};
  std::optional<std::uint16_t> port{};
  std::optional<std::uint16_t> other{};  // of the other netid: a listener may take both
};

bool_t read_list(XDR* xdrs, Search* search) {
  if (xdrs->x_op != XDR_DECODE) return TRUE;
  for (unsigned i = 0; i <= Search::kMostEntries; ++i) {
    bool_t more = FALSE;
    if (!xdr_bool(xdrs, &more)) return FALSE;
    if (!more) return TRUE;
    std::uint32_t program = 0, version = 0;
    std::array<std::array<char, Search::kMostText + 1>, 3> texts{};  // netid, address, owner
    if (!xdr_u_int32_t(xdrs, &program) || !xdr_u_int32_t(xdrs, &version)) return FALSE;
    for (auto& text : texts) {
      char* into = text.data();
      if (!xdr_string(xdrs, &into, Search::kMostText)) return FALSE;
    }
    if (std::chrono::steady_clock::now() > search->until) return FALSE;
    const std::string_view netid = texts[0].data();
    if (search->port || program != search->program || version != search->version) continue;
    if (netid != "rdma" && netid != "rdma6") continue;
    auto& found = netid == search->netid ? search->port : search->other;
    if (const auto port = port_of(texts[1].data()); port && !found) found = *port;
  }
  return FALSE;
}

// A thread that ends a connection at its time: libtirpc waits anew for each octet. It takes no signal.
class Ender {
 public:
  // Throws std::system_error: no thread is to be had.
  Ender(int fd, std::chrono::steady_clock::time_point when) {
    sigset_t all, before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      thread_ = std::thread([this, fd, when] {
        std::unique_lock lock(mu_);
        if (!told_.wait_until(lock, when, [this] { return in_time_; })) ::shutdown(fd, SHUT_RDWR);
      });
    } catch (...) {
      ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
      throw;
    }
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  ~Ender() {
    {
      const std::lock_guard lock(mu_);
      in_time_ = true;
    }
    told_.notify_one();
    thread_.join();
  }
  Ender(const Ender&) = delete;
  Ender& operator=(const Ender&) = delete;

 private:
  std::mutex mu_;
  std::condition_variable told_;
  bool in_time_ = false;
  std::thread thread_;
};

// Of the address that a client connects to: the first.
std::string_view netid_of(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), nullptr, &hints, &found) != 0 || found == nullptr) return "rdma";
  const bool six = found->ai_family == AF_INET6;
  ::freeaddrinfo(found);
  return six ? "rdma6" : "rdma";
}

Result<std::uint16_t> find_in(CLIENT* rpcbind, std::uint32_t program, std::uint32_t version, std::string_view netid,
                              std::chrono::milliseconds limit) {
  Search search{program, version, netid, std::chrono::steady_clock::now() + limit, {}, {}};
  int fd = -1;
  if (!clnt_control(rpcbind, CLGET_FD, reinterpret_cast<char*>(&fd))) return make_error(Errc::kNotConnected);
  std::optional<Ender> ender;
  try {
    ender.emplace(fd, search.until);
  } catch (const std::system_error&) {
    return make_error(Errc::kResource, "no thread to watch the time of rpcbind");
  }
  const clnt_stat stat = clnt_call(rpcbind, RPCBPROC_DUMP, nothing, nullptr, reinterpret_cast<xdrproc_t>(read_list),
                                   &search, seconds(limit));
  if (search.port) return *search.port;  // whatever came behind it
  if (search.other) return *search.other;
  if (stat == RPC_CANTDECODERES) return make_error(Errc::kNotConnected, "the answer of rpcbind cannot be read");
  if (stat != RPC_SUCCESS) return make_error(Errc::kNotConnected, "rpcbind does not answer");
  return make_error(Errc::kInvalidArgument, "rpcbind knows no such program of rdma or rdma6");
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
  return find_in(rpcbind.get(), program, version, netid_of(host), timeout);
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
