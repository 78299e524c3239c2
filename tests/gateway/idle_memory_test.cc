// What idle connections cost the gateway's process, which is a child of the test here: the peers are not counted.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "tests/gateway/chained.h"
#include "tests/support/sanitized.h"

namespace iwarp::gateway::test {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kConnections = 200;
constexpr std::size_t kEach = 72;  // KiB

// A process with a gateway in it.
class GatewayProcess {
 public:
  // Called in the child, whose own `io` it is.
  using Open = std::function<std::unique_ptr<Front>(cm::Engine&)>;

  explicit GatewayProcess(const Open& open) {
    std::array<int, 2> pipe{};
    if (::pipe(pipe.data()) != 0) throw std::runtime_error("pipe");
    child_ = ::fork();
    if (child_ == 0) {
      boost::asio::io_context io(1);
      cm::Engine engine(io);
      const auto front = open(engine);
      const std::uint16_t port = front ? front->local().port() : 0;
      if (::write(pipe[1], &port, sizeof port) == sizeof port) io.run_for(120s);
      ::_exit(0);
    }
    if (::read(pipe[0], &port_, sizeof port_) != sizeof port_) port_ = 0;
    ::close(pipe[0]);
    ::close(pipe[1]);
  }
  ~GatewayProcess() {
    ::kill(child_, SIGKILL);
    (void)::waitpid(child_, nullptr, 0);
  }
  GatewayProcess(const GatewayProcess&) = delete;
  GatewayProcess& operator=(const GatewayProcess&) = delete;

  [[nodiscard]] tcp::endpoint local() const { return {boost::asio::ip::make_address("127.0.0.1"), port_}; }
  [[nodiscard]] std::size_t resident_kib() const {
    std::ifstream in("/proc/" + std::to_string(child_) + "/smaps_rollup");
    for (std::string word; in >> word;) {
      std::size_t kib = 0;
      if (word == "Rss:" && in >> kib) return kib;
    }
    return 0;
  }

 private:
  pid_t child_ = 0;
  std::uint16_t port_ = 0;
};

const tcp::endpoint kAnyPort{boost::asio::ip::make_address("127.0.0.1"), 0};

Options quick_to_rest() {
  Options o;
  o.keep_idle_memory = 300ms;
  o.insecure_ports = true;
  return o;
}

class IdleMemory : public Chained {
 protected:
  void SetUp() override {
    if (iwarp::test::kSanitized) GTEST_SKIP() << "the sanitizers keep what is freed";
  }
  void expect_little(const GatewayProcess& gateway, std::size_t before) {
    const auto each = [&] { return (std::max(gateway.resident_kib(), before) - before) / kConnections; };
    EXPECT_TRUE(loop.until([&] { return each() <= kEach; }, 10s)) << each() << " KiB for each connection";
    RecordProperty("KiB", static_cast<int>(each()));
    std::cout << "an idle connection costs " << each() << " KiB\n";
  }
};

TEST_F(IdleMemory, OfTheRdmaFront) {
  const HostPort backend = server.host_port();
  const GatewayProcess gateway([&](cm::Engine& engine) -> std::unique_ptr<Front> {
    auto opened = RdmaFront::open(engine, kAnyPort, backend, quick_to_rest());
    return opened ? std::move(*opened) : nullptr;
  });
  std::vector<std::unique_ptr<RdmaClient>> clients;
  std::size_t before = 0;
  for (std::uint32_t n = 0; n <= kConnections; ++n) {
    if (n == 1) before = gateway.resident_kib();
    auto& c = *clients.emplace_back(std::make_unique<RdmaClient>(loop, client_engine, RdmaClient::Options{}));
    ASSERT_TRUE(c.connect(gateway.local()));
    for (std::uint32_t xid = 1; xid <= 100; ++xid) {  // every Receive once
      c.call(samples::null_call(xid));
      ASSERT_EQ(c.await(xid).payload, samples::rpc_reply(xid));
    }
  }
  expect_little(gateway, before);
  clients.back()->call(samples::null_call(101));  // what was given back works as before
  EXPECT_EQ(clients.back()->await(101).payload, samples::rpc_reply(101));
}

TEST_F(IdleMemory, OfTheTcpFront) {
  options.max_connections_per_client = 1000;
  open();
  const HostPort backend{"127.0.0.1", front->local().port()};
  const GatewayProcess gateway([&](cm::Engine& engine) -> std::unique_ptr<Front> {
    auto opened = TcpFront::open(engine, kAnyPort, backend, quick_to_rest());
    return opened ? std::move(*opened) : nullptr;
  });
  std::vector<std::shared_ptr<TcpPeer>> clients;
  std::size_t before = 0;
  for (std::uint32_t n = 0; n <= kConnections; ++n) {
    if (n == 1) before = gateway.resident_kib();
    tcp::socket socket(loop.io);
    socket.connect(gateway.local());
    auto& c = *clients.emplace_back(std::make_shared<TcpPeer>(std::move(socket)));
    c.start();
    for (std::uint32_t xid = 1; xid <= 100; ++xid) {
      c.send(samples::null_call(xid));
      ASSERT_EQ(await(c), samples::rpc_reply(xid));
    }
  }
  expect_little(gateway, before);
  clients.back()->send(samples::null_call(101));
  EXPECT_EQ(await(*clients.back()), samples::rpc_reply(101));
}

}  // namespace
}  // namespace iwarp::gateway::test
