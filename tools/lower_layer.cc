#include "tools/lower_layer.h"

#include <boost/asio/use_future.hpp>
#include <utility>

namespace iwarp::tools {
namespace {

class TcpConnection final : public AnyConnection {
 public:
  explicit TcpConnection(std::shared_ptr<cm::Connection> connection) : connection_(std::move(connection)) {}
  void disconnect() override { connection_->disconnect(); }
  void abort() override { connection_->abort(); }
  void on_disconnected(std::function<void(const stream::Disconnected&)> ended) override {
    connection_->async_wait_disconnected([ended = std::move(ended)](const stream::Disconnected& how) { ended(how); });
  }
  stream::Disconnected wait_disconnected() override {
    return connection_->async_wait_disconnected(boost::asio::use_future).get();
  }
  [[nodiscard]] std::vector<std::byte> private_data() const override { return connection_->private_data(); }
  [[nodiscard]] mpa::Negotiated negotiated() const override { return connection_->negotiated(); }
  [[nodiscard]] std::string to_string() const override { return connection_->to_string(); }
  [[nodiscard]] cm::EndFacts facts() const override {
    return {connection_->remote(), connection_->initiator(), connection_->counters()};
  }

 private:
  const std::shared_ptr<cm::Connection> connection_;
};

cm::Connection::EstablishedHandler telling(AnyRequest::Handler handler) {
  return [handler = std::move(handler)](const Error& error, std::shared_ptr<cm::Connection> connection) {
    handler(error, connection == nullptr ? nullptr : std::make_shared<TcpConnection>(std::move(connection)));
  };
}

class TcpRequest final : public AnyRequest {
 public:
  explicit TcpRequest(std::unique_ptr<cm::ConnectRequest> request) : request_(std::move(request)) {}
  [[nodiscard]] boost::asio::ip::tcp::endpoint remote() const override { return request_->remote(); }
  [[nodiscard]] const std::vector<std::byte>& private_data() const override { return request_->private_data(); }
  void accept(std::shared_ptr<verbs::QueuePair> qp, const cm::ConnectRequest::AcceptOptions& options,
              Handler handler) override {
    request_->accept(std::move(qp), options, telling(std::move(handler)));
  }
  void reject() override { request_->reject(); }

 private:
  const std::unique_ptr<cm::ConnectRequest> request_;
};

class TcpListener final : public AnyListener {
 public:
  explicit TcpListener(std::unique_ptr<cm::Listener> listener) : listener_(std::move(listener)) {}
  [[nodiscard]] boost::asio::ip::tcp::endpoint local() const override { return listener_->local(); }
  void accept(Handler handler) override {
    listener_->accept([handler = std::move(handler)](const Error& error, std::unique_ptr<cm::ConnectRequest> request) {
      handler(error, request == nullptr ? nullptr : std::make_unique<TcpRequest>(std::move(request)));
    });
  }

 private:
  const std::unique_ptr<cm::Listener> listener_;
};

class TcpLayer final : public LowerLayer {
 public:
  explicit TcpLayer(cm::Engine& engine) : engine_(engine) {}
  Result<std::unique_ptr<AnyListener>> listen(const cm::ListenOptions& options) override {
    auto listener = cm::Listener::listen(engine_, options);
    if (!listener) return listener.error();
    return std::unique_ptr<AnyListener>(std::make_unique<TcpListener>(*std::move(listener)));
  }
  void connect(std::shared_ptr<verbs::QueuePair> qp, const cm::ConnectOptions& options,
               AnyRequest::Handler handler) override {
    cm::connect(engine_, std::move(qp), options, telling(std::move(handler)));
  }
  bool wait_closed(std::chrono::milliseconds) override { return true; }  // the kernel has it

 private:
  cm::Engine& engine_;
};

}  // namespace

const char* llp_name(Llp llp) {
  return llp == Llp::kTcp ? "tcp" : "sctp";
}

std::optional<Llp> llp_named(const std::string& name) {
  if (name == "tcp") return Llp::kTcp;
  return name == "sctp" ? std::optional(Llp::kSctp) : std::nullopt;
}

Result<std::unique_ptr<LowerLayer>> make_lower_layer(Llp llp, cm::Engine& engine, const SctpOptions& sctp) {
  if (llp == Llp::kSctp) return make_sctp_layer(engine, sctp);
  return std::unique_ptr<LowerLayer>(std::make_unique<TcpLayer>(engine));
}

}  // namespace iwarp::tools
