#include "iwarp/gateway/rdma_front.h"

#include <spdlog/spdlog.h>

#include <random>

#include "iwarp/gateway/backend_connector.h"
#include "iwarp/gateway/rdma_session.h"

namespace iwarp::gateway {

using boost::asio::ip::tcp;
using Clock = std::chrono::steady_clock;

RdmaFront::RdmaFront(cm::Engine& engine, HostPort server, const Options& options, std::shared_ptr<Process> process,
                     const std::string& name)
    : engine_(engine),
      server_(std::move(server)),
      process_(std::move(process)),
      log_(stats_, process_->log_limits(), name),
      shared_(Shared::of(engine, options, stats_, log_, *process_)),
      ports_(process_->ports().of(server_)),
      places_(options.max_connections_per_client),
      sessions_(engine.io()),
      first_reserved_(std::random_device{}()) {}

Result<std::unique_ptr<RdmaFront>> RdmaFront::open(cm::Engine& engine, const tcp::endpoint& listen,
                                                   const HostPort& server, const Options& options,
                                                   std::shared_ptr<Process> process, const std::string& name) {
  if (!process) process = std::make_shared<Process>(engine.io(), ProcessOptions::of_one(options));
  std::unique_ptr<RdmaFront> front(new RdmaFront(engine, server, options, std::move(process), name));
  cm::ListenOptions o;
  o.endpoint = listen;
  o.policy = options.policy;
  o.on_shortage = [](const Error& e) { spdlog::warn("short of resources: {}", e.why); };
  auto listener = cm::Listener::listen(engine, o);  // req: RFC8166-2.2.3-1 RFC8167-2-2
  if (!listener) return listener.error();
  front->listener_ = std::move(*listener);
  front->local_ = front->listener_->local();
  front->accept_next();
  return front;
}

RdmaFront::~RdmaFront() {
  sessions_.each([](Session& session) { session.orphan(); });
}

void RdmaFront::accept_next() {
  listener_->accept(
      [this, alive = std::weak_ptr<bool>(alive_)](const Error& error, std::unique_ptr<cm::ConnectRequest> request) {
        if (alive.expired() || error.code != Errc::kOk) return;
        on_request(std::move(request));
        if (listener_) accept_next();
      });
}

void RdmaFront::refuse(cm::ConnectRequest& request, RefuseReason why, const std::string& text) {
  log_.refused(why, fmt::format("refused peer={} reason={}: {}", cm::to_string(request.remote()), name(why), text),
               Clock::now());
  request.reject();
}

void RdmaFront::on_request(std::shared_ptr<cm::ConnectRequest> request) {
  const Options& options = *shared_.options;
  const auto client = request->remote().address();
  if (!options.allow.allows(client))
    return refuse(*request, RefuseReason::kNotAllowed, "its address is not in --allow");
  if (!listener_ || sessions_.draining() || sessions_.size() >= options.max_connections) {
    return refuse(*request, RefuseReason::kLimit, "too many connections, or shutting down");
  }
  if (!shared_.memory->admits_connection()) return refuse(*request, RefuseReason::kLimit, kNoMemory);
  const auto place = take_places(*process_, places_, client);
  if (!place.of_both) return refuse(*request, RefuseReason::kLimit, place.why);
  BackendRequest backend{
      .server = server_, .source = options.source_map.source_for(unmapped(client)), .timeout = options.backend_timeout};
  const auto port = ports_->take(client, Clock::now());
  // Until the session has it: whoever saves the ports meanwhile must not miss it.
  auto use = std::make_shared<PortMemory::Use>();
  if (port) *use = PortMemory::use(ports_, client, *port);
  backend.source_ports = SourcePorts(options.reserved_port, port, ports_->reserved(Clock::now()), first_reserved_++);
  sessions_.coming();
  connect_backend(engine_.io(), backend,
                  [this, alive = std::weak_ptr<bool>(alive_), request, place = place.of_both, port, ports = ports_,
                   use](const Error& error, tcp::socket socket) {
                    if (alive.expired()) return;
                    if (error.code == Errc::kOk) note_source_port(*request, port, socket);
                    if (!on_backend(request, place, ports, error, socket)) {
                      // The client will try again, and its replays need the port: with RST it is free at once.
                      boost::system::error_code ec;
                      socket.set_option(boost::asio::socket_base::linger(true, 0), ec);
                      socket.close(ec);
                      if (port) ports->remember(request->remote().address(), *port, true, Clock::now());
                    }
                    sessions_.has_come();
                  });
}

// Where it is not the port that was wanted.
void RdmaFront::note_source_port(const cm::ConnectRequest& request, std::optional<std::uint16_t> wanted,
                                 const tcp::socket& socket) {
  boost::system::error_code ec;
  const std::uint16_t got = socket.local_endpoint(ec).port();
  if (ec) return;
  const auto client = cm::to_string(request.remote());
  if (wanted && *wanted != got) {
    log_.warn(LogKind::kSourcePort,
              fmt::format("source port {} of peer={} is taken: the server may execute replays a second time", *wanted,
                          client),
              Clock::now());
  }
  if (shared_.options->reserved_port == ReservedPort::kOff || is_reserved(got)) return;
  stats_.incident(Incident::kHighPort);
  log_.warn(LogKind::kSourcePort,
            fmt::format("source port {} for peer={} is above 1023: no reserved port is to be had", got, client),
            Clock::now());
}

bool RdmaFront::on_backend(const std::shared_ptr<cm::ConnectRequest>& request, const ClientPlaces::Place& place,
                           const std::shared_ptr<PortMemory>& ports, const Error& error, tcp::socket& socket) {
  const auto no = [&](RefuseReason why, const std::string& text) {
    refuse(*request, why, text);
    return false;
  };
  if (error.code != Errc::kOk) {
    const bool no_port = error.code == Errc::kInvalidArgument;
    return no(no_port ? RefuseReason::kNoReservedPort : RefuseReason::kBackendUnreachable,
              fmt::format("backend tcp_peer={} reason={}: {}", server_.to_string(), name(error.code), error.why));
  }
  if (sessions_.draining()) return no(RefuseReason::kLimit, "shutting down");
  if (!shared_.memory->admits_connection()) return no(RefuseReason::kLimit, kNoMemory);  // others have come meanwhile
  const auto client = request->remote().address();
  std::shared_ptr<RdmaSession> session;
  try {
    boost::system::error_code ec;
    auto use = PortMemory::use(ports, client, socket.local_endpoint(ec).port());
    session = std::make_shared<RdmaSession>(shared_, *request, std::move(socket),
                                            [this, client, place, ports, use = std::move(use)](
                                                RdmaSession& ended, std::uint16_t port, bool outstanding) mutable {
                                              use.reset();
                                              ports->remember(client, port, outstanding, Clock::now());
                                              sessions_.remove(&ended);
                                            });
    sessions_.add(session);
  } catch (const std::bad_alloc&) {
    return no(RefuseReason::kLimit, "out of memory");
  }
  session->accept(*request);
  return true;
}

void RdmaFront::drain(std::function<void()> done) {
  listener_.reset();
  sessions_.drain(process_->options().drain_timeout, std::move(done));
}

void RdmaFront::retire(std::function<void()> done) {
  listener_.reset();
  sessions_.when_empty(std::move(done));
}

void RdmaFront::change(const std::string& name, const HostPort& server, const Options& options) {
  log_.set_name(name);
  server_ = server;
  ports_ = process_->ports().of(server);
  shared_.options = std::make_shared<const Options>(options);
  places_.set_limit(options.max_connections_per_client);
  (void)listener_->set_policy(options.policy);
}

Stats::Snapshot RdmaFront::snapshot() const {
  auto s = stats_.snapshot();
  sessions_.each([&](const Session& session) { session.add_live_counters(s); });
  return s;
}

}  // namespace iwarp::gateway
