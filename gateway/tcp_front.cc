#include "iwarp/gateway/tcp_front.h"

#include <spdlog/spdlog.h>

#include "iwarp/cm/socket_options.h"
#include "iwarp/cm/system_cause.h"
#include "iwarp/gateway/tcp_session.h"

namespace iwarp::gateway {

using boost::asio::ip::tcp;
using Clock = std::chrono::steady_clock;

TcpFront::TcpFront(cm::Engine& engine, HostPort server, const Options& options, std::shared_ptr<Process> process,
                   const std::string& name)
    : engine_(engine),
      server_(std::move(server)),
      process_(std::move(process)),
      log_(stats_, process_->log_limits(), name),
      shared_(Shared::of(engine, options, stats_, log_, *process_)),
      places_(options.max_connections_per_client),
      sessions_(engine.io()),
      acceptor_(engine.io()),
      pause_(engine.io(), [](const Error& error) { spdlog::warn("short of resources: {}", error.why); }) {}

Result<std::unique_ptr<TcpFront>> TcpFront::open(cm::Engine& engine, const tcp::endpoint& listen,
                                                 const HostPort& server, const Options& options,
                                                 std::shared_ptr<Process> process, const std::string& name) {
  if (auto ok = mpa::validate(options.policy); !ok) return ok.error();
  if (!process) process = std::make_shared<Process>(engine.io(), ProcessOptions::of_one(options));
  std::unique_ptr<TcpFront> front(new TcpFront(engine, server, options, std::move(process), name));
  boost::system::error_code ec;
  front->acceptor_.open(listen.protocol(), ec);
  if (ec) return cm::listen_error(ec);
  front->acceptor_.set_option(boost::asio::socket_base::reuse_address(true), ec);
  front->acceptor_.bind(listen, ec);
  if (ec) return cm::listen_error(ec);
  front->acceptor_.listen(boost::asio::socket_base::max_listen_connections, ec);
  if (ec) return cm::listen_error(ec);
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
    if (alive.expired() || !acceptor_.is_open() || ec == boost::asio::error::operation_aborted) return;
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
  const Options& options = *shared_.options;
  boost::system::error_code ec;
  const auto remote = socket.remote_endpoint(ec);
  if (ec) return;
  const auto refuse = [&](RefuseReason why, const char* text) {
    log_.refused(why, fmt::format("refused tcp_peer={} reason={}: {}", cm::to_string(remote), name(why), text),
                 Clock::now());
  };
  if (!options.allow.allows(remote.address()))
    return refuse(RefuseReason::kNotAllowed, "its address is not in --allow");
  if (!options.insecure_ports && !is_reserved(remote.port()))
    return refuse(RefuseReason::kInsecurePort,
                  "its port is above 1023, where any user may send; --insecure-ports serves it");
  if (sessions_.draining() || sessions_.size() >= options.max_connections)
    return refuse(RefuseReason::kLimit, "too many connections, or shutting down");
  const auto place = take_places(*process_, places_, remote.address());
  if (!place.of_both) return refuse(RefuseReason::kLimit, place.why);
  if (!shared_.memory->admits_connection()) return refuse(RefuseReason::kLimit, kNoMemory);
  if (auto ok = cm::prepare(socket, {}); !ok) return refuse(RefuseReason::kHandshakeFailed, ok.error().why);
  std::shared_ptr<TcpSession> session;
  try {
    session = std::make_shared<TcpSession>(
        shared_, std::move(socket), [this, place = place.of_both](TcpSession& ended) { sessions_.remove(&ended); });
    sessions_.add(session);
  } catch (const std::bad_alloc&) {
    return refuse(RefuseReason::kLimit, "out of memory");
  }
  session->connect(server_, options.source_map.source_for(unmapped(remote.address())));
}

void TcpFront::stop_listening() {
  boost::system::error_code ec;
  acceptor_.close(ec);
  pause_.cancel();
}

void TcpFront::drain(std::function<void()> done) {
  stop_listening();
  sessions_.drain(process_->options().drain_timeout, std::move(done));
}

void TcpFront::retire(std::function<void()> done) {
  stop_listening();
  sessions_.when_empty(std::move(done));
}

void TcpFront::change(const std::string& name, const HostPort& server, const Options& options) {
  log_.set_name(name);
  server_ = server;
  shared_.options = std::make_shared<const Options>(options);
  places_.set_limit(options.max_connections_per_client);
}

Stats::Snapshot TcpFront::snapshot() const {
  auto s = stats_.snapshot();
  sessions_.each([&](const Session& session) { session.add_live_counters(s); });
  return s;
}

}  // namespace iwarp::gateway
