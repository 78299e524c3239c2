#include "iwarp/llp/over_sctp.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <mutex>
#include <utility>

#include "iwarp/sctp_cm/service.h"

namespace iwarp::llp {
namespace {

Address address_of(const boost::asio::ip::udp::endpoint& at) {
  return {at.address(), at.port()};
}

class SctpConnection final : public Connection {
 public:
  SctpConnection(std::shared_ptr<cm::Operations> operations, std::shared_ptr<sctp_cm::Connection> connection)
      : Connection(std::move(operations)), connection_(std::move(connection)) {}
  [[nodiscard]] Kind kind() const override { return Kind::kSctp; }
  [[nodiscard]] const std::shared_ptr<verbs::QueuePair>& qp() const override { return connection_->qp(); }
  [[nodiscard]] bool initiator() const override { return connection_->initiator(); }
  [[nodiscard]] Address local() const override { return address_of(connection_->local()); }
  [[nodiscard]] Address remote() const override { return address_of(connection_->remote()); }
  [[nodiscard]] mpa::Negotiated negotiated() const override {
    const sctp_cm::Negotiated n = connection_->negotiated();
    mpa::Negotiated out;
    out.enhanced = n.enhanced;
    out.peer_to_peer = n.peer_to_peer;
    out.rtr = n.rtr;
    out.ird = n.ird;
    out.ord = n.ord;
    out.peer_ird = n.peer_ird;
    out.peer_ord = n.peer_ord;
    return out;
  }
  [[nodiscard]] std::vector<std::byte> private_data() const override { return connection_->private_data(); }
  [[nodiscard]] cm::Counters counters() const override { return connection_->counters(); }
  [[nodiscard]] std::string to_string() const override { return connection_->to_string(); }
  [[nodiscard]] std::optional<stream::Disconnected> disconnected() const override {
    return connection_->disconnected();
  }
  void disconnect() override { connection_->disconnect(); }
  using Connection::abort;
  void abort(const Error& reason) override { connection_->abort(reason); }

 protected:
  void on_disconnected(cm::Completion<Error, stream::Disconnected> completion) override {
    connection_->on_disconnected(std::move(completion));
  }

 private:
  const std::shared_ptr<sctp_cm::Connection> connection_;
};

sctp_cm::Connection::EstablishedHandler telling(const cm::Engine& engine, EstablishedHandler handler) {
  return [operations = engine.operations(), handler = std::move(handler)](
             const Error& error, std::shared_ptr<sctp_cm::Connection> connection) {
    handler(error,
            connection == nullptr ? nullptr : std::make_shared<SctpConnection>(operations, std::move(connection)));
  };
}

class SctpRequest final : public ConnectRequest {
 public:
  SctpRequest(cm::Engine& engine, std::unique_ptr<sctp_cm::ConnectRequest> request)
      : engine_(engine), request_(std::move(request)) {}
  [[nodiscard]] Address remote() const override { return address_of(request_->remote()); }
  [[nodiscard]] Address local() const override { return address_of(request_->local()); }
  [[nodiscard]] const std::vector<std::byte>& private_data() const override { return request_->private_data(); }
  [[nodiscard]] bool enhanced() const override { return request_->enhanced(); }
  [[nodiscard]] std::uint16_t peer_ird() const override { return request_->peer_ird(); }
  [[nodiscard]] std::uint16_t peer_ord() const override { return request_->peer_ord(); }
  [[nodiscard]] cm::Engine& engine() const override { return engine_; }
  [[nodiscard]] Result<void> move_to(cm::Engine& engine) override {
    if (&engine == &engine_) return {};
    return make_error(Errc::kInvalidArgument, "connections over SCTP stay with the engine of their layer");
  }
  void accept(std::shared_ptr<verbs::QueuePair> qp, const AcceptOptions& options, EstablishedHandler handler,
              const std::shared_ptr<cm::Canceller>& cancel) override {
    request_->accept(std::move(qp), options, telling(engine_, std::move(handler)), cancel);
  }
  using ConnectRequest::reject;
  Result<void> reject(ConstBytes private_data, std::optional<std::uint16_t> required_ord) override {
    return request_->reject(private_data, required_ord);
  }

 private:
  cm::Engine& engine_;
  const std::unique_ptr<sctp_cm::ConnectRequest> request_;
};

sctp::SessionOptions session_of(const mpa::Policy& policy) {
  sctp::SessionOptions session;
  session.offer = mpa::offer_of(policy);
  session.enhanced = policy.revision > 1;
  return session;
}

class SctpListener final : public Listener {
 public:
  SctpListener(cm::Engine& engine, std::unique_ptr<sctp_cm::Listener> listener)
      : Listener(engine.operations()), engine_(engine), listener_(std::move(listener)) {}
  [[nodiscard]] Address local() const override { return address_of(listener_->local()); }
  void accept(AcceptHandler handler, const std::shared_ptr<cm::Canceller>& cancel) override {
    listener_->accept(
        [engine = &engine_, handler = std::move(handler)](const Error& error,
                                                          std::unique_ptr<sctp_cm::ConnectRequest> request) {
          handler(error, request == nullptr ? nullptr : std::make_unique<SctpRequest>(*engine, std::move(request)));
        },
        cancel);
  }
  [[nodiscard]] Result<void> set_policy(const mpa::Policy& policy) override {
    if (auto ok = mpa::validate(policy); !ok) return ok;
    return listener_->set_session(session_of(policy));
  }
  [[nodiscard]] Result<void> set_packet_bytes(std::uint16_t octets) override {
    return listener_->set_packet_bytes(octets);
  }

