// TcpConnection: a connected TCP socket on its way between the application and this library, with the octets that one
// of them has read from it already and that belong to the other. RFC 5044 s7.1.2, s7.1.3 and s7.1.5: an application may
// use TCP first and start MPA on it then, and it gets TCP back when the startup was rejected.
//
// It owns the descriptor, which is closed with it. Move-only; not thread-safe.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <utility>
#include <vector>

#include "iwarp/base/bytes.h"
#include "iwarp/base/result.h"

namespace iwarp::cm {

class TcpConnection {
 public:
  // Owns nothing.
  TcpConnection() = default;
  // Takes over a descriptor. `early`: octets that were read from it and belong to whoever gets it.
  explicit TcpConnection(int descriptor, std::vector<std::byte> early = {})
      : descriptor_(descriptor), early_(std::move(early)) {}
  // Takes over an Asio socket of any executor. Its asynchronous operations end with operation_aborted.
  template <class Executor>
  explicit TcpConnection(boost::asio::basic_stream_socket<boost::asio::ip::tcp, Executor> socket,
                         std::vector<std::byte> early = {})
      : early_(std::move(early)) {
    boost::system::error_code ec;
    if (socket.is_open()) descriptor_ = socket.release(ec);
    if (ec) descriptor_ = -1;
  }
  TcpConnection(TcpConnection&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, -1)), early_(std::move(other.early_)) {}
  // Closes what it owned before.
  TcpConnection& operator=(TcpConnection&& other) noexcept;
  ~TcpConnection() { close(); }

  // Whether it owns a descriptor.
  explicit operator bool() const { return descriptor_ >= 0; }
  // Stays its owner. -1: there is none.
  [[nodiscard]] int descriptor() const { return descriptor_; }
  // The caller is its owner from now on. What this library gives back is in non-blocking mode, has TCP_NODELAY on, and
  // keeps what SocketOptions set.
  [[nodiscard]] int release() { return std::exchange(descriptor_, -1); }
  // To be read before anything from the descriptor. Left here by release() and socket().
  [[nodiscard]] const std::vector<std::byte>& early() const { return early_; }
  // As an Asio socket; this object owns nothing then. kInvalidArgument: it is no TCP socket over IPv4 or IPv6, or not
  // connected; kResource: the system lacks memory to watch it. The descriptor is closed in either case.
  [[nodiscard]] Result<boost::asio::ip::tcp::socket> socket(const boost::asio::any_io_executor& executor);

 private:
  void close();

  int descriptor_ = -1;
  std::vector<std::byte> early_;
};

}  // namespace iwarp::cm
