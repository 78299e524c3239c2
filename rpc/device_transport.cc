#include "iwarp/rpc/device_transport.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <mutex>
#include <utility>
#include <vector>

#include "iwarp/cm/system_cause.h"
#include "iwarp/device/standing_listener.h"
#include "iwarp/rpc/device_channel.h"
#include "iwarp/rpc/rdma_device.h"

namespace iwarp::rpc {
namespace {

using boost::asio::ip::tcp;

HomeDevice& home_of(RdmaDevice& device) {
  return static_cast<HomeDevice&>(device);
}

// At most what the device has, and what fits the octet that carries it.
std::size_t depth(std::size_t wanted, int of_device) {
  return std::min({wanted, static_cast<std::size_t>(std::max(of_device, 0)), std::size_t{255}});
}

// A connection on its way to a server. In the thread of the engine.
class Attempt final : public std::enable_shared_from_this<Attempt> {
 public:
  Attempt(std::shared_ptr<RdmaDevice> device, const DeviceTarget& server, ConstBytes announce,
          ClientTransport::Connected connected)
      : device_(std::move(device)),
        server_(server),
        announce_(announce.begin(), announce.end()),
        connected_(std::move(connected)),
        resolver_(home().io()) {}

  void begin() {
    if (over_) return;
    if (server_.port == 0) return tell(make_error(Errc::kInvalidArgument, "DeviceTarget::port is 1 to 65535"), nullptr);
    boost::system::error_code no_address;
    const auto address = boost::asio::ip::make_address(server_.host, no_address);
    if (!no_address) {
      addresses_.emplace_back(address, server_.port);
      return go_on({});
    }
    resolver_.async_resolve(
        server_.host, std::to_string(server_.port),
        [self = shared_from_this()](boost::system::error_code ec, const tcp::resolver::results_type& found) {
          if (ec) return self->tell(cm::resolve_error(ec), nullptr);
          for (const auto& entry : found) self->addresses_.push_back(entry.endpoint());
          self->go_on(make_error(Errc::kSystem, "the name of the server has no address"));
        });
  }

  void cancel() {
    if (over_) return;
    resolver_.cancel();
    if (connection_) {
      const std::lock_guard lock(connection_->mutex());
      connection_->abort(make_error(Errc::kAborted));
    }
    tell(make_error(Errc::kAborted), nullptr);
  }

 private:
  [[nodiscard]] HomeDevice& home() { return home_of(*device_); }

  // The next address, where there is one.
  void go_on(const Error& last) {
    if (over_) return;
    if (next_ == addresses_.size()) return tell_later(last);
    if (auto begun = connect(addresses_[next_++]); !begun) tell_later(begun.error());
  }

  [[nodiscard]] Result<void> connect(const tcp::endpoint& to) {
    (void)home().standing()->look();
    const std::shared_ptr<device::Device> device = home().standing()->current();
    auto id = device::CmId::make(device->verbs());
    if (!id) return id.error();
    const ibv_device_attr& has = device->attributes();
    device::Agreement agreement{depth(server_.ird, has.max_qp_rd_atom), depth(server_.ord, has.max_qp_init_rd_atom),
                                announce_};
    device::ConnectionTimes times;
    times.establish = server_.timeout;
    auto made = device::Connection::make(home().io(), device, std::move(*id), agreement.ord, times);
    if (!made) return made.error();
    connection_ = std::move(*made);
    std::optional<tcp::endpoint> from;
    if (server_.local) from.emplace(*server_.local, 0);
    const std::lock_guard lock(connection_->mutex());
    // The connection is this object's, and not the other way round.
    connection_->connect(to, from, std::move(agreement), [weak = weak_from_this()](const Error& error) {
      if (const auto self = weak.lock()) self->on_connected(error);
    });
    return {};
  }

  void on_connected(const Error& error) {
    const auto connection = std::exchange(connection_, nullptr);
    if (over_) return;
    if (error) return go_on(error);
    auto channel = std::make_unique<DeviceChannel>(connection, connection->agreed().private_data);
    channel->end_watch()();
    tell({}, std::move(channel));
  }

  void tell_later(const Error& error) {
    boost::asio::post(home().io(), [self = shared_from_this(), error] { self->tell(error, nullptr); });
  }
  void tell(const Error& error, std::unique_ptr<Channel> channel) {
    if (std::exchange(over_, true)) return;
    std::exchange(connected_, {})(error, std::move(channel));
  }

