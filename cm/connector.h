// Active side: resolve, connect TCP, exchange MPA Request and Reply, send the RTR (RFC 5044 s7, RFC 6581). Falls back
// to MPA revision 1 once, on a new TCP connection, when the peer ended the first before its Reply began and policy
// allows it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "iwarp/cm/connection.h"
#include "iwarp/mpa/policy.h"

namespace iwarp::cm {

struct ConnectOptions {
  std::string host;  // name or address, IPv4 or IPv6
  std::uint16_t port = 0;
  mpa::Policy policy{};
  std::vector<std::byte> private_data{};                  // at most 251 octets
  std::optional<boost::asio::ip::tcp::endpoint> local{};  // bind the socket to this address (port 0: any)
  // Name resolution and TCP connect together. Default 10 s. The MPA exchange has its own limit, policy.startup_timeout.
  std::chrono::milliseconds connect_timeout{10000};
  SocketOptions socket{};
};

// Connects `qp`. `handler` is called once in an engine thread, with the Connection when one was made (also on failure:
// its disconnected() then holds the peer's private data, IRD and ORD of a rejection).
void connect(Engine& engine, std::shared_ptr<verbs::QueuePair> qp, ConnectOptions options,
             Connection::EstablishedHandler handler);

// The same for Asio: void(Error, std::shared_ptr<Connection>).
template <class Token>
auto async_connect(Engine& engine, std::shared_ptr<verbs::QueuePair> qp, ConnectOptions options, Token&& token) {
  return initiate<Error, std::shared_ptr<Connection>>(
      engine.io(), std::forward<Token>(token),
      [&engine, qp = std::move(qp), options = std::move(options)](auto handler) mutable {
        connect(engine, std::move(qp), std::move(options), std::move(handler));
      });
}

}  // namespace iwarp::cm
