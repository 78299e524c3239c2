#include "iwarp/gateway/rdma_front.h"

#include <spdlog/spdlog.h>

#include "iwarp/gateway/backend_connector.h"
#include "iwarp/gateway/rdma_session.h"

namespace iwarp::gateway {

using boost::asio::ip::tcp;
using Clock = std::chrono::steady_clock;

RdmaFront::RdmaFront(cm::Engine& engine, HostPort server, const Options& options)
    : engine_(engine), server_(std::move(server)), options_(options), ports_({}), sessions_(engine.io()) {}

Result<std::unique_ptr<RdmaFront>> RdmaFront::open(cm::Engine& engine, const tcp::endpoint& listen,
                                                   const HostPort& server, const Options& options) {
  std::unique_ptr<RdmaFront> front(new RdmaFront(engine, server, options));
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
  refusals_.add(why, fmt::format("refused peer={} reason={}: {}", cm::to_string(request.remote()), name(why), text),
                Clock::now());
  request.reject();
}

void RdmaFront::on_request(std::shared_ptr<cm::ConnectRequest> request) {
  const auto client = request->remote().address();
  if (!options_.allow.allows(client))
    return refuse(*request, RefuseReason::kNotAllowed, "its address is not in --allow");
  if (sessions_.draining() || sessions_.size() + connecting_ >= options_.max_connections) {
    return refuse(*request, RefuseReason::kLimit, "too many connections, or shutting down");
  }
  BackendRequest backend{.server = server_,
                         .source = options_.source_map.source_for(unmapped(client)),
                         .timeout = options_.backend_timeout};
  backend.source_port = ports_.take(client, Clock::now());
  ++connecting_;
  connect_backend(engine_.io(), backend,
                  [this, alive = std::weak_ptr<bool>(alive_), request, port = backend.source_port](const Error& error,
                                                                                                   tcp::socket socket) {
                    if (alive.expired()) return;
                    --connecting_;
                    // The client will try again, and its replays need the port.
                    if (error.code != Errc::kOk && port)
                      ports_.remember(request->remote().address(), *port, true, Clock::now());
                    on_backend(request, error, std::move(socket));
                  });
}

void RdmaFront::on_backend(const std::shared_ptr<cm::ConnectRequest>& request, const Error& error, tcp::socket socket) {
  if (error.code != Errc::kOk) {
    return refuse(*request, RefuseReason::kBackendUnreachable,
                  fmt::format("backend tcp_peer={} reason={}: {}", server_.to_string(), name(error.code), error.why));
  }
  if (sessions_.draining()) return refuse(*request, RefuseReason::kLimit, "shutting down");
  const auto client = request->remote().address();
  std::shared_ptr<RdmaSession> session;
  try {
    session = std::make_shared<RdmaSession>(engine_, options_, stats_, refusals_, *request, std::move(socket),
                                            [this, client](RdmaSession& ended, std::uint16_t port, bool outstanding) {
                                              ports_.remember(client, port, outstanding, Clock::now());
                                              sessions_.remove(&ended);
                                            });
    sessions_.add(session);
  } catch (const std::bad_alloc&) {
    return refuse(*request, RefuseReason::kLimit, "out of memory");
  }
  session->accept(*request);
}

void RdmaFront::drain(std::function<void()> done) {
  listener_.reset();
  sessions_.drain(options_.drain_timeout, std::move(done));
}

Stats::Snapshot RdmaFront::snapshot() const {
  auto s = stats_.snapshot();
  sessions_.each([&](const Session& session) { session.add_live_counters(s); });
  return s;
}

}  // namespace iwarp::gateway
