#include "iwarp/gateway/rpcbind.h"

#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <random>
#include <utility>

#include "iwarp/base/wire.h"

namespace iwarp::gateway {
namespace {

constexpr std::uint32_t kNfs = 100003;
constexpr std::size_t kMaxReplyBytes = 1024;

// A conversation with rpcbind: blocking, with a limit for each step. After a failure all further ones fail.
class Talk {
 public:
  Talk(const std::string& path, std::chrono::milliseconds limit) {
    if (const int error = open(path, limit); error != 0) fail(error);
    std::array<char, 256> host{};
    if (::gethostname(host.data(), host.size() - 1) == 0) caller_.host = host.data();
    caller_.uid = ::geteuid();
    caller_.gid = ::getegid();
  }
  ~Talk() {
    if (fd_ >= 0) ::close(fd_);
  }
  Talk(const Talk&) = delete;
  Talk& operator=(const Talk&) = delete;

  // Nothing: no answer.
  [[nodiscard]] std::optional<bool> ask(RpcbindProcedure procedure, RpcbindEntry entry) {
    if (!why_.empty()) return std::nullopt;
    entry.owner = std::to_string(caller_.uid);
    const std::uint32_t xid = xid_++;
    const auto call = rpcbind_call(xid, procedure, entry, caller_);
    for (std::size_t sent = 0; sent < call.size();) {
      const auto n = ::send(fd_, call.data() + sent, call.size() - sent, MSG_NOSIGNAL);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return failed(errno);
      sent += static_cast<std::size_t>(n);
    }
    std::array<std::byte, kMaxReplyBytes> reply{};
    if (!read(MutBytes(reply).first(4))) return std::nullopt;
    const auto mark = load_be<std::uint32_t>(ConstBytes(reply));
    const std::size_t bytes = mark & 0x7FFFFFFF;
    if (mark >> 31 == 0 || bytes > reply.size()) return failed(EPROTO);
    if (!read(MutBytes(reply).first(bytes))) return std::nullopt;
    const auto answer = rpcbind_answer(ConstBytes(reply).first(bytes), xid);
    if (!answer) return failed(EPROTO);
    return answer;
  }
  [[nodiscard]] const std::string& why() const { return why_; }

 private:
  // 0, or the error.
  [[nodiscard]] int open(const std::string& path, std::chrono::milliseconds limit) {
    sockaddr_un to{};
    to.sun_family = AF_UNIX;
    if (path.size() >= sizeof to.sun_path) return ENAMETOOLONG;
    std::copy(path.begin(), path.end(), to.sun_path);
    fd_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd_ < 0) return errno;
    timeval time{};
    time.tv_sec = static_cast<decltype(time.tv_sec)>(limit.count() / 1000);
    time.tv_usec = static_cast<decltype(time.tv_usec)>(limit.count() % 1000 * 1000);
    for (const int which : {SO_SNDTIMEO, SO_RCVTIMEO}) (void)::setsockopt(fd_, SOL_SOCKET, which, &time, sizeof time);
    return ::connect(fd_, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0 ? 0 : errno;
  }
  void fail(int error) {
    why_ = error == EAGAIN ? "it does not answer" : error == EPROTO ? "it answers with an error" : std::strerror(error);
  }
  std::nullopt_t failed(int error) {
    fail(error);
    return std::nullopt;
  }
  bool read(MutBytes to) {
    while (!to.empty()) {
      const auto n = ::recv(fd_, to.data(), to.size(), 0);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) {
        fail(n == 0 ? ECONNRESET : errno);
        return false;
      }
      to = to.subspan(static_cast<std::size_t>(n));
    }
    return true;
  }

  int fd_ = -1;
  RpcbindCaller caller_;
  std::uint32_t xid_ = std::random_device{}();
  std::string why_;
};

std::string text(const RpcbindEntry& e) {
  return fmt::format("program {} version {} netid {} address {}", e.program, e.version, e.netid, e.address);
}

bool contains(const std::vector<RpcbindEntry>& list, const RpcbindEntry& entry) {
  return std::find(list.begin(), list.end(), entry) != list.end();
}

}  // namespace

std::vector<ServedProgram> nfs_programs() {
  return {{kNfs, 3}, {kNfs, 4}};
}

