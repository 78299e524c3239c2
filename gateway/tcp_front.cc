#include "iwarp/gateway/tcp_front.h"

#include <spdlog/spdlog.h>

#include "iwarp/cm/socket_options.h"
#include "iwarp/gateway/tcp_session.h"

namespace iwarp::gateway {

using boost::asio::ip::tcp;
using Clock = std::chrono::steady_clock;

TcpFront::TcpFront(cm::Engine& engine, HostPort server, const Options& options)
    : engine_(engine),
      server_(std::move(server)),
      options_(options),
      places_(options.max_connections_per_client),
      sessions_(engine.io()),
      acceptor_(engine.io()),
      pause_(engine.io(), [](const Error& error) { spdlog::warn("short of resources: {}", error.why); }) {}

Result<std::unique_ptr<TcpFront>> TcpFront::open(cm::Engine& engine, const tcp::endpoint& listen,
                                                 const HostPort& server, const Options& options) {
  if (auto ok = mpa::validate(options.policy); !ok) return ok.error();
  std::unique_ptr<TcpFront> front(new TcpFront(engine, server, options));
  boost::system::error_code ec;
  front->acceptor_.open(listen.protocol(), ec);
  if (ec) return make_error(Errc::kSystem, "cannot open a listening socket");
  front->acceptor_.set_option(boost::asio::socket_base::reuse_address(true), ec);
  front->acceptor_.bind(listen, ec);
  if (ec) return make_error(Errc::kSystem, "cannot bind: the port is in use, or the address is not of this host");
  front->acceptor_.listen(boost::asio::socket_base::max_listen_connections, ec);
  if (ec) return make_error(Errc::kSystem, "cannot listen");
  front->local_ = front->acceptor_.local_endpoint(ec);
  engine.start();
  front->accept_next();
  return front;
}

TcpFront::~TcpFront() {
  sessions_.each([](Session& session) { session.orphan(); });
}

void TcpFront::accept_next() {
  acceptor_.async_accept([this, alive = std::weak_ptr<bool>(alive_)](boost::system::error_code ec, tcp::socket socket) {
    if (alive.expired() || ec == boost::asio::error::operation_aborted) return;
    if (!ec) {
      on_client(std::move(socket));
      return accept_next();
    }
    pause_.begin(ec, [this, alive] {
      if (!alive.expired()) accept_next();
    });
  });
}

void TcpFront::on_client(tcp::socket socket) {
  boost::system::error_code ec;
  const auto remote = socket.remote_endpoint(ec);
  if (ec) return;
  const auto refuse = [&](RefuseReason why, const char* text) {
    log_.refused(why, fmt::format("refused tcp_peer={} reason={}: {}", cm::to_string(remote), name(why), text),
                 Clock::now());
  };
  if (!options_.allow.allows(remote.address()))
    return refuse(RefuseReason::kNotAllowed, "its address is not in --allow");
  if (!options_.insecure_ports && !is_reserved(remote.port()))
    return refuse(RefuseReason::kInsecurePort,
                  "its port is above 1023, where any user may send; --insecure-ports serves it");
  if (sessions_.draining() || sessions_.size() >= options_.max_connections)
    return refuse(RefuseReason::kLimit, "too many connections, or shutting down");
  const auto place = places_.take(remote.address());
  if (!place) return refuse(RefuseReason::kLimit, "this client has as many connections as it may have");
  if (!shared_.memory->admits_connection()) return refuse(RefuseReason::kLimit, kNoMemory);
  if (auto ok = cm::prepare(socket, {}); !ok) return refuse(RefuseReason::kHandshakeFailed, ok.error().why);
  std::shared_ptr<TcpSession> session;
  try {
    session = std::make_shared<TcpSession>(shared_, std::move(socket),
                                           [this, place](TcpSession& ended) { sessions_.remove(&ended); });
    sessions_.add(session);
  } catch (const std::bad_alloc&) {
    return refuse(RefuseReason::kLimit, "out of memory");
  }
  session->connect(server_, options_.source_map.source_for(unmapped(remote.address())));
}

void TcpFront::drain(std::function<void()> done) {
  boost::system::error_code ec;
  acceptor_.close(ec);
  pause_.cancel();
  sessions_.drain(options_.drain_timeout, std::move(done));
}

Stats::Snapshot TcpFront::snapshot() const {
  auto s = stats_.snapshot();
  sessions_.each([&](const Session& session) { session.add_live_counters(s); });
  return s;
}

}  // namespace iwarp::gateway
