// What a Listener and its service share. In the thread of the engine, unless it says otherwise. Internal to the layer.
#pragma once

#include <deque>
#include <memory>

#include "iwarp/sctp_cm/listener.h"
#include "iwarp/sctp_cm/stack.h"

namespace iwarp::sctp_cm {

class Listener::Impl final : public std::enable_shared_from_this<Listener::Impl> {
 public:
  Impl(std::shared_ptr<Network> network, const ListenOptions& options)
      : network_(std::move(network)), options_(options) {}

  [[nodiscard]] Result<void> open();
  // A waiting accept() is called with `why`, and nothing is taken any more.
  void close(const Error& why);
  // Whether another request may wait.
  [[nodiscard]] bool has_room();
  // A request, for the application.
  void give(std::unique_ptr<ConnectRequest> request);
  void accept(AcceptHandler handler, const cm::Canceller* key);
  void cancel(const cm::Canceller* key);
  void set_session(const sctp::SessionOptions& session) { options_.session = session; }

  void set_packet_bytes(std::uint16_t octets);

  // --- Any thread.
  [[nodiscard]] const std::shared_ptr<Network>& network() const { return network_; }
  [[nodiscard]] const boost::asio::ip::udp::endpoint& local() const { return local_; }
  [[nodiscard]] std::uint16_t sctp_port() const { return sctp_port_; }

 private:
  void take(std::shared_ptr<Association> association);

  const std::shared_ptr<Network> network_;
  ListenOptions options_;
  std::unique_ptr<AssociationListener> association_listener_;
  boost::asio::ip::udp::endpoint local_;
  std::uint16_t sctp_port_ = 0;
  std::deque<std::unique_ptr<ConnectRequest>> ready_;
  AcceptHandler waiting_;
  const cm::Canceller* waiting_key_ = nullptr;
};

}  // namespace iwarp::sctp_cm
