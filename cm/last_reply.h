// The MPA Reply with R=1 on its way out, when nothing of MPA follows it (RFC 5044 s7.1.2 rule 2). Both limit their
// time.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <functional>
#include <memory>

#include "iwarp/cm/byte_tap.h"
#include "iwarp/cm/tcp_connection.h"

namespace iwarp::cm {

// Sends the bytes and closes: behind them the FIN, then the wait for the peer's. `slot` goes with the socket. `tap` may
// be null.
void say_farewell(boost::asio::ip::tcp::socket socket, ConstBytes bytes, const std::shared_ptr<ByteTap>& tap,
                  std::shared_ptr<void> slot);

// Sends the bytes and gives the connection to `handler`; or closes it and says why: kTimeout, kConnectionLost.
void hand_back(boost::asio::ip::tcp::socket socket, ConstBytes bytes, const std::shared_ptr<ByteTap>& tap,
               std::shared_ptr<void> slot, std::function<void(Error, TcpConnection)> handler);

}  // namespace iwarp::cm
