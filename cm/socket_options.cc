#include "iwarp/cm/socket_options.h"

#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>

namespace iwarp::cm {
namespace {

constexpr int kProbeSeconds = 5;
// What the kernel takes.
constexpr std::chrono::seconds kLongestKeepalive{32767};
constexpr std::chrono::milliseconds kLongestUserTimeout{std::numeric_limits<int>::max()};
constexpr int kProbes = 5;
constexpr std::size_t kUsualMss = 1448;

bool set(int fd, int level, int option, int value) {
  return ::setsockopt(fd, level, option, &value, sizeof value) == 0;
}

boost::system::error_code last_error() {
  return {errno, boost::asio::error::get_system_category()};
}

}  // namespace

Result<void> validate(const SocketOptions& options) {
  using namespace std::chrono_literals;
  if (options.keepalive_idle < 0s || options.keepalive_idle > kLongestKeepalive)
    return make_error(Errc::kInvalidArgument, "SocketOptions::keepalive_idle must be 0 (no probes) to 32767 s");
  if (options.user_timeout < 0ms || options.user_timeout > kLongestUserTimeout)
    return make_error(Errc::kInvalidArgument, "SocketOptions::user_timeout must be 0 (the system's) to 2147483647 ms");
  return {};
}

Result<void> prepare(boost::asio::ip::tcp::socket& socket, const SocketOptions& options) {
  boost::system::error_code ec;
  socket.non_blocking(true, ec);
  const int fd = socket.native_handle();
  bool ok = !ec && set(fd, IPPROTO_TCP, TCP_NODELAY, 1);  // req: RFC5044-5.1-4
  if (options.keepalive_idle.count() > 0) {
    ok = ok && set(fd, SOL_SOCKET, SO_KEEPALIVE, 1) &&
         set(fd, IPPROTO_TCP, TCP_KEEPIDLE, static_cast<int>(options.keepalive_idle.count())) &&
         set(fd, IPPROTO_TCP, TCP_KEEPINTVL, kProbeSeconds) && set(fd, IPPROTO_TCP, TCP_KEEPCNT, kProbes);
  }
  if (options.user_timeout.count() > 0)
    ok = ok && set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(options.user_timeout.count()));
  if (!ok) return make_error(Errc::kSystem, "cannot set TCP socket options");
  return {};
}

void make_room(int descriptor, std::size_t octets) {
  if (octets == 0) return;
  // The kernel makes room for what SO_RCVLOWAT asks for, and keeps it when that is lowered again. SO_RCVBUF would end
  // the growth beyond, and is held to net.core.rmem_max.
  const auto most = static_cast<std::size_t>(std::numeric_limits<int>::max());
  set(descriptor, SOL_SOCKET, SO_RCVLOWAT, static_cast<int>(std::min(octets, most)));
  set(descriptor, SOL_SOCKET, SO_RCVLOWAT, 1);
}

int open_tcp(const boost::asio::ip::tcp& protocol, boost::system::error_code& failed) {
  const int made = ::socket(protocol.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP);
  failed = made < 0 ? last_error() : boost::system::error_code();
  return made;
}

int accept_tcp(int listening, boost::system::error_code& failed) {
  const int made = ::accept4(listening, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  failed = made < 0 ? last_error() : boost::system::error_code();
  return made;
}

Result<void> set_congestion_control(int descriptor, const std::string& name) {
  if (name.empty()) return {};
  if (::setsockopt(descriptor, IPPROTO_TCP, TCP_CONGESTION, name.data(), static_cast<socklen_t>(name.size())) == 0)
    return {};
  if (errno == ENOENT)
    return make_error(Errc::kInvalidArgument,
                      "the kernel has no TCP congestion control of that name, or its module is not loaded (see "
                      "net.ipv4.tcp_available_congestion_control)");
  if (errno == EPERM)
    return make_error(Errc::kInvalidArgument,
                      "that TCP congestion control is not among net.ipv4.tcp_allowed_congestion_control, and others "
                      "need CAP_NET_ADMIN");
  return make_error(Errc::kSystem, "cannot set the TCP congestion control");
}

Result<boost::asio::ip::tcp::socket> rebind(boost::asio::ip::tcp::socket& from, const boost::asio::ip::tcp& protocol,
                                            boost::asio::io_context& io) {
  const Error failed = make_error(Errc::kResource, "cannot watch another socket: the system lacks memory");
  boost::system::error_code ec;
  boost::asio::ip::tcp::socket to(io);
  const int fd = from.release(ec);
  if (ec) return failed;
  assign_tcp(to, protocol, fd, ec);
  if (ec) return failed;
  return to;
}

std::size_t effective_mss(boost::asio::ip::tcp::socket& socket) {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (::getsockopt(socket.native_handle(), IPPROTO_TCP, TCP_INFO, &info, &size) != 0 || info.tcpi_snd_mss == 0)
    return kUsualMss;
  return info.tcpi_snd_mss;  // req: RFC5044-2-1 RFC5044-5.1-2
}

}  // namespace iwarp::cm
