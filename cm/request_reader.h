// Waits for the MPA Request of one TCP connection, bounded in time and size, and makes a ConnectRequest of it. A peer
// that stalls, trickles or vanishes costs only its own connection. For Listener and accept_over().
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <vector>

#include "iwarp/cm/listener.h"

namespace iwarp::cm {

class RequestReader : public std::enable_shared_from_this<RequestReader> {
 public:
  // Called once, in the executor of the socket: with the Request, or why there is none. The connection is closed then,
  // behind a Reply with R=1 where policy has refused the Request.
  using Told = std::function<void(const std::shared_ptr<RequestReader>&, Error, std::unique_ptr<ConnectRequest>)>;

  // `socket` is prepared, and its executor a strand. `slot`: as ConnectRequest's.
  RequestReader(Engine& engine, boost::asio::ip::tcp::socket socket, const mpa::Policy& policy,
                std::size_t receive_window, std::shared_ptr<void> slot);

  // `early`: octets that came before what the socket has.
  void begin(ConstBytes early, Told told);
  // Gives up, closes the connection and tells nothing.
  void stop();

 private:
  void read();
  void show(boost::system::error_code ec, std::size_t n);
  void look();
  void hand_over(const mpa::RequestReceived& request);
  void refuse(const Error& error);
  void drop(const Error& error);
  void tell(const Error& error, std::unique_ptr<ConnectRequest> request);

  Engine& engine_;
  const std::shared_ptr<Operations>
      operations_;  // says whether the engine is there: it may go before a borrowed io_context
  std::shared_ptr<void> slot_;
  boost::asio::ip::tcp::socket socket_;
  boost::asio::ip::tcp protocol_;
  boost::asio::steady_timer timer_;
  mpa::Responder responder_;
  std::size_t receive_window_;
  std::shared_ptr<ByteTap> tap_;
  std::array<std::byte, 1024> bytes_{};
  Told told_;  // empty: it is over
};

}  // namespace iwarp::cm
