// What is set on every TCP socket of the library.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>

#include "iwarp/base/result.h"

namespace iwarp::cm {

struct SocketOptions {
  // A peer that has been silent for so long is probed, every 5 s. One that vanished without a word is given up when it
  // has answered no probe and user_timeout has passed since its last octet; after 5 probes where user_timeout is 0.
  // Default 30 s; 0 turns probing off: then an idle connection to a dead host lives for ever.
  std::chrono::seconds keepalive_idle{30};
  // Longest time that sent data or probes may stay unacknowledged, or data unsent because the peer takes none (its
  // window is closed, though its host answers), before TCP gives up. Default 60 s, 0 leaves it to the system (about 15
  // minutes).
  std::chrono::milliseconds user_timeout{60000};
};

// Non-blocking mode, TCP_NODELAY (a Send must not wait for the acknowledgement of the one before), keepalive, user
// timeout.
[[nodiscard]] Result<void> prepare(boost::asio::ip::tcp::socket& socket, const SocketOptions& options);

// The same TCP connection as a socket of another executor. `from` is closed; so is the connection when the system
// lacks the memory (kResource).
[[nodiscard]] Result<boost::asio::ip::tcp::socket> rebind(boost::asio::ip::tcp::socket& from,
                                                          const boost::asio::ip::tcp& protocol,
                                                          boost::asio::io_context& io);

// Present effective maximum segment size of the connection, octets; 1448 if it cannot be told.
[[nodiscard]] std::size_t effective_mss(boost::asio::ip::tcp::socket& socket);

}  // namespace iwarp::cm
