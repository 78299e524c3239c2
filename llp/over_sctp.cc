#include "iwarp/llp/over_sctp.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

#include "iwarp/llp/connection_over.h"
#include "iwarp/sctp_cm/service.h"
#include "iwarp/verbs/own_process.h"

namespace iwarp::llp {
namespace {

Address address_of(const boost::asio::ip::udp::endpoint& at) {
  return {at.address(), at.port()};
}

class SctpConnection final : public ConnectionOver<sctp_cm::Connection> {
 public:
  using ConnectionOver::ConnectionOver;
  [[nodiscard]] Kind kind() const override { return Kind::kSctp; }
  [[nodiscard]] Address local() const override { return address_of(inner().local()); }
  [[nodiscard]] Address remote() const override { return address_of(inner().remote()); }
  [[nodiscard]] mpa::Negotiated negotiated() const override {
    const sctp_cm::Negotiated n = inner().negotiated();
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
};

sctp_cm::Connection::EstablishedHandler telling(const cm::Engine& engine, EstablishedHandler handler) {
  return told_with<SctpConnection, sctp_cm::Connection>(engine, std::move(handler));
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
  session.max_private_data_bytes = policy.max_private_data_bytes;
  return session;
}

Result<void> check(const SctpOptions& options) {
  if (validate(sctp_cm::TransportOptions{.packet_bytes = options.packet_bytes})) return {};
  return make_error(Errc::kInvalidArgument, "SctpOptions::packet_bytes must be 576 to 65507");
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
    if (auto ok = check(SctpOptions{.packet_bytes = octets}); !ok) return ok;
    return listener_->set_packet_bytes(octets);
  }

 private:
  cm::Engine& engine_;
  const std::unique_ptr<sctp_cm::Listener> listener_;
};

Result<void> check(const mpa::Policy& policy, const SctpOptions& sctp) {
  if (auto ok = mpa::validate(policy); !ok) return ok;
  return check(sctp);
}

// And what would have to be left out.
Result<void> check(const cm::ConnectOptions& options, const SctpOptions& sctp) {
  const auto invalid = [](const char* why) { return make_error(Errc::kInvalidArgument, why); };
  if (options.refusal_patience > std::chrono::milliseconds(0)) return invalid("refusal_patience is for TCP, not SCTP");
  if (options.keep_tcp_if_rejected) return invalid("keep_tcp_if_rejected is for TCP, not SCTP");
  if (options.judge_reply) return invalid("judge_reply is for MPA, not SCTP");
  if (options.try_again) return invalid("try_again is for MPA, not SCTP");
  if (options.connect_timeout < std::chrono::milliseconds(1))
    return invalid("ConnectOptions::connect_timeout must be 1 ms or more");
  return check(options.policy, sctp);
}

class SctpLayer final : public LowerLayer {
 public:
  SctpLayer(cm::Engine& engine, std::unique_ptr<sctp_cm::Service> service, const SctpOptions& sctp)
      : LowerLayer(engine, sctp), service_(std::move(service)) {}

  [[nodiscard]] Kind kind() const override { return Kind::kSctp; }
  using LowerLayer::listen;
  [[nodiscard]] Result<std::unique_ptr<Listener>> listen(const cm::ListenOptions& options,
                                                         const SctpOptions& sctp) override {
    if (const auto ok = check(options.policy, sctp); !ok) return ok.error();
    sctp_cm::ListenOptions o;
    o.endpoint = {options.endpoint.address(), options.endpoint.port()};
    o.sctp_port = sctp.port;
    o.session = session_of(options.policy);
    o.max_pending = options.max_pending;
    o.transport.packet_bytes = sctp.packet_bytes;
    auto listener = service_->listen(o);
    if (!listener) return listener.error();
    return std::unique_ptr<Listener>(std::make_unique<SctpListener>(engine(), *std::move(listener)));
  }
  using LowerLayer::connect;
  void connect(std::shared_ptr<verbs::QueuePair> qp, const cm::ConnectOptions& options, const SctpOptions& sctp,
               EstablishedHandler handler, const std::shared_ptr<cm::Canceller>& cancel) override {
    if (!engine().operations()->alive()) return handler(verbs::used_after_fork(), nullptr);
    if (const auto ok = check(options, sctp); !ok) {
      return boost::asio::post(engine().io(), [handler, error = ok.error()] { handler(error, nullptr); });
    }
    sctp_cm::ConnectOptions o;
    o.host = options.host;
    o.port = options.port;
    o.sctp_port = sctp.port;
    if (options.local) o.local = options.local->address();
    o.session = session_of(options.policy);
    o.session.answer_timeout = options.policy.startup_timeout;
    o.plain_fallback = options.policy.allow_revision_1_fallback;
    o.private_data = options.private_data;
    o.share_association = sctp.share_association;
    o.transport.packet_bytes = sctp.packet_bytes;
    o.transport.connect_timeout = std::min(options.connect_timeout, kLongestConnect);
    service_->connect(std::move(qp), std::move(o), telling(engine(), std::move(handler)), cancel);
  }
  bool wait_closed(std::chrono::milliseconds time) override { return service_->wait_closed(time); }

 private:
  static constexpr std::chrono::milliseconds kLongestConnect{600'000};  // of TransportOptions

  const std::unique_ptr<sctp_cm::Service> service_;
};

}  // namespace

bool has_sctp() {
  return true;
}

Result<std::unique_ptr<LowerLayer>> make_over_sctp(cm::Engine& engine, const SctpOptions& options) {
  if (const auto ok = check(options); !ok) return ok.error();
  auto service = sctp_cm::Service::make(engine);
  if (!service) return service.error();
  return std::unique_ptr<LowerLayer>(std::make_unique<SctpLayer>(engine, *std::move(service), options));
}

}  // namespace iwarp::llp
