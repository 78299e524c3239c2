#include "iwarp/rpc/iwarp_transport.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <utility>
#include <vector>

#include "iwarp/cm/after_drive.h"
#include "iwarp/cm/link.h"
#include "iwarp/rpcrdma/verbs_endpoint.h"
#include "iwarp/verbs/queue_pair.h"

namespace iwarp::rpc {
namespace {

constexpr std::size_t kSendDepth = 128;
constexpr std::size_t kReceiveDepth = 256;

verbs::QueuePair::Options qp_options(verbs::CompletionQueue& cq, endpoint::Options stream) {
  stream.sq_depth = kSendDepth;
  stream.rq_depth = kReceiveDepth;
  return {.send_cq = &cq, .recv_cq = &cq, .stream = stream};
}

class IwarpChannel final : public Channel, public verbs::Notifier {
 public:
  // `ord`: RDMA Reads that this side may have outstanding.
  IwarpChannel(cm::Engine& engine, const endpoint::Options& stream, std::size_t ord)
      : io_(engine.io()),
        cq_(kSendDepth + kReceiveDepth, &engine),
        // A Protection Domain for each. req: RFC5042-6.1.1-3
        link_(std::make_shared<verbs::QueuePair>(verbs::ProtectionDomain(engine.context()), qp_options(cq_, stream))),
        endpoint_(
            link_.qp(),
            {.max_outstanding_reads = ord, .send_queue_depth = kSendDepth, .receive_queue_depth = kReceiveDepth}) {}
  ~IwarpChannel() override {
    cq_.disarm();
    link_.reset();
  }

  [[nodiscard]] const std::shared_ptr<verbs::QueuePair>& qp() const { return link_.qp(); }
  void set_peer(std::vector<std::byte> data, const boost::asio::ip::tcp::endpoint& address) {
    peer_data_ = std::move(data);
    peer_ = address.address().to_string();
    peer_port_ = address.port();
  }

  [[nodiscard]] rpcrdma::Endpoint& endpoint() override { return endpoint_; }
  [[nodiscard]] rpcrdma::Registrar& registrar() override { return endpoint_; }
  [[nodiscard]] ConstBytes peer_data() const override { return peer_data_; }
  [[nodiscard]] const std::string& peer() const override { return peer_; }
  [[nodiscard]] std::uint16_t peer_port() const override { return peer_port_; }
  [[nodiscard]] Result<void> flush() override {
    if (closed_) return make_error(Errc::kNotConnected);
    return endpoint_.flush();
  }
  std::size_t poll(std::span<rpcrdma::Completion> into) override {
    const std::size_t n = cq_.poll(std::span(polled_).first(std::min(into.size(), polled_.size())));
    for (std::size_t i = 0; i < n; ++i) into[i] = rpcrdma::VerbsEndpoint::translate(polled_[i]);
    return n;
  }
  void set_wake(std::function<void()> wake) override {
    wake_ = std::make_shared<const std::function<void()>>(std::move(wake));
  }
  void arm() override {
    if (closed_) return;
    cq_.arm(verbs::CompletionQueue::Notify::kNext, *this);
    armed_.store(true, std::memory_order_relaxed);  // maybe told already: then disarm() does so in vain
  }
  void disarm() override {
    if (armed_.exchange(false, std::memory_order_relaxed)) cq_.disarm();
  }
  void close() override {
    if (std::exchange(closed_, true)) return;
    cq_.disarm();
    qp()->leave(verbs::QueuePair::Unfinished::kFlushed);
  }

  // verbs::Notifier
  void notify(verbs::CompletionQueue&) noexcept override {
    armed_.store(false, std::memory_order_relaxed);
    cm::AfterDrive::add(io_, [wake = wake_] { (*wake)(); });
  }

 private:
  boost::asio::io_context& io_;
  verbs::CompletionQueue cq_;
  cm::Link link_;
  rpcrdma::VerbsEndpoint endpoint_;
  std::vector<std::byte> peer_data_;
  std::string peer_;
  std::uint16_t peer_port_ = 0;
  std::shared_ptr<const std::function<void()>> wake_;
  std::array<verbs::Completion, 32> polled_;  // of poll(): here it is made once
  std::atomic<bool> armed_{false};
  bool closed_ = false;
};

// For std::function, which copies.
using Parcel = std::shared_ptr<std::unique_ptr<IwarpChannel>>;

Parcel pack(std::unique_ptr<IwarpChannel> channel) {
  return std::make_shared<std::unique_ptr<IwarpChannel>>(std::move(channel));
}

class IwarpClient final : public ClientTransport {
 public:
  IwarpClient(cm::Engine& engine, cm::ConnectOptions server, const stream::Options& stream)
      : engine_(engine), server_(std::move(server)), stream_(stream) {
    server_.mpa = stream;
  }

