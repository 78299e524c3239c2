// RdmaProvider: a device of rdma-core.
#include <spdlog/spdlog.h>
#include <sys/resource.h>

#include <algorithm>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <cstring>
#include <utility>

#include "iwarp/cm/system_cause.h"
#include "iwarp/device/connection.h"
#include "iwarp/device/standing_listener.h"
#include "iwarp/gateway/rdma_provider.h"

namespace iwarp::gateway {
namespace {

using boost::asio::ip::tcp;

// The end as the sessions know it from our own stack.
stream::Disconnected as_of_stream(const device::End& end) {
  stream::Disconnected how;
  how.reason = end.reason;
  if (std::strcmp(end.reason.why, device::kLeft) == 0) how.reason.why = stream::kClosedHere;
  how.was_established = end.was_established;
  return how;
}

// All message buffers are locked in memory, and siw counts them against the limit even for root.
constexpr rlim_t kLittleLockedBytes = rlim_t{256} << 20;

void raise_limit_of_locked_memory() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0) return;
  const rlimit none{RLIM_INFINITY, RLIM_INFINITY};
  if (::setrlimit(RLIMIT_MEMLOCK, &none) == 0) return;
  limit.rlim_cur = limit.rlim_max;
  (void)::setrlimit(RLIMIT_MEMLOCK, &limit);
  if (limit.rlim_cur >= kLittleLockedBytes) return;
  spdlog::warn(
      "{} KiB of locked memory (RLIMIT_MEMLOCK) are few for an RDMA device: messages will have to wait; raise "
      "the limit (ulimit -l, LimitMEMLOCK=)",
      limit.rlim_cur >> 10);
}

// At most what the device has, and what fits the octet that carries it.
std::size_t depth(std::size_t wanted, int of_device) {
  return std::min({wanted, static_cast<std::size_t>(std::max(of_device, 0)), std::size_t{255}});
}

device::ConnectionTimes times_of(const Options& options) {
  device::ConnectionTimes times;
  times.establish = options.backend_timeout;
  return times;
}

class DeviceLink final : public RdmaLink {
 public:
  explicit DeviceLink(std::shared_ptr<device::Connection> connection) : connection_(std::move(connection)) {}

  [[nodiscard]] bool initiator() const override { return connection_->initiator(); }
  [[nodiscard]] tcp::endpoint remote() const override { return connection_->remote(); }
  [[nodiscard]] std::vector<std::byte> private_data() const override { return connection_->agreed().private_data; }
  [[nodiscard]] cm::Counters counters() const override {
    const device::Traffic& t = connection_->endpoint().traffic();
    cm::Counters c;
    c.tx.sends = t.sends;
    c.tx.send_bytes = t.send_bytes;
    c.tx.writes = t.writes;
    c.tx.write_bytes = t.write_bytes;
    c.tx.reads = t.reads;
    c.rx.read_response_bytes = t.read_bytes;
    c.rx.sends = t.receives;
    c.rx.send_bytes = t.receive_bytes;
    return c;
  }
  [[nodiscard]] std::string to_string() const override {
    return "local=" + cm::to_string(connection_->local()) + " peer=" + cm::to_string(connection_->remote()) +
           " role=" + (connection_->initiator() ? "initiator" : "responder") +
           " device=" + connection_->device().name() + " ird=" + std::to_string(connection_->agreed().ird) +
           " ord=" + std::to_string(connection_->agreed().ord);
  }
  void disconnect() override { connection_->disconnect(); }
  using RdmaLink::abort;
  void abort(const Error& reason) override { connection_->abort(reason); }
  void wait_disconnected(std::function<void(const stream::Disconnected&)> ended) override {
    connection_->on_end([ended = std::move(ended)](const device::End& end) { ended(as_of_stream(end)); });
  }

 private:
  std::shared_ptr<device::Connection> connection_;
};

