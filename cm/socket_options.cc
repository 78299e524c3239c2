#include "iwarp/cm/socket_options.h"

#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

namespace iwarp::cm {
namespace {

constexpr int kProbeSeconds = 5;
constexpr int kProbes = 5;
constexpr std::size_t kUsualMss = 1448;

bool set(int fd, int level, int option, int value) {
  return ::setsockopt(fd, level, option, &value, sizeof value) == 0;
}

}  // namespace

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

Result<boost::asio::ip::tcp::socket> rebind(boost::asio::ip::tcp::socket& from, const boost::asio::ip::tcp& protocol,
                                            boost::asio::io_context& io) {
  const Error failed = make_error(Errc::kResource, "cannot watch another socket: the system lacks memory");
  boost::system::error_code ec;
  boost::asio::ip::tcp::socket to(io);
  const int fd = from.release(ec);
  if (ec) return failed;
  to.assign(protocol, fd, ec);
  if (ec) {
    ::close(fd);  // Asio gave it up, and has not taken it again
    return failed;
  }
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
