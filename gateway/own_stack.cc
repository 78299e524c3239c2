#include "iwarp/gateway/own_stack.h"

#include <spdlog/spdlog.h>

#include <array>
#include <utility>

#include "iwarp/cm/after_drive.h"

namespace iwarp::gateway {
namespace {

using boost::asio::ip::tcp;

verbs::QueuePair::Options qp_options(verbs::CompletionQueue& cq, endpoint::Options stream, std::size_t sends,
                                     std::size_t receives) {
  stream.sq_depth = sends;
  stream.rq_depth = receives;
  return {.send_cq = &cq, .recv_cq = &cq, .stream = stream};
}

class OwnLink final : public RdmaLink {
 public:
  explicit OwnLink(std::shared_ptr<llp::Connection> connection) : connection_(std::move(connection)) {}

  [[nodiscard]] bool initiator() const override { return connection_->initiator(); }
  [[nodiscard]] tcp::endpoint remote() const override { return connection_->remote(); }
  [[nodiscard]] std::vector<std::byte> private_data() const override { return connection_->private_data(); }
  [[nodiscard]] cm::Counters counters() const override { return connection_->counters(); }
  [[nodiscard]] std::string to_string() const override { return connection_->to_string(); }
  void disconnect() override { connection_->disconnect(); }
  using RdmaLink::abort;
  void abort(const Error& reason) override { connection_->abort(reason); }
  void wait_disconnected(std::function<void(const stream::Disconnected&)> ended) override {
    connection_->async_wait_disconnected([ended = std::move(ended)](const stream::Disconnected& how) { ended(how); });
  }

 private:
  std::shared_ptr<llp::Connection> connection_;
};

llp::EstablishedHandler told(LinkHandler handler) {
  return [handler = std::move(handler)](const Error& error, const std::shared_ptr<llp::Connection>& connection) {
    if (error.code == Errc::kOk) return handler(error, std::make_shared<OwnLink>(connection), {});
    const auto how = connection ? connection->disconnected() : std::nullopt;
    handler(error, nullptr, how ? cm::describe_end(connection->facts(), *how) : std::string());
  };
}

// As many Reads as the client admits, bounded by policy; policy alone where nothing is negotiated (no enhanced
// data, or 0x3FFF).
std::size_t ord_for(const Options& o, const llp::ConnectRequest& request) {
  const bool negotiated = request.enhanced() && request.peer_ird() != enhanced::kNoIrdOrdNegotiation;
  return negotiated ? std::min(o.policy.ord, request.peer_ird()) : o.policy.ord;
}

class OwnRequest final : public RdmaRequest {
 public:
  OwnRequest(std::weak_ptr<OwnStack> stack, std::unique_ptr<llp::ConnectRequest> request)
      : stack_(std::move(stack)), request_(std::move(request)) {}

  [[nodiscard]] tcp::endpoint remote() const override { return request_->remote(); }
  [[nodiscard]] ConstBytes private_data() const override { return request_->private_data(); }
  [[nodiscard]] cm::Engine& engine() const override { return request_->engine(); }
  [[nodiscard]] Result<void> move_to(cm::Engine& engine) override { return request_->move_to(engine); }
  [[nodiscard]] Result<std::unique_ptr<RdmaQueues>> make_queues(const Options& options) override {
    return std::unique_ptr<RdmaQueues>(
        std::make_unique<OwnQueues>(stack_, request_->engine(), options.stream, ord_for(options, *request_)));
  }
  void accept(RdmaQueues& queues, const Options& options, std::vector<std::byte> private_data,
              LinkHandler handler) override {
    request_->accept(static_cast<OwnQueues&>(queues).qp(),
                     {.ird = options.policy.ird,
                      .ord = options.policy.ord,
                      .private_data = std::move(private_data),
                      .mpa = options.stream},
                     told(std::move(handler)));
  }
  void reject() override { (void)request_->reject(); }

 private:
  const std::weak_ptr<OwnStack> stack_;
  const std::unique_ptr<llp::ConnectRequest> request_;
};

class OwnListener final : public RdmaListener {
 public:
  OwnListener(std::weak_ptr<OwnStack> stack, std::unique_ptr<llp::Listener> listener, RdmaProvider::Handlers handlers)
      : stack_(std::move(stack)), listener_(std::move(listener)), handlers_(std::move(handlers)) {
    accept_next();
  }

  [[nodiscard]] tcp::endpoint local() const override { return listener_->local(); }
  void change(const Options& options) override {
    (void)listener_->set_policy(options.policy);
    (void)listener_->set_packet_bytes(options.sctp_packet_bytes);
  }

 private:
  void accept_next() {
    listener_->accept(
        [this, alive = std::weak_ptr<bool>(alive_)](const Error& error, std::unique_ptr<llp::ConnectRequest> request) {
          if (alive.expired() || error.code != Errc::kOk) return;
          handlers_.request(std::make_shared<OwnRequest>(stack_, std::move(request)));
          if (!alive.expired()) accept_next();
        });
  }

