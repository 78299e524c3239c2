// What is set on every TCP socket of the library.
#pragma once

#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <cstddef>
#include <new>
#include <string>

#include "iwarp/base/result.h"

namespace iwarp::cm {

struct SocketOptions {
  // A peer that has been silent for so long is probed, every 5 s. One that vanished without a word is given up when it
  // has answered no probe and user_timeout has passed since its last octet; after 5 probes where user_timeout is 0.
  // Default 30 s, at most 32767 s; 0 turns probing off: then an idle connection to a dead host lives for ever.
  std::chrono::seconds keepalive_idle{30};
  // Longest time that sent data or probes may stay unacknowledged, or data unsent because the peer takes none (its
  // window is closed, though its host answers), before TCP gives up. Default 60 s, at most 2^31 - 1 ms (24 days), 0
  // leaves it to the system (about 15 minutes).
  std::chrono::milliseconds user_timeout{60000};
  // Room for octets that are not read yet, from when this end accepts or its TCP connects; at most half of the largest
  // buffer that net.ipv4.tcp_rmem allows. Left to itself TCP makes room as well, but slowly where every octet is taken
  // at once, and meanwhile a burst closes the window. No memory is used before octets arrive. Default 2 MiB, 0 leaves
  // it to the system.
  std::size_t receive_window = std::size_t{2} << 20;
  // TCP congestion control of what this end sends, such as "cubic", "bbr" or "dctcp"; "" (the default): the system's.
  // The kernel must have it, and allow it (net.ipv4.tcp_allowed_congestion_control) unless the process has
  // CAP_NET_ADMIN, for which a module is loaded too: a connection or listener that asks for another fails with
  // kInvalidArgument. A route that names one (congctl) has the last word.
  std::string congestion_control{};
};

// kInvalidArgument, which names the option and its range.
[[nodiscard]] Result<void> validate(const SocketOptions& options);

// Non-blocking mode, TCP_NODELAY (a Send must not wait for the acknowledgement of the one before), keepalive, user
// timeout.
[[nodiscard]] Result<void> prepare(boost::asio::ip::tcp::socket& socket, const SocketOptions& options);

// Descriptors of TCP sockets that do not wait, and that a child does not inherit when it executes another program: held
// by the child a connection would outlive this end of it. -1 with `failed`.
[[nodiscard]] int open_tcp(const boost::asio::ip::tcp& protocol, boost::system::error_code& failed);
// The connection that has waited longest at a socket that listens and does not wait; would_block or another error of
// accept(2).
[[nodiscard]] int accept_tcp(int listening, boost::system::error_code& failed);
// `socket`, of Asio, has the descriptor from here on; it is closed where that fails (no_memory: it threw).
template <class Socket>
void assign_tcp(Socket& socket, const boost::asio::ip::tcp& protocol, int descriptor,
                boost::system::error_code& failed) {
  try {
    socket.assign(protocol, descriptor, failed);
  } catch (const std::bad_alloc&) {
    failed = boost::asio::error::no_memory;
  }
  if (failed) (void)::close(descriptor);
}
// open_tcp(), for a socket or acceptor of Asio.
template <class Socket>
void open_tcp(Socket& socket, const boost::asio::ip::tcp& protocol, boost::system::error_code& failed) {
  const int descriptor = open_tcp(protocol, failed);
  if (!failed) assign_tcp(socket, protocol, descriptor, failed);
}

// As `receive_window` above. A hint: nothing is said when the system does not take it.
void make_room(int descriptor, std::size_t octets);

// For a socket that is about to listen, whose connections inherit it, or to connect: dctcp wants to be known then.
// Nothing when the name is empty.
[[nodiscard]] Result<void> set_congestion_control(int descriptor, const std::string& name);

// The same TCP connection as a socket of another executor. `from` is closed; so is the connection when the system
// lacks the memory (kResource).
[[nodiscard]] Result<boost::asio::ip::tcp::socket> rebind(boost::asio::ip::tcp::socket& from,
                                                          const boost::asio::ip::tcp& protocol,
                                                          boost::asio::io_context& io);

// Present effective maximum segment size of the connection, octets; 1448 if it cannot be told.
[[nodiscard]] std::size_t effective_mss(boost::asio::ip::tcp::socket& socket);

}  // namespace iwarp::cm
