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
      ledger_(std::make_shared<Ledger>(process_->log_limits(), name)),
      stats_(ledger_->stats),
      log_(ledger_->log),
      options_(std::make_shared<const Options>(options)),
      places_(options.max_connections_per_client),
      sessions_(*process_),
      acceptor_(engine.io()),
      pause_(engine.io(), [](const Error& error) { spdlog::warn("short of resources: {}", error.why); }) {}

Result<std::unique_ptr<TcpFront>> TcpFront::open(cm::Engine& engine, const tcp::endpoint& listen,
                                                 const HostPort& server, const Options& options,
                                                 std::shared_ptr<Process> process, const std::string& name) {
  if (auto ok = mpa::validate(options.policy); !ok) return ok.error();
  if (!process) process = std::make_shared<Process>(engine, ProcessOptions::of_one(options));
  std::unique_ptr<TcpFront> front(new TcpFront(engine, server, options, std::move(process), name));
  const auto provider = front->process_->provider(options);
  if (!provider) return make_error(Errc::kInvalidArgument, "the RDMA device, or SCTP, cannot be used");
  front->provider_ = *provider.value;
  boost::system::error_code ec;
  cm::open_tcp(front->acceptor_, listen.protocol(), ec);
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
  sessions_.each_and_wait([](Session& session) { session.orphan(); });
}

void TcpFront::accept_next() {
  // Asio's own accept would let children inherit the connection.
  acceptor_.async_wait(tcp::acceptor::wait_read,
                       [this, alive = std::weak_ptr<bool>(alive_)](boost::system::error_code ec) {
                         if (alive.expired() || !acceptor_.is_open() || ec == boost::asio::error::operation_aborted)
                           return;
                         tcp::socket socket(acceptor_.get_executor());
                         if (!ec) cm::accept_tcp(acceptor_, socket, local_.protocol(), ec);
                         if (!ec) on_client(std::move(socket));
                         if (!ec || cm::gone_meanwhile(ec)) return accept_next();
                         pause_.begin(ec, [this, alive] {
                           if (!alive.expired()) accept_next();
                         });
                       });
}

void TcpFront::refuse(const tcp::endpoint& client, RefuseReason why, const std::string& text) {
  log_.refused(why, fmt::format("refused tcp_peer={} reason={}: {}", cm::to_string(client), name(why), text),
               Clock::now());
}

void TcpFront::on_client(tcp::socket socket) {
  const Options& options = *options_;
  boost::system::error_code ec;
  const auto remote = socket.remote_endpoint(ec);
  if (ec) return;
  const auto no = [&](RefuseReason why, const char* text) { refuse(remote, why, text); };
  if (!options.allow.allows(remote.address())) return no(RefuseReason::kNotAllowed, "its address is not in --allow");
  if (!options.insecure_ports && !is_reserved(remote.port()))
    return no(RefuseReason::kInsecurePort,
              "its port is above 1023, where any user may send; --insecure-ports serves it");
  if (sessions_.draining() || sessions_.size() >= options.max_connections)
    return no(RefuseReason::kLimit, "too many connections, or shutting down");
  const auto place = take_places(*process_, places_, remote.address());
  if (!place.of_both) return no(RefuseReason::kLimit, place.why);
  if (!process_->memory()->admits_connection()) return no(RefuseReason::kLimit, kNoMemory);
  if (auto ok = cm::prepare(socket, {}); !ok) return no(RefuseReason::kHandshakeFailed, ok.error().why);
  Worker& worker = provider_->home_only() ? process_->home() : process_->idlest_worker();
  if (&worker != &process_->home()) {
    auto moved = cm::rebind(socket, remote.protocol(), worker.engine().io());
    if (!moved) return no(RefuseReason::kLimit, moved.error().why);
    socket = std::move(moved).value();
  }
  sessions_.coming();
  make_session(worker, std::make_shared<Coming>(Coming{remote, place.of_both, worker.take_seat()}), std::move(socket));
}

// What is of this thread stays in it: the session does not know it.
void TcpFront::make_session(Worker& worker, std::shared_ptr<Coming> coming, tcp::socket socket) {
  auto ended = [this, alive = std::weak_ptr<bool>(alive_), home = &process_->home()](TcpSession& session) {
    home->run([this, alive, key = &session] {
      if (!alive.expired()) sessions_.remove(key);
    });
  };
  worker.run([this, alive = std::weak_ptr<bool>(alive_), &worker, process = std::weak_ptr<Process>(process_),
              made = Made{nullptr, std::move(coming), nullptr}, provider = provider_,
              shared = Shared::of(worker, options_, ledger_, *process_), ended = std::move(ended),
              socket = std::move(socket)]() mutable {
    try {
      auto queues = provider->make_queues(shared.engine, *shared.options);
      if (queues) {
        made.session = std::make_shared<TcpSession>(shared, std::move(*queues), std::move(socket), std::move(ended));
      } else {
        made.why = queues.error().why;
      }
    } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): null says it
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

void TcpFront::on_session(Worker& worker, Made& made) {
  const auto client = made.coming->client;
  bool added = false;
  try {
    if (made.session && !sessions_.draining()) {
      sessions_.add(made.session, worker, made.coming);
      added = true;
    }
  } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): `added` says it
  }
  if (added) {
    worker.run(
        [session = std::move(made.session), server = server_,
         source = options_->source_map.source_for(unmapped(client.address()))] { session->connect(server, source); });
  } else {
    if (made.session) worker.run([session = std::move(made.session)] { session->orphan(); });
    refuse(client, RefuseReason::kLimit, sessions_.draining() ? "shutting down" : made.why);
  }
  sessions_.has_come();
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
  options_ = std::make_shared<const Options>(options);
  places_.set_limit(options.max_connections_per_client);
}

Stats::Snapshot TcpFront::snapshot() const {
  return snapshot_with(stats_, sessions_);
}

}  // namespace iwarp::gateway