 private:
  cm::Engine& engine_;
  const std::unique_ptr<sctp_cm::Listener> listener_;
};

// What a connect would have to leave out; null: nothing.
const char* not_over_sctp(const cm::ConnectOptions& options) {
  if (options.refusal_patience > std::chrono::milliseconds(0)) return "refusal_patience is for TCP, not for SCTP";
  if (options.keep_tcp_if_rejected) return "keep_tcp_if_rejected is for TCP, not for SCTP";
  if (options.judge_reply) return "judge_reply is for MPA, not for SCTP";
  if (options.try_again) return "try_again is for MPA, not for SCTP";
  return nullptr;
}

Result<void> validate(const SctpOptions& options) {
  return validate(sctp_cm::TransportOptions{.packet_bytes = options.packet_bytes});
}

class SctpLayer final : public LowerLayer {
 public:
  SctpLayer(cm::Engine& engine, std::unique_ptr<sctp_cm::Service> service, const SctpOptions& options)
      : engine_(engine), service_(std::move(service)), options_(options) {}
  ~SctpLayer() override {
    if (const auto farewell = options().farewell; farewell > std::chrono::milliseconds(0))
      (void)service_->wait_closed(farewell);
  }

  [[nodiscard]] Kind kind() const override { return Kind::kSctp; }
  [[nodiscard]] cm::Engine& engine() const override { return engine_; }
  [[nodiscard]] Result<void> set_sctp(const SctpOptions& options) override {
    if (auto ok = validate(options); !ok) return ok;
    const std::lock_guard lock(mu_);
    options_ = options;
    return {};
  }
  [[nodiscard]] Result<std::unique_ptr<Listener>> listen(const cm::ListenOptions& options) override {
    if (const auto ok = cm::validate(options); !ok) return ok.error();
    const SctpOptions sctp = this->options();
    sctp_cm::ListenOptions o;
    o.endpoint = {options.endpoint.address(), options.endpoint.port()};
    o.sctp_port = sctp.port;
    o.session = session_of(options.policy);
    o.max_pending = options.max_pending;
    o.transport.packet_bytes = sctp.packet_bytes;
    auto listener = service_->listen(o);
    if (!listener) return listener.error();
    return std::unique_ptr<Listener>(std::make_unique<SctpListener>(engine_, *std::move(listener)));
  }
  void connect(std::shared_ptr<verbs::QueuePair> qp, const cm::ConnectOptions& options, EstablishedHandler handler,
               const std::shared_ptr<cm::Canceller>& cancel) override {
    const auto refuse = [&](const Error& error) {
      boost::asio::post(engine_.io(), [handler, error] { handler(error, nullptr); });
    };
    if (const auto ok = mpa::validate(options.policy); !ok) return refuse(ok.error());
    const SctpOptions sctp = this->options();
    if (const char* why = not_over_sctp(options)) return refuse(make_error(Errc::kInvalidArgument, why));
    sctp_cm::ConnectOptions o;
    o.host = options.host;
    o.port = options.port;
    o.sctp_port = sctp.port;
    if (options.local) o.local = options.local->address();
    o.session = session_of(options.policy);
    o.session.answer_timeout = options.policy.startup_timeout;
    o.private_data = options.private_data;
    o.share_association = sctp.share_association;
    o.transport.packet_bytes = sctp.packet_bytes;
    o.transport.connect_timeout = std::min(options.connect_timeout, kLongestConnect);
    service_->connect(std::move(qp), std::move(o), telling(engine_, std::move(handler)), cancel);
  }
  bool wait_closed(std::chrono::milliseconds time) override { return service_->wait_closed(time); }

 private:
  static constexpr std::chrono::milliseconds kLongestConnect{600'000};  // of TransportOptions

  [[nodiscard]] SctpOptions options() const {
    const std::lock_guard lock(mu_);
    return options_;
  }

  cm::Engine& engine_;
  const std::unique_ptr<sctp_cm::Service> service_;
  mutable std::mutex mu_;  // guards options_
  SctpOptions options_;
};

}  // namespace

bool has_sctp() {
  return true;
}

Result<std::unique_ptr<LowerLayer>> make_over_sctp(cm::Engine& engine, const SctpOptions& options) {
  if (const auto ok = validate(options); !ok) return ok.error();
  auto service = sctp_cm::Service::make(engine);
  if (!service) return service.error();
  return std::unique_ptr<LowerLayer>(std::make_unique<SctpLayer>(engine, *std::move(service), options));
}

}  // namespace iwarp::llp
