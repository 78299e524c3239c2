#include <algorithm>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/address.hpp>
#include <condition_variable>
#include <mutex>
#include <nlohmann/json.hpp>

#include "iwarp/rpc/client.h"
#include "iwarp/rpc/iwarp_transport.h"
#include "iwarp/rpc/server.h"
#include "tools/perf/rdma_side.h"
#include "tools/perf/rpc_program.h"
#include "tools/perf/rpc_tests.h"

namespace iwarp::tools::perf {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr std::uint32_t kSeed = 11;

// For Calls, and for Replies: of all that may be outstanding, and one.
std::size_t memory_for(const Spec& spec) {
  return std::max<std::size_t>(64U << 20, (std::size_t{spec.depth} + 1) * (std::size_t{spec.size} + 65536));
}

std::size_t longest_message(const Spec& spec) {
  return std::size_t{spec.size} + kRpcHeadBytes;
}

// What `make` makes, once for all that live at a time and were asked for with the same words.
template <class T, class Make>
std::shared_ptr<T> shared(const std::string& words, const Make& make) {
  static std::mutex mu;
  static std::string of;
  static std::weak_ptr<T> last;
  const std::lock_guard lock(mu);
  auto there = last.lock();
  if (there && of == words) return there;
  there = make();
  of = words;
  last = there;
  return there;
}

std::string words_of(const Spec& spec, const std::string& host) {
  return host + nlohmann::json(spec).dump();
}

// Of all active ends of a test.
struct ClientEngine {
  ClientEngine() { engine.set_tap_maker(tap_maker); }
  cm::Engine engine;
  std::atomic<bool> led{false};  // one of their threads does its I/O; all of them would wake one another
};

class RpcActive final : public Active {
 public:
  RpcActive(const Spec& spec, const std::string& host, std::uint16_t port)
      : spec_(spec),
        use_(spec),
        end_(shared<ClientEngine>(words_of(spec, host), [] { return std::make_shared<ClientEngine>(); })),
        client_(end_->engine, rpc::over_iwarp(end_->engine, server_at(host, port), stream_of(spec)), options()) {
    const auto there = client_.call({kRpcProgram, kRpcVersion, kRpcNull}, {});  // connects
    if (!there) throw std::runtime_error(std::string("cannot connect over iWARP: ") + there.error().why);
  }

  Sample run(std::chrono::nanoseconds duration) override {
    const auto begin = Clock::now();
    end_at_ = begin + duration;
    operations_ = 0;
    under_way_ = spec_.depth;
    for (std::uint32_t i = 0; i < spec_.depth; ++i) call_next();
    wait();
    Sample s;
    s.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    if (interrupted) throw std::runtime_error("interrupted");
    if (const std::lock_guard lock(mu_); !failure_.empty()) throw std::runtime_error(failure_);
    s.operations = operations_;
    s.octets = s.operations * use_.payload();
    return s;
  }

  void verify() override {
    const auto reply = client_.call(use_.procedure(), use_.arguments(kSeed), limits());
    if (!reply) throw std::runtime_error(std::string("RPC over iWARP: ") + reply.error().why);
    if (!reply->success() || !use_.answered(reply->results(), kSeed))
      throw std::runtime_error("RPC over iWARP: the data arrived damaged");
  }

 private:
  [[nodiscard]] cm::ConnectOptions server_at(const std::string& host, std::uint16_t port) const {
    cm::ConnectOptions o;
    o.host = host;
    o.port = port;
    o.policy = policy_of(spec_);
    o.socket.congestion_control = spec_.congestion;
    return o;
  }
  [[nodiscard]] rpc::ClientOptions options() const {
    rpc::ClientOptions o;
    o.requester.credits = std::max(o.requester.credits, spec_.depth);
    o.requester.max_reply_bytes = longest_message(spec_);
    o.requester.declared = rpc_binding(spec_.size);
    o.memory_bytes = memory_for(spec_);
    o.retransmit = false;  // a connection that is lost ends the test
    return o;
  }
  [[nodiscard]] rpc::CallOptions limits() const { return {.max_results = use_.most_results()}; }

  void call_next() {
    client_.async_call(use_.procedure(), use_.arguments(), limits(),
                       [this](const Error& error, const rpc::Reply& reply) { on_reply(error, reply); });
  }

  // In whichever thread the I/O is.
  void on_reply(const Error& error, const rpc::Reply& reply) {
    if (error) {
      fail(std::string("RPC over iWARP: ") + error.why);
    } else if (!reply.success() || !use_.answered(reply.results())) {
      fail("RPC over iWARP: the other end has not done what was called");
    } else {
      ++operations_;
      if (Clock::now() < end_at_ && !interrupted && !failed_) return call_next();
    }
    // Who waits has had the lock, and so has outlasted this, when all of it goes: the engine above all, which must not
    // go in a thread of its own.
    const std::lock_guard lock(mu_);
    if (--under_way_ > 0) return;
    done_.notify_one();
    end_->engine.look_again();
  }

