// RdmaProvider: our own stack over SCTP.
#include <algorithm>
#include <boost/asio/ip/tcp.hpp>
#include <utility>

#include "iwarp/gateway/own_stack.h"
#include "iwarp/sctp_cm/service.h"

namespace iwarp::gateway {
namespace {

using boost::asio::ip::tcp;
using boost::asio::ip::udp;

tcp::endpoint for_log(const udp::endpoint& at) {
  return {at.address(), at.port()};
}

sctp::SessionOptions session_of(const mpa::Policy& policy) {
  sctp::SessionOptions session;
  session.offer = mpa::offer_of(policy);
  return session;
}

sctp_cm::TransportOptions transport_of(const Options& options) {
  sctp_cm::TransportOptions transport;
  transport.packet_bytes = options.sctp_packet_bytes;
  transport.connect_timeout = options.backend_timeout;
  return transport;
}

class SctpLink final : public RdmaLink {
 public:
  explicit SctpLink(std::shared_ptr<sctp_cm::Connection> connection) : connection_(std::move(connection)) {}

  [[nodiscard]] bool initiator() const override { return connection_->initiator(); }
  [[nodiscard]] tcp::endpoint remote() const override { return for_log(connection_->remote()); }
  [[nodiscard]] std::vector<std::byte> private_data() const override { return connection_->private_data(); }
  [[nodiscard]] cm::Counters counters() const override { return connection_->counters(); }
  [[nodiscard]] std::string to_string() const override { return connection_->to_string(); }
  void disconnect() override { connection_->disconnect(); }
  using RdmaLink::abort;
  void abort(const Error& reason) override { connection_->abort(reason); }
  void wait_disconnected(std::function<void(const stream::Disconnected&)> ended) override {
    connection_->async_wait_disconnected(
        [ended = std::move(ended)](const Error&, const stream::Disconnected& how) { ended(how); });
  }

 private:
  std::shared_ptr<sctp_cm::Connection> connection_;
};

sctp_cm::Connection::EstablishedHandler told_of_sctp(LinkHandler handler) {
  return [handler = std::move(handler)](const Error& error, const std::shared_ptr<sctp_cm::Connection>& connection) {
    if (error.code == Errc::kOk) return handler(error, std::make_shared<SctpLink>(connection), {});
    const cm::EndFacts facts{connection ? for_log(connection->remote()) : tcp::endpoint{},
                             connection && connection->initiator(),
                             connection ? connection->counters() : cm::Counters{}};
    const auto how = connection ? connection->disconnected() : std::nullopt;
    handler(error, nullptr, how ? cm::describe_end(facts, *how) : std::string());
  };
}

class SctpQueues final : public OwnQueues {
 public:
  SctpQueues(cm::Engine& engine, std::weak_ptr<sctp_cm::Service> service, const Options& options, std::size_t ord)
      : OwnQueues(engine, options.stream, ord), service_(std::move(service)) {}

  void connect(const RdmaTarget& to, const Options& options, LinkHandler handler) override {
    const auto service = service_.lock();
    if (service == nullptr) return handler(make_error(Errc::kAborted), nullptr, {});
    sctp_cm::ConnectOptions o;
    o.host = to.server.host;
    o.port = to.server.port;
    o.local = to.source;
    o.session = session_of(options.policy);
    o.session.answer_timeout = options.backend_timeout;
    o.transport = transport_of(options);
    o.private_data = to.private_data;
    service->connect(qp(), std::move(o), told_of_sctp(std::move(handler)));  // req: RFC8166-2.2.3-1 RFC8167-2-2
  }

 private:
  std::weak_ptr<sctp_cm::Service> service_;
};

class SctpRequest final : public RdmaRequest {
 public:
  SctpRequest(cm::Engine& home, std::weak_ptr<sctp_cm::Service> service,
              std::unique_ptr<sctp_cm::ConnectRequest> request)
      : home_(home), service_(std::move(service)), request_(std::move(request)) {}

