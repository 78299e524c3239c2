#include "iwarp/gateway/rdma_front.h"

#include <spdlog/spdlog.h>

#include <random>

#include "iwarp/cm/socket_options.h"
#include "iwarp/gateway/backend_connector.h"
#include "iwarp/gateway/rdma_session.h"

namespace iwarp::gateway {

using boost::asio::ip::tcp;
using Clock = std::chrono::steady_clock;

namespace {

// With RST the port is free at once.
void close_with_reset(tcp::socket& socket) {
  boost::system::error_code ec;
  socket.set_option(boost::asio::socket_base::linger(true, 0), ec);
  socket.close(ec);
}

// Both sides of a client that `worker` is to serve.
Result<void> move_to(Worker& worker, RdmaRequest& request, tcp::socket& backend) {
  if (&worker.engine() == &request.engine()) return {};
  boost::system::error_code ec;
  auto moved = cm::rebind(backend, backend.local_endpoint(ec).protocol(), worker.engine().io());
  if (!moved) return moved.error();
  backend = std::move(moved).value();
  return request.move_to(worker.engine());
}

}  // namespace

RdmaFront::RdmaFront(cm::Engine& engine, HostPort server, const Options& options, std::shared_ptr<Process> process,
                     const std::string& name)
    : engine_(engine),
      server_(std::move(server)),
      process_(std::move(process)),
      ledger_(std::make_shared<Ledger>(process_->log_limits(), name)),
      stats_(ledger_->stats),
      log_(ledger_->log),
      options_(std::make_shared<const Options>(options)),
      ports_(process_->ports().of(server_)),
      places_(options.max_connections_per_client),
      sessions_(*process_),
      first_reserved_(std::random_device{}()) {}

Result<std::unique_ptr<RdmaFront>> RdmaFront::open(cm::Engine& engine, const tcp::endpoint& listen,
                                                   const HostPort& server, const Options& options,
                                                   std::shared_ptr<Process> process, const std::string& name) {
  if (!process) process = std::make_shared<Process>(engine, ProcessOptions::of_one(options));
  std::unique_ptr<RdmaFront> front(new RdmaFront(engine, server, options, std::move(process), name));
  const auto provider = front->process_->provider(options);
  if (!provider) return make_error(Errc::kInvalidArgument, "the RDMA device, or SCTP, cannot be used");
  front->provider_ = *provider.value;
  RdmaProvider::Handlers handlers;
  handlers.request = [front = front.get()](std::shared_ptr<RdmaRequest> request) {
    front->on_request(std::move(request));
  };
  handlers.lost = [front = front.get()](const Error& why) { front->on_lost(why); };
  handlers.back = [front = front.get()] { front->on_back(); };
  auto listener = front->provider_->listen(engine, listen, options, std::move(handlers));
  if (!listener) return listener.error();
  front->listener_ = std::move(*listener);
  front->local_ = front->listener_->local();
  return front;
}

RdmaFront::~RdmaFront() {
  sessions_.each_and_wait([](Session& session) { session.orphan(); });
}

void RdmaFront::on_lost(const Error& why) {
  spdlog::error("{} is listened at no more: {}; it is listened at again when there is a device {} again",
                cm::to_string(local_), why.why, options_->device);
}

void RdmaFront::on_back() {
  spdlog::warn("{} is listened at again: the RDMA device {} is back", cm::to_string(local_), options_->device);
}

void RdmaFront::refuse(RdmaRequest& request, RefuseReason why, const std::string& text) {
  log_.refused(why, fmt::format("refused peer={} reason={}: {}", cm::to_string(request.remote()), name(why), text),
               Clock::now());
  request.reject();
}

void RdmaFront::on_request(std::shared_ptr<RdmaRequest> request) {
  const Options& options = *options_;
  const auto client = request->remote().address();
  if (!options.allow.allows(client))
    return refuse(*request, RefuseReason::kNotAllowed, "its address is not in --allow");
  if (!listener_ || sessions_.draining() || sessions_.size() >= options.max_connections) {
    return refuse(*request, RefuseReason::kLimit, "too many connections, or shutting down");
  }
  if (!process_->memory()->admits_connection()) return refuse(*request, RefuseReason::kLimit, kNoMemory);
  const auto place = take_places(*process_, places_, client);
  if (!place.of_both) return refuse(*request, RefuseReason::kLimit, place.why);
  const auto coming = std::make_shared<Coming>();
  coming->request = std::move(request);
  coming->client = client;
  coming->place = place.of_both;
  sessions_.coming();
  if (places_.of(client) == 1) return connect_server(coming);
  // It may be back because it has lost another connection, of which that one's worker has not heard yet: its replays
  // need the port.
  process_->when_all_have_looked([this, alive = std::weak_ptr<bool>(alive_), coming] {
    if (!alive.expired()) connect_server(coming);
  });
}

void RdmaFront::connect_server(const std::shared_ptr<Coming>& coming) {
  const Options& options = *options_;
  const auto& client = coming->client;
  coming->ports = ports_;
  coming->wanted_port = ports_->take(client, Clock::now());
  if (coming->wanted_port) coming->port_in_use = PortMemory::use(ports_, client, *coming->wanted_port);
  BackendRequest backend{
      .server = server_, .source = options.source_map.source_for(unmapped(client)), .timeout = options.backend_timeout};
  backend.source_ports =
      SourcePorts(options.reserved_port, coming->wanted_port, ports_->reserved(Clock::now()), first_reserved_++);
  connect_backend(engine_.io(), backend,
                  [this, alive = std::weak_ptr<bool>(alive_), coming](const Error& error, tcp::socket socket) {
                    if (!alive.expired()) on_backend(coming, error, std::move(socket));
                  });
}

// Where it is not the port that was wanted.
void RdmaFront::note_source_port(const Coming& coming, const tcp::socket& socket) {
  boost::system::error_code ec;
  const std::uint16_t got = socket.local_endpoint(ec).port();
  if (ec) return;
  const auto client = cm::to_string(coming.request->remote());
  if (coming.wanted_port && *coming.wanted_port != got) {
    log_.warn(LogKind::kSourcePort,
              fmt::format("source port {} of peer={} is taken: the server may execute replays a second time",
                          *coming.wanted_port, client),
              Clock::now());
  }
  if (options_->reserved_port == ReservedPort::kOff || is_reserved(got)) return;
  stats_.incident(Incident::kHighPort);
  log_.warn(LogKind::kSourcePort,
            fmt::format("source port {} for peer={} is above 1023: no reserved port is to be had", got, client),
            Clock::now());
}

std::optional<std::pair<RefuseReason, std::string>> RdmaFront::objection(const Error& error) const {
  if (error.code != Errc::kOk) {
    const bool no_port = error.code == Errc::kInvalidArgument;
    return {{no_port ? RefuseReason::kNoReservedPort : RefuseReason::kBackendUnreachable,
             fmt::format("backend tcp_peer={} reason={}: {}", server_.to_string(), name(error.code), error.why)}};
  }
  if (sessions_.draining()) return {{RefuseReason::kLimit, "shutting down"}};
  if (!process_->memory()->admits_connection()) return {{RefuseReason::kLimit, kNoMemory}};  // others have come
  return std::nullopt;
}

void RdmaFront::on_backend(const std::shared_ptr<Coming>& coming, const Error& error, tcp::socket socket) {
  if (error.code == Errc::kOk) note_source_port(*coming, socket);
  auto why = objection(error);
  if (!why) {
    Worker& worker = provider_->home_only() ? process_->home() : process_->idlest_worker();
    boost::system::error_code ec;
    coming->port_in_use = PortMemory::use(coming->ports, coming->client, socket.local_endpoint(ec).port());
    coming->seat = worker.take_seat();
    const auto moved = move_to(worker, *coming->request, socket);
    if (moved) return make_session(worker, coming, std::move(socket));
    why = {RefuseReason::kLimit, moved.error().why};
  }
  close_with_reset(socket);
  turn_away(*coming->request, *coming, why->first, why->second);
}

// The client will try again, and its replays need the port: it has been freed.
void RdmaFront::turn_away(RdmaRequest& request, Coming& coming, RefuseReason why, const std::string& text) {
  refuse(request, why, text);
  coming.port_in_use.reset();
  if (coming.wanted_port) coming.ports->remember(coming.client, *coming.wanted_port, true, Clock::now());
  sessions_.has_come();
}

// What is of this thread, the place and the use of the port, stays in it: the session knows it weakly.
void RdmaFront::make_session(Worker& worker, const std::shared_ptr<Coming>& coming, tcp::socket socket) {
  auto ended = [this, alive = std::weak_ptr<bool>(alive_), home = &process_->home(), ports = coming->ports,
                client = coming->client,
                weak = std::weak_ptr<Coming>(coming)](RdmaSession& session, std::uint16_t port, bool replays) {
    ports->remember(client, port, replays, Clock::now());  // at once: the client may be back before this is told
    home->run([this, alive, weak, key = &session] {
      if (alive.expired()) return;
      if (const auto was = weak.lock()) was->port_in_use.reset();
      sessions_.remove(key);
    });
  };
  worker.run([this, alive = std::weak_ptr<bool>(alive_), &worker, process = std::weak_ptr<Process>(process_),
              made = Made{nullptr, coming, std::move(coming->request), nullptr},
              shared = Shared::of(worker, options_, ledger_, *process_), ended = std::move(ended),
              socket = std::move(socket)]() mutable {
    try {
      auto queues = made.request->make_queues(*shared.options);
      if (queues) {
        made.session = std::make_shared<RdmaSession>(shared, *made.request, std::move(*queues), std::move(socket),
                                                     std::move(ended));
      } else {
        made.why = queues.error().why;
        close_with_reset(socket);
      }
    } catch (const std::bad_alloc&) {
      close_with_reset(socket);
    }
    made.process = process.lock();
    if (!made.process) return;
    Worker& home = made.process->home();
    home.run([this, alive = std::move(alive), &worker, made = std::move(made)]() mutable {
      if (!alive.expired()) return on_session(worker, made);
      if (made.session) worker.run([session = std::move(made.session)] { session->orphan(); });
    });
  });
}

void RdmaFront::on_session(Worker& worker, Made& made) {
  const char* why = nullptr;
  try {
    if (!made.session) why = made.why;
    if (sessions_.draining()) why = "shutting down";  // since the server was connected
    if (why == nullptr) sessions_.add(made.session, worker, made.coming);
  } catch (const std::bad_alloc&) {
    why = "out of memory";
  }
  if (why != nullptr) {
    if (made.session) worker.run([session = std::move(made.session)] { session->orphan(); });
    return turn_away(*made.request, *made.coming, RefuseReason::kLimit, why);
  }
  worker.run([session = std::move(made.session), request = std::move(made.request)] { session->accept(*request); });
  sessions_.has_come();
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
  options_ = std::make_shared<const Options>(options);
  places_.set_limit(options.max_connections_per_client);
  if (listener_) listener_->change(options);
}

Stats::Snapshot RdmaFront::snapshot() const {
  return snapshot_with(stats_, sessions_);
}

}  // namespace iwarp::gateway