  const std::shared_ptr<RdmaDevice> device_;
  const DeviceTarget server_;
  const std::vector<std::byte> announce_;
  ClientTransport::Connected connected_;
  tcp::resolver resolver_;
  std::vector<tcp::endpoint> addresses_;
  std::size_t next_ = 0;  // of them
  std::shared_ptr<device::Connection> connection_;
  bool over_ = false;
};

class DeviceClient final : public ClientTransport {
 public:
  DeviceClient(std::shared_ptr<RdmaDevice> device, DeviceTarget server)
      : device_(std::move(device)), server_(std::move(server)) {}
  ~DeviceClient() override { cancel(); }
  DeviceClient(const DeviceClient&) = delete;
  DeviceClient& operator=(const DeviceClient&) = delete;

  void connect(ConstBytes announce, Connected connected) override {
    auto attempt = std::make_shared<Attempt>(device_, server_, announce, std::move(connected));
    {
      const std::lock_guard lock(mu_);
      under_way_ = attempt;  // until the next
    }
    // Never here: the caller is inside connect().
    boost::asio::post(home_of(*device_).io(), [attempt] { attempt->begin(); });
  }
  void cancel() override {
    std::shared_ptr<Attempt> attempt;
    {
      const std::lock_guard lock(mu_);
      attempt = std::move(under_way_);
    }
    // Nor here, where the caller may hold a lock that `connected` takes.
    if (attempt) boost::asio::post(home_of(*device_).io(), [attempt] { attempt->cancel(); });
  }
  [[nodiscard]] bool remote_invalidation() const override { return false; }

 private:
  const std::shared_ptr<RdmaDevice> device_;
  const DeviceTarget server_;
  std::mutex mu_;
  std::shared_ptr<Attempt> under_way_;
};

class Listening final : public DeviceServer, public std::enable_shared_from_this<Listening> {
 public:
  Listening(std::shared_ptr<RdmaDevice> device, const DeviceAddress& where)
      : device_(std::move(device)), where_(where) {}
  ~Listening() override { stop(); }
  Listening(const Listening&) = delete;
  Listening& operator=(const Listening&) = delete;

  [[nodiscard]] tcp::endpoint local() const override { return local_; }
  [[nodiscard]] Result<void> listen(Come come) override {
    if (!home().engine().context()->alive()) return make_error(Errc::kInvalidArgument, "device used after fork()");
    const auto listener = listener_;
    Result<void> out;
    home().run([&] {
      auto made = device::StandingListener::listen(
          home().io(), home().standing(), where_.endpoint,
          {[weak = weak_from_this(), come = std::move(come)](std::unique_ptr<device::Request> request) {
             if (const auto self = weak.lock()) self->on_request(*request, come);
           },
           {},
           {}});
      if (made) {
        local_ = (*made)->local();
        *listener = std::move(*made);
      } else {
        out = made.error();
      }
    });
    return out;
  }
  void stop() override {
    home().post([listener = listener_] { listener->reset(); });
  }

 private:
  [[nodiscard]] HomeDevice& home() { return home_of(*device_); }

  void on_request(device::Request& request, const Come& come) {
    const std::shared_ptr<device::Device> device = request.device();
    const ibv_device_attr& has = device->attributes();
    const std::size_t ord = std::min(depth(where_.ord, has.max_qp_init_rd_atom), request.peer_ird());
    const std::size_t ird = std::min(depth(where_.ird, has.max_qp_rd_atom), request.peer_ord());
    auto made = device::Connection::make(home().io(), device, request.take(), ord);
    if (!made || !(*made)->make_queue_pair()) return;  // refused
    const std::shared_ptr<device::Connection> connection = *std::move(made);
    Incoming incoming;
    auto channel = std::make_unique<DeviceChannel>(connection, request.private_data());
    incoming.accept = [connection, ird, ord, end = channel->end_watch()](
                          ConstBytes announce, std::function<void(const Error&)> established) {
      const std::lock_guard lock(connection->mutex());
      connection->accept({ird, ord, {announce.begin(), announce.end()}},
                         [end, established = std::move(established)](const Error& error) {
                           if (!error) end();
                           established(error);
                         });
    };
    incoming.channel = std::move(channel);
    come(std::move(incoming));
  }

  const std::shared_ptr<RdmaDevice> device_;
  const DeviceAddress where_;
  tcp::endpoint local_;
  // In the thread of the engine.
  const std::shared_ptr<std::unique_ptr<device::StandingListener>> listener_ =
      std::make_shared<std::unique_ptr<device::StandingListener>>();
};

}  // namespace

std::shared_ptr<ClientTransport> over_device(std::shared_ptr<RdmaDevice> device, DeviceTarget server) {
  return std::make_shared<DeviceClient>(std::move(device), std::move(server));
}

std::shared_ptr<DeviceServer> on_device(std::shared_ptr<RdmaDevice> device, DeviceAddress where) {
  return std::make_shared<Listening>(std::move(device), where);
}

}  // namespace iwarp::rpc
