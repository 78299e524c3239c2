#include "iwarp/cm/tcp_connection.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace iwarp::cm {
namespace {

// The address family of a connected TCP socket; 0: it is none.
int connected_family(int descriptor) {
  int protocol = 0;
  socklen_t size = sizeof protocol;
  if (::getsockopt(descriptor, SOL_SOCKET, SO_PROTOCOL, &protocol, &size) != 0 || protocol != IPPROTO_TCP) return 0;
  sockaddr_storage peer{};
  size = sizeof peer;
  if (::getpeername(descriptor, reinterpret_cast<sockaddr*>(&peer), &size) != 0) return 0;
  return peer.ss_family == AF_INET || peer.ss_family == AF_INET6 ? peer.ss_family : 0;
}

}  // namespace

TcpConnection& TcpConnection::operator=(TcpConnection&& other) noexcept {
  if (this == &other) return *this;
  close();
  descriptor_ = std::exchange(other.descriptor_, -1);
  early_ = std::move(other.early_);
  return *this;
}

void TcpConnection::close() {
  if (descriptor_ >= 0) (void)::close(std::exchange(descriptor_, -1));
}

Result<boost::asio::ip::tcp::socket> TcpConnection::socket(const boost::asio::any_io_executor& executor) {
  using boost::asio::ip::tcp;
  const int family = connected_family(descriptor_);
  if (family == 0) {
    close();
    return make_error(Errc::kInvalidArgument, "not a connected TCP socket");
  }
  tcp::socket socket(executor);
  boost::system::error_code ec;
  socket.assign(family == AF_INET ? tcp::v4() : tcp::v6(), descriptor_, ec);
  if (ec) {
    close();
    return make_error(Errc::kResource, "cannot watch another socket: the system lacks memory");
  }
  descriptor_ = -1;
  return socket;
}

}  // namespace iwarp::cm
