#include "tools/perf/rdma_tests.h"

namespace iwarp::tools::perf {
namespace {

using Clock = std::chrono::steady_clock;

class Connects final : public Active {
 public:
  Connects(const Spec& spec, const std::string& host, std::uint16_t port) : spec_(spec), engine_(mode_of(spec)) {
    options_.host = host;
    options_.port = port;
    options_.policy = policy_of(spec);
    options_.mpa = stream_of(spec);
    options_.socket.congestion_control = spec.congestion;
    engine_.set_tap_maker(tap_maker);
    layer_ = lower_layer_of(spec, engine_);
  }

  Sample run(std::chrono::nanoseconds duration) override {
    Sample s;
    const auto begin = Clock::now();
    for (; Clock::now() < begin + duration; ++s.operations) one();
    s.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    return s;
  }
  void verify() override { one(); }

 private:
  void one() {
    auto qp = std::make_shared<verbs::QueuePair>(
        pd_, verbs::QueuePair::Options{.send_cq = &cq_, .recv_cq = &cq_, .stream = stream_of(spec_)});
    Joined told;
    layer_->connect(qp, options_, told.handler());
    const auto [error, connection] = await(engine_, spec_.manual, told.result());
    if (error.code != Errc::kOk) throw std::runtime_error(std::string("cannot connect over iWARP: ") + error.why);
    qp->abort();  // with RST, so that no port stays in TIME_WAIT
  }

  Spec spec_;
  cm::Engine engine_;
  cm::ConnectOptions options_;
  verbs::ProtectionDomain pd_{engine_.context()};
  verbs::CompletionQueue cq_{64, &engine_};
  LayerHandle layer_;
};

}  // namespace

std::unique_ptr<Active> connect_active(const Spec& spec, const std::string& host, std::uint16_t port) {
  return std::make_unique<Connects>(spec, host, port);
}

}  // namespace iwarp::tools::perf
