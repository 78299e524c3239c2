#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <mutex>
#include <optional>

#include "tools/perf/rdma_tests.h"
#include "tools/perf/rpc_tests.h"

namespace iwarp::tools::perf {
namespace {

class RdmaPassive final : public Passive {
 public:
  RdmaPassive(const Spec& spec, const std::string& host) : spec_(spec), engine_(mode_of(spec)) {
    cm::ListenOptions o;
    o.endpoint = {boost::asio::ip::make_address(host), 0};
    o.policy = policy_of(spec);
    o.socket.congestion_control = spec.congestion;
    pd_.emplace(engine_.context());
    engine_.set_tap_maker(tap_maker);
    layer_ = lower_layer_of(spec, engine_);
    auto listener = layer_->listen(o);
    if (!listener) throw std::runtime_error(std::string("cannot listen on ") + host + ": " + listener.error().why);
    listener_ = std::move(*listener);
  }

  ~RdmaPassive() override { close(); }

  [[nodiscard]] std::uint16_t port() const override { return listener_->local().port(); }

  void serve(const std::atomic<bool>& stop) override {
    if (spec_.test == Test::kConnectRate) return serve_connects(stop);
    const auto request = next(stop);
    if (!request) return;
    const bool send = spec_.test == Test::kSendBw || spec_.test == Test::kSendRate;
    const bool ping = spec_.test == Test::kSendLat;
    RdmaSide side(spec_, engine_, send ? send_credits(spec_) : ping ? kLatencyReceives : 0);
    const std::size_t slot = std::max<std::size_t>(spec_.size, send ? kNoteBytes : 1);
    const std::size_t receives = send ? send_credits(spec_) : ping ? kLatencyReceives : 0;
    for (std::size_t i = 0; i < receives; ++i) side.post_receive(i, side.slice(i * slot, slot));
    side.accept(*request);
    if (send) return send_passive(side, stop);
    if (ping || spec_.test == Test::kWriteLat) return latency_passive(side, stop);
    bulk_passive(side, stop);
  }

 private:
  std::unique_ptr<llp::ConnectRequest> next(const std::atomic<bool>& stop) {
    Told<std::unique_ptr<llp::ConnectRequest>> told;
    listener_->accept(told.handler());
    auto accepted = told.result();
    while (!ready(engine_, spec_.manual, accepted)) {
      if (stop) return nullptr;
    }
    auto [error, request] = accepted.get();
    if (error.code != Errc::kOk) throw std::runtime_error(std::string("cannot accept over iWARP: ") + error.why);
    return std::move(request);
  }

  void serve_connects(const std::atomic<bool>& stop) {
    if (spec_.manual) {
      while (const auto request = next(stop)) take(*request);
      return;
    }
    accept_further();
    stop.wait(false);
    close();
  }

  // It may wait for the engine's thread, which may be about to take the lock.
  void close() {
    std::unique_ptr<llp::Listener> going;  // goes behind the lock
    const std::lock_guard lock(mu_);
    going.swap(listener_);
  }

  // In an engine thread, but for the first time.
  void accept_further() {
    const std::lock_guard lock(mu_);
    if (listener_ == nullptr) return;
    listener_->accept([this](const Error& error, const std::unique_ptr<llp::ConnectRequest>& request) {
      if (error.code != Errc::kOk) return;
      take(*request);
      accept_further();
    });
  }

  // The engine keeps the connection until the peer resets it.
  void take(llp::ConnectRequest& request) {
    auto qp = std::make_shared<verbs::QueuePair>(
        *pd_, verbs::QueuePair::Options{.send_cq = &unused_, .recv_cq = &unused_, .stream = {}});
    request.accept(std::move(qp), {}, [](const Error&, const std::shared_ptr<llp::Connection>&) {});
  }

  Spec spec_;
  verbs::CompletionQueue unused_{64};  // of the connections of connect_rate, which live as long as the engine
  std::mutex mu_;                      // guards listener_ in connect_rate
  std::unique_ptr<llp::Listener> listener_;
  std::optional<verbs::ProtectionDomain> pd_;
  cm::Engine engine_;  // goes before these: until then its threads may be in take()
  LayerHandle layer_;
};

}  // namespace

std::unique_ptr<Passive> listen_rdma(const Spec& spec, const std::string& host) {
  if (is_rpc(spec.test)) return rpc_passive(spec, host);
  return std::make_unique<RdmaPassive>(spec, host);
}

std::unique_ptr<Active> connect_rdma(const Spec& spec, const std::string& host, std::uint16_t port) {
  switch (spec.test) {
    case Test::kSendBw:
    case Test::kSendRate:
      return send_active(spec, host, port);
    case Test::kSendLat:
    case Test::kWriteLat:
    case Test::kReadLat:
      return latency_active(spec, host, port);
    case Test::kConnectRate:
      return connect_active(spec, host, port);
    case Test::kRpcNull:
    case Test::kRpcRead:
    case Test::kRpcWrite:
      return rpc_active(spec, host, port);
    default:
      return bulk_active(spec, host, port);
  }
}

}  // namespace iwarp::tools::perf