class DeviceQueues final : public RdmaQueues {
 public:
  DeviceQueues(cm::Engine& engine, std::shared_ptr<device::Connection> connection)
      : connection_(std::move(connection)), resolver_(engine.io()) {}
  ~DeviceQueues() override { close(); }
  DeviceQueues(const DeviceQueues&) = delete;
  DeviceQueues& operator=(const DeviceQueues&) = delete;

  [[nodiscard]] const std::shared_ptr<device::Connection>& connection() const { return connection_; }

  [[nodiscard]] rpcrdma::Endpoint& endpoint() override { return connection_->endpoint(); }
  [[nodiscard]] rpcrdma::Registrar& registrar() override { return connection_->endpoint(); }
  [[nodiscard]] Result<void> flush() override { return connection_->endpoint().flush(); }
  [[nodiscard]] std::size_t poll(std::span<rpcrdma::Completion> to) override { return connection_->poll(to); }
  void arm(std::function<void()> wake) override { connection_->arm(std::move(wake)); }
  void disarm() override { connection_->disarm(); }
  void close() override {
    resolver_.cancel();
    connection_->abort(make_error(Errc::kAborted));
  }
  [[nodiscard]] bool remote_invalidation() const override { return false; }
  [[nodiscard]] bool pins_memory() const override { return true; }

  void connect(const RdmaTarget& to, const Options& options, LinkHandler handler) override {
    const ibv_device_attr& has = connection_->device().attributes();
    device::Agreement agreement{depth(options.policy.ird, has.max_qp_rd_atom),
                                depth(options.policy.ord, has.max_qp_init_rd_atom), to.private_data};
    std::optional<tcp::endpoint> from;
    if (to.source) from.emplace(*to.source, 0);
    auto go = [connection = connection_, from, agreement = std::move(agreement)](const tcp::endpoint& server,
                                                                                 LinkHandler then) mutable {
      connection->connect(server, from, std::move(agreement), told(connection, std::move(then)));
    };
    boost::system::error_code no_address;
    const auto address = boost::asio::ip::make_address(to.server.host, no_address);
    if (!no_address) return go({address, to.server.port}, std::move(handler));
    // The first address that its name has: devices have a way to it, or have none to any.
    resolver_.async_resolve(to.server.host, std::to_string(to.server.port),
                            [go = std::move(go), handler = std::move(handler)](
                                boost::system::error_code ec, const tcp::resolver::results_type& found) mutable {
                              if (ec) return handler(cm::resolve_error(ec), nullptr, {});
                              go(found.begin()->endpoint(), std::move(handler));
                            });
  }

  static device::Connection::Established told(const std::shared_ptr<device::Connection>& connection,
                                              LinkHandler handler) {
    return [weak = std::weak_ptr(connection), handler = std::move(handler)](const Error& error) {
      const auto self = weak.lock();
      handler(error, error.code == Errc::kOk && self ? std::make_shared<DeviceLink>(self) : nullptr, {});
    };
  }

 private:
  std::shared_ptr<device::Connection> connection_;
  tcp::resolver resolver_;
};

class DeviceRequest final : public RdmaRequest {
 public:
  DeviceRequest(cm::Engine& engine, std::unique_ptr<device::Request> request)
      : engine_(&engine), request_(std::move(request)), private_data_(request_->private_data()) {}

  [[nodiscard]] tcp::endpoint remote() const override { return request_->remote(); }
  [[nodiscard]] ConstBytes private_data() const override { return private_data_; }
  [[nodiscard]] cm::Engine& engine() const override { return *engine_; }
  [[nodiscard]] Result<void> move_to(cm::Engine& engine) override {
    engine_ = &engine;
    return {};
  }
  [[nodiscard]] Result<std::unique_ptr<RdmaQueues>> make_queues(const Options& options) override {
    const auto& device = request_->device();
    ord_ = std::min(depth(options.policy.ord, device->attributes().max_qp_init_rd_atom), request_->peer_ird());
    auto made = device::Connection::make(engine_->io(), device, request_->take(), ord_);
    if (!made) return made.error();
    if (auto ok = (*made)->make_queue_pair(); !ok) return ok.error();
    return std::unique_ptr<RdmaQueues>(std::make_unique<DeviceQueues>(*engine_, std::move(*made)));
  }
  void accept(RdmaQueues& queues, const Options& options, std::vector<std::byte> private_data,
              LinkHandler handler) override {
    const auto& connection = static_cast<DeviceQueues&>(queues).connection();
    const int most = connection->device().attributes().max_qp_rd_atom;
    const std::size_t ird = std::min(depth(options.policy.ird, most), request_->peer_ord());
    connection->accept({ird, ord_, std::move(private_data)}, DeviceQueues::told(connection, std::move(handler)));
  }
  void reject() override { request_->reject(); }