  void connect(ConstBytes announce, Connected connected) override {
    cm::ConnectOptions options = server_;
    options.private_data.assign(announce.begin(), announce.end());
    const auto channel = pack(std::make_unique<IwarpChannel>(engine_, stream_, options.policy.ord));
    auto canceller = std::make_shared<cm::Canceller>();
    {
      const std::lock_guard lock(mu_);
      under_way_ = canceller;
    }
    cm::connect(
        engine_, (*channel)->qp(), std::move(options),
        [channel, connected = std::move(connected)](const Error& error, const std::shared_ptr<cm::Connection>& made) {
          if (error) return connected(error, nullptr);
          (*channel)->set_peer(made->private_data(), made->remote());
          connected({}, std::move(*channel));
        },
        canceller);
  }
  void cancel() override {
    std::shared_ptr<cm::Canceller> canceller;
    {
      const std::lock_guard lock(mu_);
      canceller = std::move(under_way_);
    }
    if (canceller) canceller->cancel();
  }

 private:
  cm::Engine& engine_;
  cm::ConnectOptions server_;
  const endpoint::Options stream_;
  std::mutex mu_;
  std::shared_ptr<cm::Canceller> under_way_;
};

// As many Reads as the client admits, bounded by policy; policy alone where nothing is negotiated.
std::size_t ord_for(const mpa::Policy& policy, const cm::ConnectRequest& request) {
  const bool negotiated = request.enhanced() && request.peer_ird() != mpa::kNoIrdOrdNegotiation;
  return negotiated ? std::min(policy.ord, request.peer_ird()) : policy.ord;
}

class IwarpListener final : public IwarpServer, public std::enable_shared_from_this<IwarpListener> {
 public:
  IwarpListener(cm::Engine& engine, cm::ListenOptions where, const stream::Options& stream)
      : engine_(engine), where_(std::move(where)), stream_(stream) {}
  ~IwarpListener() override { stop(); }

  [[nodiscard]] boost::asio::ip::tcp::endpoint local() const override { return local_; }
  [[nodiscard]] Result<void> listen(Come come) override {
    auto made = cm::Listener::listen(engine_, where_);
    if (!made) return made.error();
    local_ = (*made)->local();
    come_ = std::move(come);
    {
      const std::lock_guard lock(mu_);
      listener_ = std::move(*made);
    }
    accept_next();
    return {};
  }
  void stop() override {
    std::unique_ptr<cm::Listener> ended;  // goes without the lock
    const std::lock_guard lock(mu_);
    ended.swap(listener_);
  }

 private:
  void accept_next() {
    const std::lock_guard lock(mu_);
    if (!listener_) return;
    listener_->accept([weak = weak_from_this()](const Error& error, std::unique_ptr<cm::ConnectRequest> request) {
      const auto self = weak.lock();
      if (!self || error) return;
      self->on_request(std::move(request));
      self->accept_next();
    });
  }
  void on_request(std::shared_ptr<cm::ConnectRequest> request) {
    auto channel = std::make_unique<IwarpChannel>(request->engine(), stream_, ord_for(where_.policy, *request));
    channel->set_peer(request->private_data(), request->remote());
    Incoming incoming;
    incoming.accept = [request, qp = channel->qp(), policy = where_.policy, mpa = stream::MpaOptions(stream_)](
                          ConstBytes announce, std::function<void(const Error&)> established) {
      request->accept(
          qp, {.ird = policy.ird, .ord = policy.ord, .private_data = {announce.begin(), announce.end()}, .mpa = mpa},
          [established = std::move(established)](const Error& error, const std::shared_ptr<cm::Connection>&) {
            established(error);
          });
    };
    incoming.channel = std::move(channel);
    come_(std::move(incoming));
  }

  cm::Engine& engine_;
  const cm::ListenOptions where_;
  const stream::Options stream_;
  boost::asio::ip::tcp::endpoint local_;
  Come come_;
  std::mutex mu_;
  std::unique_ptr<cm::Listener> listener_;
};

}  // namespace

std::shared_ptr<ClientTransport> over_iwarp(cm::Engine& engine, cm::ConnectOptions server, stream::Options stream) {
  return std::make_shared<IwarpClient>(engine, std::move(server), stream);
}

std::shared_ptr<IwarpServer> on_iwarp(cm::Engine& engine, cm::ListenOptions where, stream::Options stream) {
  return std::make_shared<IwarpListener>(engine, std::move(where), stream);
}

}  // namespace iwarp::rpc
