#include "iwarp/llp/over_tcp.h"

#include <utility>

#include "iwarp/llp/connection_over.h"

namespace iwarp::llp {
namespace {

class TcpConnection final : public ConnectionOver<cm::Connection> {
 public:
  using ConnectionOver::ConnectionOver;
  [[nodiscard]] Kind kind() const override { return Kind::kTcp; }
  [[nodiscard]] Address local() const override { return inner().local(); }
  [[nodiscard]] Address remote() const override { return inner().remote(); }
  [[nodiscard]] mpa::Negotiated negotiated() const override { return inner().negotiated(); }
};

cm::Connection::EstablishedHandler telling(const cm::Engine& engine, EstablishedHandler handler) {
  return told_with<TcpConnection, cm::Connection>(engine, std::move(handler));
}

class TcpRequest final : public ConnectRequest {
 public:
  explicit TcpRequest(std::unique_ptr<cm::ConnectRequest> request) : request_(std::move(request)) {}
  [[nodiscard]] Address remote() const override { return request_->remote(); }
  [[nodiscard]] Address local() const override { return request_->local(); }
  [[nodiscard]] const std::vector<std::byte>& private_data() const override { return request_->private_data(); }
  [[nodiscard]] bool enhanced() const override { return request_->enhanced(); }
  [[nodiscard]] std::uint16_t peer_ird() const override { return request_->peer_ird(); }
  [[nodiscard]] std::uint16_t peer_ord() const override { return request_->peer_ord(); }
  [[nodiscard]] cm::Engine& engine() const override { return request_->engine(); }
  [[nodiscard]] Result<void> move_to(cm::Engine& engine) override { return request_->move_to(engine); }
  void accept(std::shared_ptr<verbs::QueuePair> qp, const AcceptOptions& options, EstablishedHandler handler,
              const std::shared_ptr<cm::Canceller>& cancel) override {
    request_->accept(std::move(qp), options, telling(request_->engine(), std::move(handler)), cancel);
  }
  using ConnectRequest::reject;
  Result<void> reject(ConstBytes private_data, std::optional<std::uint16_t> required_ord) override {
    return request_->reject(private_data, required_ord);
  }

 private:
  const std::unique_ptr<cm::ConnectRequest> request_;
};

class TcpListener final : public Listener {
 public:
  TcpListener(std::shared_ptr<cm::Operations> operations, std::unique_ptr<cm::Listener> listener)
      : Listener(std::move(operations)), listener_(std::move(listener)) {}
  [[nodiscard]] Address local() const override { return listener_->local(); }
  void accept(AcceptHandler handler, const std::shared_ptr<cm::Canceller>& cancel) override {
    listener_->accept(
        [handler = std::move(handler)](const Error& error, std::unique_ptr<cm::ConnectRequest> request) {
          handler(error, request == nullptr ? nullptr : std::make_unique<TcpRequest>(std::move(request)));
        },
        cancel);
  }
  [[nodiscard]] Result<void> set_policy(const mpa::Policy& policy) override { return listener_->set_policy(policy); }
  [[nodiscard]] Result<void> set_packet_bytes(std::uint16_t) override { return {}; }

 private:
  const std::unique_ptr<cm::Listener> listener_;
};

class TcpLayer final : public LowerLayer {
 public:
  explicit TcpLayer(cm::Engine& engine) : LowerLayer(engine, {}) {}
  [[nodiscard]] Kind kind() const override { return Kind::kTcp; }
  using LowerLayer::listen;
  [[nodiscard]] Result<std::unique_ptr<Listener>> listen(const cm::ListenOptions& options,
                                                         const SctpOptions&) override {
    auto listener = cm::Listener::listen(engine(), options);
    if (!listener) return listener.error();
    return std::unique_ptr<Listener>(std::make_unique<TcpListener>(engine().operations(), *std::move(listener)));
  }
  using LowerLayer::connect;
  void connect(std::shared_ptr<verbs::QueuePair> qp, const cm::ConnectOptions& options, const SctpOptions&,
               EstablishedHandler handler, const std::shared_ptr<cm::Canceller>& cancel) override {
    cm::connect(engine(), std::move(qp), options, telling(engine(), std::move(handler)), cancel);
  }
  bool wait_closed(std::chrono::milliseconds) override { return true; }  // the kernel has it
};

}  // namespace

std::unique_ptr<LowerLayer> make_over_tcp(cm::Engine& engine) {
  return std::make_unique<TcpLayer>(engine);
}

}  // namespace iwarp::llp