  [[nodiscard]] tcp::endpoint remote() const override { return for_log(request_->remote()); }
  [[nodiscard]] ConstBytes private_data() const override { return request_->private_data(); }
  [[nodiscard]] cm::Engine& engine() const override { return home_; }
  [[nodiscard]] Result<void> move_to(cm::Engine& engine) override {
    if (&engine == &home_) return {};
    return make_error(Errc::kInvalidArgument, "connections over SCTP stay in the thread of the process");
  }
  // As many Reads as the client admits, bounded by policy.
  [[nodiscard]] Result<std::unique_ptr<RdmaQueues>> make_queues(const Options& options) override {
    const bool negotiated = request_->enhanced() && request_->peer_ird() != enhanced::kNoIrdOrdNegotiation;
    const std::size_t ord = negotiated ? std::min(options.policy.ord, request_->peer_ird()) : options.policy.ord;
    return std::unique_ptr<RdmaQueues>(std::make_unique<SctpQueues>(home_, service_, options, ord));
  }
  void accept(RdmaQueues& queues, const Options& options, std::vector<std::byte> private_data,
              LinkHandler handler) override {
    request_->accept(static_cast<SctpQueues&>(queues).qp(),
                     {options.policy.ird, options.policy.ord, std::move(private_data)},
                     told_of_sctp(std::move(handler)));
  }
  void reject() override { (void)request_->reject(); }

 private:
  cm::Engine& home_;
  std::weak_ptr<sctp_cm::Service> service_;
  std::unique_ptr<sctp_cm::ConnectRequest> request_;
};

class SctpListener final : public RdmaListener {
 public:
  SctpListener(cm::Engine& home, std::weak_ptr<sctp_cm::Service> service, std::unique_ptr<sctp_cm::Listener> listener,
               RdmaProvider::Handlers handlers)
      : home_(home), service_(std::move(service)), listener_(std::move(listener)), handlers_(std::move(handlers)) {
    accept_next();
  }

  [[nodiscard]] tcp::endpoint local() const override { return for_log(listener_->local()); }
  void change(const Options& options) override {
    (void)listener_->set_session(session_of(options.policy));
    (void)listener_->set_packet_bytes(options.sctp_packet_bytes);
  }

 private:
  void accept_next() {
    listener_->accept([this, alive = std::weak_ptr<bool>(alive_)](const Error& error,
                                                                  std::unique_ptr<sctp_cm::ConnectRequest> request) {
      if (alive.expired() || error.code != Errc::kOk) return;
      handlers_.request(std::make_shared<SctpRequest>(home_, service_, std::move(request)));
      if (!alive.expired()) accept_next();
    });
  }

  cm::Engine& home_;
  std::weak_ptr<sctp_cm::Service> service_;
  std::unique_ptr<sctp_cm::Listener> listener_;
  RdmaProvider::Handlers handlers_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

class SctpStack final : public RdmaProvider {
 public:
  SctpStack(cm::Engine& home, std::unique_ptr<sctp_cm::Service> service) : home_(home), service_(std::move(service)) {}

  [[nodiscard]] Result<std::unique_ptr<RdmaListener>> listen(cm::Engine&, const tcp::endpoint& at,
                                                             const Options& options, Handlers handlers) override {
    sctp_cm::ListenOptions o;
    o.endpoint = {at.address(), at.port()};
    o.session = session_of(options.policy);
    o.transport = transport_of(options);
    auto listener = service_->listen(o);  // req: RFC8166-2.2.3-1 RFC8167-2-2
    if (!listener) return listener.error();
    return std::unique_ptr<RdmaListener>(
        std::make_unique<SctpListener>(home_, service_, *std::move(listener), std::move(handlers)));
  }
  [[nodiscard]] Result<std::unique_ptr<RdmaQueues>> make_queues(cm::Engine&, const Options& options) override {
    return std::unique_ptr<RdmaQueues>(std::make_unique<SctpQueues>(home_, service_, options, options.policy.ord));
  }
  // usrsctp is for one thread.
  [[nodiscard]] bool home_only() const override { return true; }

 private:
  cm::Engine& home_;
  std::shared_ptr<sctp_cm::Service> service_;
};

}  // namespace

Parsed<std::shared_ptr<RdmaProvider>> open_sctp(cm::Engine& home) {
  auto service = sctp_cm::Service::make(home);
  if (!service) return {std::nullopt, std::string("no SCTP: ") + service.error().why};
  return {std::make_shared<SctpStack>(home, *std::move(service)), {}};
}

}  // namespace iwarp::gateway
