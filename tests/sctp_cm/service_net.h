// Connections of a Service, both ends in one process: an engine with a thread of its own, a service, a listener.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <boost/asio/use_future.hpp>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "iwarp/cm/completion_queue.h"
#include "iwarp/sctp_cm/service.h"
#include "iwarp/verbs/memory_region.h"
#include "tests/sctp_cm/net.h"

namespace iwarp::sctp_cm {

using namespace std::chrono_literals;

inline std::vector<std::byte> private_data(const std::string& text) {
  const auto octets = std::as_bytes(std::span(text.data(), text.size()));
  return {octets.begin(), octets.end()};
}
inline std::string text(const std::vector<std::byte>& octets) {
  return {reinterpret_cast<const char*>(octets.data()), octets.size()};
}

constexpr auto kAnyAccess = ddp::Access::kLocalWrite | ddp::Access::kRemoteRead | ddp::Access::kRemoteWrite;

// One end of a connection.
struct End {
  End(cm::Engine& engine, const verbs::ProtectionDomain& pd, const stream::Options& options = {})
      : cq(engine, 256),
        qp(std::make_shared<verbs::QueuePair>(
            pd, verbs::QueuePair::Options{.send_cq = &cq, .recv_cq = &cq, .stream = options})),
        mr(verbs::MemoryRegion::register_memory(pd, memory, {.access = kAnyAccess}).value()) {}
  ~End() { qp->abort(); }

  verbs::Sge sge(std::uint32_t octets) { return {memory.data(), octets, mr.stag()}; }
  void receive(std::uint32_t octets = 64) { EXPECT_TRUE(qp->post_recv({.wr_id = 1, .sges = sge(octets)})); }
  void send(std::uint32_t octets = 64) {
    EXPECT_TRUE(qp->post_send({.wr_id = 2, .op = verbs::SendOp::kSend, .sges = sge(octets)}));
  }
  // The next completion; kTimeout: there was none.
  verbs::Completion next() {
    verbs::Completion c;
    c.status = Errc::kTimeout;
    if (cq.wait_for(20s)) (void)cq.poll({&c, 1});
    return c;
  }

  std::vector<std::byte> memory = std::vector<std::byte>(100000);
  cm::CompletionQueue cq;
  std::shared_ptr<verbs::QueuePair> qp;
  verbs::MemoryRegion mr;
  std::shared_ptr<Connection> connection;
};

class SctpServiceBase : public ::testing::Test {
 public:
  using Outcome = std::tuple<Error, std::shared_ptr<Connection>>;

 protected:
  using Requested = std::tuple<Error, std::unique_ptr<ConnectRequest>>;

  explicit SctpServiceBase(cm::Engine::Mode mode = cm::Engine::Mode::kAutomatic) : engine(mode) {}

  void SetUp() override {
    auto made = Service::make(engine, network);
    ASSERT_TRUE(made) << made.error().why;
    sctp = *std::move(made);
  }
  void listen(ListenOptions options = {}, const char* address = "127.0.0.1") {
    options.endpoint = {boost::asio::ip::make_address(address), 0};
    auto made = sctp->listen(options);
    ASSERT_TRUE(made) << made.error().why;
    listener = *std::move(made);
  }
  [[nodiscard]] ConnectOptions to_listener() const {
    ConnectOptions o;
    o.host = listener->local().address().to_string();
    o.port = listener->local().port();
    return o;
  }
  template <class T>
  T get(std::future<T> future) {
    EXPECT_TRUE(engine.wait_for(future, 30s));
    return future.get();
  }
  std::future<Outcome> connecting(End& end, ConnectOptions options) {
    return sctp->async_connect(end.qp, std::move(options), cm::as_error(boost::asio::use_future));
  }
  Outcome connect(End& end, ConnectOptions options) { return get(connecting(end, std::move(options))); }
  Outcome connect(End& end) { return connect(end, to_listener()); }
  std::unique_ptr<ConnectRequest> request() {
    auto [error, request] = get(listener->async_accept(cm::as_error(boost::asio::use_future)));
    EXPECT_FALSE(error) << error.why;
    return std::move(request);
  }
  // The end of a connection.
  stream::Disconnected over(Connection& connection) {
    auto [error, how] = get(connection.async_wait_disconnected(cm::as_error(boost::asio::use_future)));
    EXPECT_FALSE(error);
    return how;
  }
  // Accepts whoever comes from here on, with a Receive posted.
  void serve() {
    listener->accept([this](const Error& none, const std::unique_ptr<ConnectRequest>& r) {
      if (none) return;
      served.push_back(std::make_unique<End>(engine, pd));
      served.back()->receive();
      r->accept(served.back()->qp, {}, [this](const Error& error, const std::shared_ptr<Connection>&) {
        if (!error) ++accepted;
      });
      serve();
    });
  }
  // One connection, each end of which is told of.
  void join(End& x, End& y, ConnectOptions options, ConnectRequest::AcceptOptions accepts = {}) {
    auto connected = connecting(x, std::move(options));
    const auto r = request();
    ASSERT_TRUE(r);
    const auto [bad, passive] = get(r->async_accept(y.qp, std::move(accepts), cm::as_error(boost::asio::use_future)));
    ASSERT_FALSE(bad) << bad.why;
    const auto [error, active] = get(std::move(connected));
    ASSERT_FALSE(error) << error.why;
    x.connection = active;
    y.connection = passive;
  }
  void join(End& x, End& y) { join(x, y, to_listener()); }
  // A Send arrives.
  static void exchange(End& from, End& to) {
    to.receive();
    from.send();
    EXPECT_EQ(from.next().status, Errc::kOk);
    EXPECT_EQ(to.next().status, Errc::kOk);
  }
  bool eventually(const std::function<bool()>& done) {
    for (const auto end = std::chrono::steady_clock::now() + 20s; std::chrono::steady_clock::now() < end;) {
      if (done()) return true;
      std::this_thread::sleep_for(5ms);
    }
    return false;
  }
  void TearDown() override {
    listener.reset();
    sctp.reset();
  }

  StackOptions network{};  // before SetUp()
  cm::Engine engine;
  verbs::ProtectionDomain pd{engine.context()};
  std::unique_ptr<Service> sctp;
  std::unique_ptr<Listener> listener;
  std::vector<std::unique_ptr<End>> served;  // of serve(), in the thread of the engine
  std::atomic<std::size_t> accepted{0};
};

class SctpService : public SctpServiceBase {};

// Some packets are lost, late or there twice.
class BadSctpService : public SctpServiceBase {
 protected:
  BadSctpService() { network.fate = bad_network(31, 3, 5, 1); }
  // With times of SCTP that suit it.
  template <class Options>
  static Options fast(Options options = {}) {
    options.transport.rto_min = 20ms;
    options.transport.rto_max = 200ms;
    return options;
  }
};

}  // namespace iwarp::sctp_cm