  const std::weak_ptr<OwnStack> stack_;
  std::unique_ptr<llp::Listener> listener_;
  RdmaProvider::Handlers handlers_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace

class OwnStack final : public RdmaProvider, public std::enable_shared_from_this<OwnStack> {
 public:
  // `sctp`: what it is over; null: TCP.
  explicit OwnStack(std::unique_ptr<llp::LowerLayer> sctp) : sctp_(std::move(sctp)) {}

  [[nodiscard]] Result<std::unique_ptr<RdmaListener>> listen(cm::Engine& engine, const tcp::endpoint& at,
                                                             const Options& options, Handlers handlers) override {
    cm::ListenOptions o;
    o.endpoint = at;
    o.policy = options.policy;
    o.on_shortage = [](const Error& e) { spdlog::warn("short of resources: {}", e.why); };
    auto listener = over(engine)->listen(o, sctp_of(options));  // req: RFC8166-2.2.3-1 RFC8167-2-2
    if (!listener) return listener.error();
    return std::unique_ptr<RdmaListener>(
        std::make_unique<OwnListener>(weak_from_this(), *std::move(listener), std::move(handlers)));
  }
  [[nodiscard]] Result<std::unique_ptr<RdmaQueues>> make_queues(cm::Engine& engine, const Options& options) override {
    return std::unique_ptr<RdmaQueues>(
        std::make_unique<OwnQueues>(weak_from_this(), engine, options.stream, options.policy.ord));
  }
  // usrsctp is for one thread.
  [[nodiscard]] bool home_only() const override { return sctp_ != nullptr; }

  void connect(cm::Engine& engine, const std::shared_ptr<verbs::QueuePair>& qp, const RdmaTarget& to,
               const Options& options, LinkHandler handler) {
    cm::ConnectOptions o;
    o.host = to.server.host;
    o.port = to.server.port;
    o.policy = options.policy;
    if (sctp_ != nullptr) o.policy.startup_timeout = options.backend_timeout;
    o.mpa = options.stream;
    o.connect_timeout = options.backend_timeout;
    if (to.source) o.local = tcp::endpoint(*to.source, 0);
    o.private_data = to.private_data;
    over(engine)->connect(qp, o, sctp_of(options), told(std::move(handler)));  // req: RFC8166-2.2.3-1 RFC8167-2-2
  }

 private:
  // Over TCP each engine has its own, which may go when it has been used.
  [[nodiscard]] std::shared_ptr<llp::LowerLayer> over(cm::Engine& engine) const {
    return sctp_ != nullptr ? sctp_ : *llp::LowerLayer::make(engine, llp::Kind::kTcp);
  }
  static llp::SctpOptions sctp_of(const Options& options) { return {.packet_bytes = options.sctp_packet_bytes}; }

  const std::shared_ptr<llp::LowerLayer> sctp_;
};

OwnQueues::OwnQueues(std::weak_ptr<OwnStack> stack, cm::Engine& engine, const endpoint::Options& stream,
                     std::size_t ord)
    : stack_(std::move(stack)),
      engine_(engine),
      // req: RFC5042-6.4.3.2-2
      cq_(kSendDepth + kReceiveDepth, &engine),
      // req: RFC5042-6.1.1-3
      qp_(std::make_shared<verbs::QueuePair>(verbs::ProtectionDomain(engine.context()),
                                             qp_options(cq_, stream, kSendDepth, kReceiveDepth))),
      endpoint_(qp_,
                {.max_outstanding_reads = ord, .send_queue_depth = kSendDepth, .receive_queue_depth = kReceiveDepth}) {}

OwnQueues::~OwnQueues() {
  cq_.disarm();
}

std::size_t OwnQueues::poll(std::span<rpcrdma::Completion> to) {
  std::array<verbs::Completion, 32> batch;
  const std::size_t n = cq_.poll(std::span(batch).first(std::min(batch.size(), to.size())));
  for (std::size_t i = 0; i < n; ++i) to[i] = rpcrdma::VerbsEndpoint::translate(batch[i]);
  return n;
}

void OwnQueues::arm(std::function<void()> wake) {
  wake_ = std::move(wake);
  cq_.arm(verbs::CompletionQueue::Notify::kNext, *this);
}

void OwnQueues::notify(verbs::CompletionQueue&) noexcept {
  if (wake_) cm::AfterDrive::add(engine_.io(), std::exchange(wake_, {}));
}

void OwnQueues::connect(const RdmaTarget& to, const Options& options, LinkHandler handler) {
  const auto stack = stack_.lock();
  if (stack == nullptr) return handler(make_error(Errc::kAborted), nullptr, {});
  stack->connect(engine_, qp_, to, options, std::move(handler));
}

std::shared_ptr<RdmaProvider> own_stack() {
  static const auto stack = std::make_shared<OwnStack>(nullptr);
  return stack;
}

Parsed<std::shared_ptr<RdmaProvider>> open_sctp(cm::Engine& home) {
  auto layer = llp::LowerLayer::make(home, llp::Kind::kSctp);
  if (!layer) return {std::nullopt, std::string(layer.error().why)};
  return {std::make_shared<OwnStack>(*std::move(layer)), {}};
}

}  // namespace iwarp::gateway
