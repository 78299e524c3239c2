// The network fails at every point of an exchange: a relay cuts the TCP connection after n octets, for n over the whole
// exchange. Nothing may hang or leak, and both sides must learn that it is over.
#include <poll.h>

#include <atomic>

#include "tests/cm/node.h"
#include "tests/cm/raw_tcp.h"

namespace iwarp::cm {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace): the vocabulary of these tests

// Forwards one connection to `target` until `limit` octets have passed, both ways together; then ends both halves.
class Relay {
 public:
  Relay(std::uint16_t target, std::size_t limit, bool reset)
      : target_(target), limit_(limit), reset_(reset), thread_([this] { run(); }) {}
  ~Relay() {
    over_ = true;
    thread_.join();
  }
  [[nodiscard]] std::uint16_t port() const { return listener_.port(); }
  [[nodiscard]] std::size_t passed() const { return passed_; }

 private:
  void run() {
    while (!listener_.anybody(10)) {
      if (over_) return;
    }
    RawTcp client = listener_.accept(), server = RawTcp::connect(target_);
    while (!over_ && passed_ < limit_) {
      std::array<pollfd, 2> p{pollfd{client.fd(), POLLIN, 0}, pollfd{server.fd(), POLLIN, 0}};
      ::poll(p.data(), p.size(), 10);
      if (p[0].revents != 0 && !forward(client, server)) break;
      if (p[1].revents != 0 && !forward(server, client)) break;
    }
    for (RawTcp* end : {&client, &server}) {
      if (reset_) {
        end->reset();
      } else {
        end->close();
      }
    }
  }
  bool forward(RawTcp& from, RawTcp& to) {
    if (passed_ >= limit_) return false;
    const Bytes bytes = from.read_some(limit_ - passed_, 0);
    if (bytes.empty() || !to.send(bytes)) return false;
    passed_ += bytes.size();
    return true;
  }

  RawListener listener_;
  std::uint16_t target_;
  std::size_t limit_;
  bool reset_;
  std::atomic<std::size_t> passed_{0};
  std::atomic<bool> over_{false};
  std::thread thread_;
};

class Cut : public ::testing::TestWithParam<bool> {
 protected:
  Cut() {
    options_.first_fpdu_timeout = 5s;
    options_.close_timeout = 2s;
  }

  // Connect, Send, Write, Read, close; octets that passed.
  std::size_t exchange(std::size_t limit) {
    Node server(server_engine_, options_, 1500), client(client_engine_, options_, 1500);
    const auto listener = listen(server_engine_);
    Relay relay(listener->local().port(), limit, GetParam());
    mpa::Policy policy;
    policy.allow_revision_1_fallback = false;
    for (std::uint64_t i = 0; i < 3; ++i) server.recv(i);
    auto connecting = start_connect(client, to_port(relay.port(), policy));
    auto waiting = listener->async_accept(cm::as_error(boost::asio::use_future));
    Connecting accepting;
    std::unique_ptr<ConnectRequest> request;
    // Which of the two comes first depends on where the cut is.
    EXPECT_TRUE(eventually([&] {
      return waiting.wait_for(1ms) == std::future_status::ready || connecting.wait_for(0s) == std::future_status::ready;
    }));
    if (waiting.wait_for(0s) == std::future_status::ready) {
      request = std::get<1>(waiting.get());
      accepting = request->async_accept(server.qp, {.mpa = server.mpa}, cm::as_error(boost::asio::use_future));
    }
    const Outcome c = get_outcome(std::move(connecting));
    if (c.error.code == Errc::kOk) {
      work(client, server);
      c.connection->disconnect();
    }
    if (c.connection != nullptr) (void)ending(*c.connection);
    if (accepting.valid()) {
      const Outcome s = get_outcome(std::move(accepting));
      if (s.connection != nullptr) (void)ending(*s.connection);
    }
    return relay.passed();
  }

  // A Send, a Write and a Read, until one of them fails.
  static void work(Node& client, const Node& server) {
    const verbs::Sge out{client.out.data(), 1500, client.out_mr.stag()},
        in{client.in.data(), 1500, client.in_mr.stag()};
    verbs::SendWr send{.wr_id = 1, .sges = out};
    verbs::SendWr write{.wr_id = 2, .op = verbs::SendOp::kWrite, .sges = out, .remote_stag = server.in_mr.stag()};
    write.remote_to = server.in_mr.base_to();
    verbs::SendWr read{.wr_id = 3, .op = verbs::SendOp::kRead, .sges = in, .remote_stag = server.out_mr.stag()};
    read.remote_to = server.out_mr.base_to();
    for (const verbs::SendWr& wr : {send, write, read}) {
      if (!client.qp->post_send(wr)) return;
      const verbs::Completion c = client.next();
      if (c.status != Errc::kOk) return;
      EXPECT_EQ(c.wr_id, wr.wr_id);
    }
    EXPECT_EQ(client.in, server.out);
  }

  Engine server_engine_, client_engine_;
  stream::Options options_;
};

TEST_P(Cut, AtEveryPointOfAnExchange) {
  const std::size_t whole = exchange(1 << 20);
  EXPECT_GT(whole, 3700U);
  const std::size_t before = open_descriptors();
  std::size_t runs = 0;
  for (std::size_t n = 0; n < whole; n += n < 120 ? 5 : 131, ++runs) {
    SCOPED_TRACE(n);
    EXPECT_LE(exchange(n), n);
  }
  EXPECT_GT(runs, 40U);
  EXPECT_TRUE(eventually([&] { return open_descriptors() <= before; }))
      << open_descriptors() << " instead of " << before;
  EXPECT_EQ(server_engine_.context()->stags().size(), 0U);
  EXPECT_EQ(client_engine_.context()->stags().size(), 0U);
}

INSTANTIATE_TEST_SUITE_P(Ends, Cut, ::testing::Bool(),
                         [](const auto& p) { return std::string(p.param ? "Reset" : "Fin"); });

}  // namespace
}  // namespace iwarp::cm