  // Until nothing is under way.
  void wait() {
    const auto done = [this] { return under_way_ == 0; };
    const bool leads = !end_->led.exchange(true);
    for (bool over = false; !over;) {
      if (leads) {
        over = end_->engine.wait_until(done, Clock::now() + 100ms);
      } else {
        std::unique_lock lock(mu_);
        over = done_.wait_for(lock, 100ms, done);
      }
      if (interrupted) client_.close();  // what is under way ends at once
    }
    { const std::lock_guard lock(mu_); }  // who has told is out of it
    if (!leads) return;
    end_->led = false;
    end_->engine.hand_over();  // others may have Calls under way
  }

  void fail(std::string why) {
    const std::lock_guard lock(mu_);
    failed_ = true;
    if (failure_.empty()) failure_ = std::move(why);
  }

  Spec spec_;
  RpcUse use_;
  std::shared_ptr<ClientEngine> end_;
  Clock::time_point end_at_;
  std::atomic<std::uint64_t> operations_{0};
  std::atomic<std::uint32_t> under_way_{0};
  std::atomic<bool> failed_{false};
  std::mutex mu_;
  std::condition_variable done_;
  std::string failure_;
  rpc::Client client_;  // goes first
};

// Of all passive ends of a test.
class RpcService {
 public:
  RpcService(const Spec& spec, const std::string& host) : program_(spec), server_(engine_, options(spec)) {
    engine_.set_tap_maker(tap_maker);
    server_.serve(kRpcProgram, kRpcVersion, [this](rpc::Call call) { return answer(std::move(call)); });
    cm::ListenOptions where;
    where.endpoint = {boost::asio::ip::make_address(host), 0};
    where.policy = policy_of(spec);
    where.socket.congestion_control = spec.congestion;
    listener_ = rpc::on_iwarp(engine_, where, stream_of(spec));
    if (const auto listens = server_.listen(listener_); !listens)
      throw std::runtime_error(std::string("cannot listen on ") + host + ": " + listens.error().why);
  }
  ~RpcService() { server_.stop(); }
  RpcService(const RpcService&) = delete;
  RpcService& operator=(const RpcService&) = delete;

  [[nodiscard]] std::uint16_t port() const { return listener_->local().port(); }
  // Until `stop`. The first to come does the engine's I/O meanwhile, as a program does that has nothing else to do.
  void serve(const std::atomic<bool>& stop) {
    if (led_.exchange(true)) return stop.wait(false);
    while (!engine_.wait_until([&] { return stop.load(); }, Clock::now() + 20ms)) {
    }
    led_ = false;
  }

 private:
  static rpc::ServerOptions options(const Spec& spec) {
    rpc::ServerOptions o;
    o.responder.credits = std::max(o.responder.credits, spec.depth);
    o.responder.max_call_bytes = longest_message(spec);
    o.responder.declared = rpc_binding(spec.size);
    o.memory_bytes = memory_for(spec);
    return o;
  }

  boost::asio::awaitable<rpc::Answer> answer(rpc::Call call) {
    if (call.procedure() > kRpcWrite) co_return rpcrdma::AcceptStat::kProcUnavail;
    auto results = program_.answer(call.procedure(), call.arguments());
    if (!results) co_return rpcrdma::AcceptStat::kGarbageArgs;
    co_return std::move(*results);
  }

  std::atomic<bool> led_{false};
  RpcProgram program_;  // goes behind the engine, on which handlers may be
  cm::Engine engine_;
  std::shared_ptr<rpc::IwarpServer> listener_;
  rpc::Server server_;
};

class RpcPassive final : public Passive {
 public:
  RpcPassive(const Spec& spec, const std::string& host)
      : service_(shared<RpcService>(words_of(spec, host), [&] { return std::make_shared<RpcService>(spec, host); })) {}
  [[nodiscard]] std::uint16_t port() const override { return service_->port(); }
  void serve(const std::atomic<bool>& stop) override { service_->serve(stop); }

 private:
  std::shared_ptr<RpcService> service_;
};

}  // namespace

std::unique_ptr<Active> rpc_active(const Spec& spec, const std::string& host, std::uint16_t port) {
  return std::make_unique<RpcActive>(spec, host, port);
}

std::unique_ptr<Passive> rpc_passive(const Spec& spec, const std::string& host) {
  return std::make_unique<RpcPassive>(spec, host);
}

}  // namespace iwarp::tools::perf
