// iWARP as what carries RPCs: connections of an engine.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <memory>

#include "iwarp/cm/connector.h"
#include "iwarp/cm/engine.h"
#include "iwarp/cm/listener.h"
#include "iwarp/rpc/channel.h"
#include "iwarp/stream/connection.h"

namespace iwarp::rpc {

// To that server. `engine` must outlive it and its channels. `server.private_data` and `server.mpa` count for nothing:
// `stream` has the latter. Its queue depths are set here, and are enough for 240 credits.
[[nodiscard]] std::shared_ptr<ClientTransport> over_iwarp(cm::Engine& engine, cm::ConnectOptions server,
                                                          stream::Options stream = {});

// Of a listener.
class IwarpServer : public ServerTransport {
 public:
  // The address that it listens at, with the port that the system picked; of no meaning before listen().
  [[nodiscard]] virtual boost::asio::ip::tcp::endpoint local() const = 0;
};
// Listens as `where` says from listen() on: its errors are those of cm::Listener::listen(). `engine` must outlive it
// and its channels.
[[nodiscard]] std::shared_ptr<IwarpServer> on_iwarp(cm::Engine& engine, cm::ListenOptions where,
                                                    stream::Options stream = {});

}  // namespace iwarp::rpc