 private:
  cm::Engine* engine_;
  std::unique_ptr<device::Request> request_;
  std::vector<std::byte> private_data_;
  std::size_t ord_ = 0;
};

class DeviceListener final : public RdmaListener {
 public:
  explicit DeviceListener(std::unique_ptr<device::StandingListener> listener) : listener_(std::move(listener)) {}
  [[nodiscard]] tcp::endpoint local() const override { return listener_->local(); }
  void change(const Options&) override {}  // MPA is the device's business

 private:
  std::unique_ptr<device::StandingListener> listener_;
};

class DeviceProvider final : public RdmaProvider {
 public:
  DeviceProvider(boost::asio::io_context& home, std::shared_ptr<device::StandingDevice> device)
      : home_(home), device_(std::move(device)) {}
  ~DeviceProvider() override { device_->close(); }
  DeviceProvider(const DeviceProvider&) = delete;
  DeviceProvider& operator=(const DeviceProvider&) = delete;

  [[nodiscard]] Result<std::unique_ptr<RdmaListener>> listen(cm::Engine& engine, const tcp::endpoint& at,
                                                             const Options&, Handlers handlers) override {
    device::StandingListener::Handlers h;
    h.request = [&engine, request = std::move(handlers.request)](std::unique_ptr<device::Request> one) {
      request(std::make_shared<DeviceRequest>(engine, std::move(one)));
    };
    h.lost = std::move(handlers.lost);
    h.back = std::move(handlers.back);
    auto listener = device::StandingListener::listen(engine.io(), device_, at, std::move(h));  // req: RFC8166-2.2.3-1
    if (!listener) return listener.error();
    engine.start();
    return std::unique_ptr<RdmaListener>(std::make_unique<DeviceListener>(std::move(*listener)));
  }

  [[nodiscard]] Result<std::unique_ptr<RdmaQueues>> make_queues(cm::Engine& engine, const Options& options) override {
    const std::shared_ptr<device::Device> device = device_->current();
    if (device->gone()) {  // perhaps it is back: for who comes next
      boost::asio::post(home_, [standing = device_] { (void)standing->look(); });
      return make_error(Errc::kSystem, "the RDMA device is gone");
    }
    auto id = device::CmId::make(device->verbs());
    if (!id) return id.error();
    const std::size_t ord = depth(options.policy.ord, device->attributes().max_qp_init_rd_atom);
    auto made = device::Connection::make(engine.io(), device, std::move(*id), ord, times_of(options));
    if (!made) return made.error();
    return std::unique_ptr<RdmaQueues>(std::make_unique<DeviceQueues>(engine, std::move(*made)));
  }

 private:
  boost::asio::io_context& home_;
  std::shared_ptr<device::StandingDevice> device_;
};

}  // namespace

Parsed<std::shared_ptr<RdmaProvider>> open_device(cm::Engine& home, const std::string& name) {
  const device::LoadedTable& loaded = device::load_verbs();
  if (loaded.table == nullptr) return {std::nullopt, loaded.error};
  raise_limit_of_locked_memory();
  auto opened = device::StandingDevice::open(*loaded.table, home.io(), name);
  if (!opened.device) return {std::nullopt, opened.error};
  return {std::make_shared<DeviceProvider>(home.io(), std::move(opened.device)), {}};
}

}  // namespace iwarp::gateway