Parsed<std::vector<ServedProgram>> parse_served_programs(std::string_view text) {
  std::vector<ServedProgram> out;
  const auto number = [](std::string_view digits, std::uint32_t& to) {
    const auto [end, bad] = std::from_chars(digits.data(), digits.data() + digits.size(), to);
    return bad == std::errc{} && end == digits.data() + digits.size();
  };
  for (std::string_view rest = text;;) {
    const std::string_view item = rest.substr(0, rest.find(','));
    const std::size_t colon = item.find(':');
    ServedProgram p;
    if (colon == std::string_view::npos || !number(item.substr(0, colon), p.program) ||
        !number(item.substr(colon + 1), p.version))
      return {std::nullopt, "'" + std::string(item) + "' is not PROGRAM:VERSION; 100003:3,100003:4 is right"};
    out.push_back(p);
    if (item.size() == rest.size()) return {std::move(out), {}};
    rest.remove_prefix(item.size() + 1);
  }
}

std::vector<RpcbindEntry> rpcbind_entries(const std::vector<ServedProgram>& programs,
                                          const boost::asio::ip::tcp::endpoint& listener) {
  using boost::asio::ip::tcp;
  std::vector<tcp::endpoint> addresses = {listener};
  const auto address = listener.address();
  if (address.is_v6() && address.is_unspecified())
    addresses.emplace_back(boost::asio::ip::address_v4::any(), listener.port());
  std::vector<RpcbindEntry> out;
  for (const tcp::endpoint& at : addresses) {
    for (const ServedProgram& p : programs)  // req: D2005-10-1 RFC8166-5-3 RFC8267-4.2-3
      out.push_back({p.program, p.version, rdma_netid(at.address()), universal_address(at), {}});
  }
  return out;
}

Rpcbind::Rpcbind(const RpcbindOptions& options) : options_(options), thread_([this] { work(); }) {}

Rpcbind::~Rpcbind() {
  serve({});
  {
    const std::lock_guard lock(mu_);
    over_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void Rpcbind::serve(const std::vector<boost::asio::ip::tcp::endpoint>& listeners) {
  std::vector<RpcbindEntry> wanted;
  for (const auto& listener : listeners) {
    for (RpcbindEntry& entry : rpcbind_entries(options_.programs, listener)) wanted.push_back(std::move(entry));
  }
  {
    const std::lock_guard lock(mu_);
    wanted_ = std::move(wanted);
  }
  changed_.notify_one();
}

void Rpcbind::work() {
  std::unique_lock lock(mu_);
  for (;;) {
    changed_.wait(lock, [this] { return wanted_ || over_; });
    if (!wanted_) return;
    const auto wanted = *std::exchange(wanted_, std::nullopt);
    lock.unlock();
    bring_about(wanted);
    lock.lock();
  }
}

void Rpcbind::bring_about(const std::vector<RpcbindEntry>& wanted) {
  std::vector<RpcbindEntry> gone, added;
  for (const RpcbindEntry& e : registered_) {
    if (!contains(wanted, e)) gone.push_back(e);
  }
  for (const RpcbindEntry& e : wanted) {
    if (!contains(registered_, e) && !contains(added, e)) added.push_back(e);
  }
  if (gone.empty() && added.empty()) return;
  Talk talk(options_.socket, options_.time_limit);
  for (const RpcbindEntry& e : gone) {
    const auto answer = talk.ask(RpcbindProcedure::kUnset, e);
    if (!answer) break;
    std::erase(registered_, e);
    if (*answer) {
      spdlog::info("rpcbind: withdrawn {}", text(e));
    } else {
      spdlog::warn("rpcbind: refuses to withdraw {}", text(e));
    }
  }
  for (const RpcbindEntry& e : added) {
    const auto answer = talk.ask(RpcbindProcedure::kSet, e);
    if (!answer) break;
    if (*answer) {
      registered_.push_back(e);
      spdlog::info("rpcbind: registered {}", text(e));
    } else {
      spdlog::warn(
          "rpcbind: refuses {}: another server, or a gateway that ended without withdrawing, has registered "
          "this program for {}; see rpcinfo. Stop that server, or restart rpcbind to be rid of what is left over, and "
          "then restart the gateway",
          text(e), e.netid);
    }
  }
  if (!talk.why().empty()) {
    spdlog::warn(
        "rpcbind: cannot reach it at {}: {}; is it installed and running (systemctl start rpcbind.socket)? Then "
        "reload the gateway. Clients that name the port need no rpcbind: mount -o rdma,port=20049",
        options_.socket, talk.why());
  }
}

}  // namespace iwarp::gateway
