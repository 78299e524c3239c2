#include "iwarp/llp/over_tcp.h"

#include <utility>

namespace iwarp::llp {
namespace {

class TcpConnection final : public Connection {
 public:
  TcpConnection(std::shared_ptr<cm::Operations> operations, std::shared_ptr<cm::Connection> connection)
      : Connection(std::move(operations)), connection_(std::move(connection)) {}
  [[nodiscard]] Kind kind() const override { return Kind::kTcp; }
  [[nodiscard]] const std::shared_ptr<verbs::QueuePair>& qp() const override { return connection_->qp(); }
  [[nodiscard]] bool initiator() const override { return connection_->initiator(); }
  [[nodiscard]] Address local() const override { return connection_->local(); }
  [[nodiscard]] Address remote() const override { return connection_->remote(); }
  [[nodiscard]] mpa::Negotiated negotiated() const override { return connection_->negotiated(); }
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
  const std::shared_ptr<cm::Connection> connection_;
};

cm::Connection::EstablishedHandler telling(const cm::Engine& engine, EstablishedHandler handler) {
  return [operations = engine.operations(), handler = std::move(handler)](const Error& error,
                                                                          std::shared_ptr<cm::Connection> connection) {
    handler(error, connection == nullptr ? nullptr : std::make_shared<TcpConnection>(operations, connection));
  };
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
