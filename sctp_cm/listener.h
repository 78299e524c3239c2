// Passive side of connections over SCTP: takes associations, waits for Initiates on their streams, and hands each to
// the application as a ConnectRequest, as cm::Listener does for MPA and TCP. Made by Service::listen().
#pragma once

#include <boost/asio/ip/udp.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

#include "iwarp/sctp_cm/connect_request.h"
#include "iwarp/sctp_cm/options.h"

namespace iwarp::sctp_cm {

// Where to listen, and what to take.
struct ListenOptions {
  boost::asio::ip::udp::endpoint endpoint{};  // of UDP; port 0: any free one, see Listener::local()
  // Of SCTP. Default 0: the number of the UDP port. A process cannot listen twice with the same one.
  std::uint16_t sctp_port = 0;
  // Of sessions that peers begin: what is answered to enhanced Initiates, but for IRD and ORD, which accept() says.
  // Early messages are kept within AssociationOptions' bound.
  sctp::SessionOptions session{};
  TransportOptions transport{};  // of the associations
  // Initiates of all peers that may wait for accept(). Beyond it they are rejected. Default 256, at least 1. On one
  // association AssociationOptions::max_deciding may wait for a decision.
  std::size_t max_pending = 256;
  // An association on which there is no session for so long is shut down. Default 10 s, 1 ms or more. Lower breaks slow
  // peers, higher lets a peer hold what an association takes (StackOptions::max_associations).
  std::chrono::milliseconds idle_timeout{10000};
};

// kInvalidArgument, which names the option and its range. Service::listen() asks it first.
[[nodiscard]] Result<void> validate(const ListenOptions& options);

class Listener {
 public:
  // Hears of an Initiate, or why there is none: then it is null.
  using AcceptHandler = std::function<void(Error, std::unique_ptr<ConnectRequest>)>;

  // Stops listening; a waiting accept() is called with kAborted, requests not yet taken are rejected, and so are
  // Initiates on associations that are there still. Connections go on; while there are any of it, the UDP port stays
  // open. In any thread, with no lock that a handler takes (it waits for the engine's thread); where the service has
  // gone before it does nothing.
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  // The UDP address that it listens at, with the port that the system picked.
  [[nodiscard]] const boost::asio::ip::udp::endpoint& local() const;
  [[nodiscard]] std::uint16_t sctp_port() const;
  // `handler` gets the next Initiate that its peer has not withdrawn, once, in an engine thread. One at a time may
  // wait; another gets kInvalidArgument. `cancel` gives the waiting up with kAborted; what comes later is kept for the
  // next accept().
  void accept(AcceptHandler handler, const std::shared_ptr<cm::Canceller>& cancel = {});
  // void(error_code, std::unique_ptr<ConnectRequest>). Understands all kinds of cancellation.
  template <class Token>
  auto async_accept(Token&& token) {
    return cm::initiate<Error, std::unique_ptr<ConnectRequest>>(
        operations(), &cancellers_, cm::kHarmless, std::forward<Token>(token),
        [this](auto completion) { accept(std::move(completion.handler), completion.cancel); });
  }
  // ListenOptions::session for associations that come from now on. kInvalidArgument: sctp::validate() refuses it, and
  // nothing changes.
  [[nodiscard]] Result<void> set_session(const sctp::SessionOptions& session);
  // TransportOptions::packet_bytes, likewise. kInvalidArgument: out of its range.
  [[nodiscard]] Result<void> set_packet_bytes(std::uint16_t octets);
  // Gives a waiting async_accept() up with kAborted; it may be called again.
  void cancel();

  // --- For the service.
  class Impl;
  explicit Listener(std::shared_ptr<Impl> impl);

 private:
  [[nodiscard]] std::shared_ptr<cm::Operations> operations() const;

  std::shared_ptr<Impl> impl_;
  cm::Cancellers cancellers_;
};

}  // namespace iwarp::sctp_cm
