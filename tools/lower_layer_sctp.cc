// --llp sctp, where libusrsctp is.
#include <algorithm>
#include <boost/asio/use_future.hpp>
#include <utility>

#include "iwarp/sctp_cm/service.h"
#include "tools/lower_layer.h"

namespace iwarp::tools {
namespace {

using boost::asio::ip::tcp;
using boost::asio::ip::udp;

tcp::endpoint printable(const udp::endpoint& at) {
  return {at.address(), at.port()};
}

class SctpConnection final : public AnyConnection {
 public:
  explicit SctpConnection(std::shared_ptr<sctp_cm::Connection> connection) : connection_(std::move(connection)) {}
  void disconnect() override { connection_->disconnect(); }
  void abort() override { connection_->abort(); }
  void on_disconnected(std::function<void(const stream::Disconnected&)> ended) override {
    connection_->async_wait_disconnected(
        [ended = std::move(ended)](const Error&, const stream::Disconnected& how) { ended(how); });
  }
  stream::Disconnected wait_disconnected() override {
    return connection_->async_wait_disconnected(boost::asio::use_future).get();
  }
  [[nodiscard]] std::vector<std::byte> private_data() const override { return connection_->private_data(); }
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
  [[nodiscard]] std::string to_string() const override { return connection_->to_string(); }
  [[nodiscard]] cm::EndFacts facts() const override {
    return {printable(connection_->remote()), connection_->initiator(), connection_->counters()};
  }

 private:
  const std::shared_ptr<sctp_cm::Connection> connection_;
};

sctp_cm::Connection::EstablishedHandler telling_sctp(AnyRequest::Handler handler) {
  return [handler = std::move(handler)](const Error& error, std::shared_ptr<sctp_cm::Connection> connection) {
    handler(error, connection == nullptr ? nullptr : std::make_shared<SctpConnection>(std::move(connection)));
  };
}

class SctpRequest final : public AnyRequest {
 public:
  explicit SctpRequest(std::unique_ptr<sctp_cm::ConnectRequest> request) : request_(std::move(request)) {}
  [[nodiscard]] tcp::endpoint remote() const override { return printable(request_->remote()); }
  [[nodiscard]] const std::vector<std::byte>& private_data() const override { return request_->private_data(); }
  void accept(std::shared_ptr<verbs::QueuePair> qp, const cm::ConnectRequest::AcceptOptions& options,
              Handler handler) override {
    request_->accept(std::move(qp), options, telling_sctp(std::move(handler)));
  }
  void reject() override { (void)request_->reject(); }

 private:
  const std::unique_ptr<sctp_cm::ConnectRequest> request_;
};

class SctpListener final : public AnyListener {
 public:
  explicit SctpListener(std::unique_ptr<sctp_cm::Listener> listener) : listener_(std::move(listener)) {}
  [[nodiscard]] tcp::endpoint local() const override { return printable(listener_->local()); }
  void accept(Handler handler) override {
    listener_->accept(
        [handler = std::move(handler)](const Error& error, std::unique_ptr<sctp_cm::ConnectRequest> request) {
          handler(error, request == nullptr ? nullptr : std::make_unique<SctpRequest>(std::move(request)));
        });
  }

 private:
  const std::unique_ptr<sctp_cm::Listener> listener_;
};

class SctpLayer final : public LowerLayer {
 public:
  SctpLayer(std::unique_ptr<sctp_cm::Service> service, const SctpOptions& options)
      : service_(std::move(service)), options_(options) {}
  // The peer may still have to hear of the end.
  ~SctpLayer() override { (void)service_->wait_closed(kFarewell); }

  Result<std::unique_ptr<AnyListener>> listen(const cm::ListenOptions& options) override {
    sctp_cm::ListenOptions o;
    o.endpoint = {options.endpoint.address(), options.endpoint.port()};
    o.session.offer = mpa::offer_of(options.policy);
    o.max_pending = options.max_pending;
    o.transport.packet_bytes = options_.packet_bytes;
    auto listener = service_->listen(o);
    if (!listener) return listener.error();
    return std::unique_ptr<AnyListener>(std::make_unique<SctpListener>(*std::move(listener)));
  }

  void connect(std::shared_ptr<verbs::QueuePair> qp, const cm::ConnectOptions& options,
               AnyRequest::Handler handler) override {
    sctp_cm::ConnectOptions o;
    o.host = options.host;
    o.port = options.port;
    if (options.local) o.local = options.local->address();
    o.session.offer = mpa::offer_of(options.policy);
    o.session.answer_timeout = options.policy.startup_timeout;
    o.private_data = options.private_data;
    o.share_association = options_.share_associations;
    o.transport.packet_bytes = options_.packet_bytes;
    o.transport.connect_timeout = std::min(options.connect_timeout, kLongestConnect);
    service_->connect(std::move(qp), std::move(o), telling_sctp(std::move(handler)));
  }
  bool wait_closed(std::chrono::milliseconds time) override { return service_->wait_closed(time); }

 private:
  static constexpr std::chrono::milliseconds kLongestConnect{600'000};  // of TransportOptions
  static constexpr std::chrono::milliseconds kFarewell{500};

  const std::unique_ptr<sctp_cm::Service> service_;
  const SctpOptions options_;
};

}  // namespace

bool has_sctp() {
  return true;
}

Result<std::unique_ptr<LowerLayer>> make_sctp_layer(cm::Engine& engine, const SctpOptions& sctp) {
  auto service = sctp_cm::Service::make(engine);
  if (!service) return service.error();
  return std::unique_ptr<LowerLayer>(std::make_unique<SctpLayer>(*std::move(service), sctp));
}

}  // namespace iwarp::tools
