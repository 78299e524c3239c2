// The system refuses memory for a while: what waits for it goes on by itself afterwards.
#include "tests/rpc/program.h"

namespace iwarp::rpc::test {
namespace {

// Registers no more memory while it is told so.
class Refusing final : public Channel, public rpcrdma::Registrar {
 public:
  Refusing(std::unique_ptr<Channel> inner, const std::atomic<bool>& refuse)
      : inner_(std::move(inner)), refuse_(refuse) {}

  [[nodiscard]] rpcrdma::Endpoint& endpoint() override { return inner_->endpoint(); }
  [[nodiscard]] rpcrdma::Registrar& registrar() override { return *this; }
  [[nodiscard]] ConstBytes peer_data() const override { return inner_->peer_data(); }
  [[nodiscard]] const std::string& peer() const override { return inner_->peer(); }
  [[nodiscard]] Result<void> flush() override { return inner_->flush(); }
  std::size_t poll(std::span<rpcrdma::Completion> into) override { return inner_->poll(into); }
  void set_wake(std::function<void()> wake) override { inner_->set_wake(std::move(wake)); }
  void arm() override { inner_->arm(); }
  void disarm() override { inner_->disarm(); }
  void close() override { inner_->close(); }

  [[nodiscard]] Result<Stag> register_local(MutBytes memory) override {
    if (refuse_) return make_error(Errc::kResource, "refused by the test");
    return inner_->registrar().register_local(memory);
  }
  void deregister_local(Stag lkey) override { inner_->registrar().deregister_local(lkey); }

 private:
  const std::unique_ptr<Channel> inner_;
  const std::atomic<bool>& refuse_;
};

struct RefusingClient final : ClientTransport {
  RefusingClient(std::shared_ptr<ClientTransport> of, const std::atomic<bool>& when)
      : inner(std::move(of)), refuse(when) {}
  void connect(ConstBytes announce, Connected connected) override {
    inner->connect(announce,
                   [connected = std::move(connected), &when = refuse](const Error& error, std::unique_ptr<Channel> c) {
                     connected(error, c ? std::make_unique<Refusing>(std::move(c), when) : nullptr);
                   });
  }
  void cancel() override { inner->cancel(); }
  std::shared_ptr<ClientTransport> inner;
  const std::atomic<bool>& refuse;
};

struct RefusingServer final : ServerTransport {
  RefusingServer(std::shared_ptr<ServerTransport> of, const std::atomic<bool>& when)
      : inner(std::move(of)), refuse(when) {}
  [[nodiscard]] Result<void> listen(Come come) override {
    return inner->listen([come = std::move(come), &when = refuse](Incoming incoming) {
      incoming.channel = std::make_unique<Refusing>(std::move(incoming.channel), when);
      come(std::move(incoming));
    });
  }
  void stop() override { inner->stop(); }
  std::shared_ptr<ServerTransport> inner;
  const std::atomic<bool>& refuse;
};

struct Short {
  Short() {
    server.serve(kProgram, 1, program.handler());
    server.listen(std::make_shared<RefusingServer>(network.server(), server_refuses)).value();
    EXPECT_TRUE(client.call(proc(kNull), {}).ok());
  }
  void expect_later(std::atomic<bool>& refused, std::future<Reply> call, std::size_t octets) {
    EXPECT_EQ(call.wait_for(250ms), std::future_status::timeout);
    refused = false;
    ASSERT_EQ(call.wait_for(kPatience), std::future_status::ready);
    EXPECT_EQ(call.get().results().size(), octets);
    EXPECT_EQ(client.stats().connections, 1u);
  }

  cm::Engine engine;
  MemoryNetwork network{engine.get_executor()};
  std::atomic<bool> client_refuses{false}, server_refuses{false};
  Program program;
  Server server{engine, {.threads = 2}};
  Client client{engine, std::make_shared<RefusingClient>(network.client(), client_refuses), {.timeout = 30s}};
};

TEST(Shortage, OfTheServersReplies) {
  Short s;
  s.server_refuses = true;
  s.expect_later(s.server_refuses, s.client.async_call(proc(kMake), words({500000}), {}, use_future), 500008);
}

TEST(Shortage, OfTheCallsThatTheServerPulls) {
  Short s;
  s.server_refuses = true;
  s.expect_later(s.server_refuses, s.client.async_call(proc(kEcho), copy(pattern(500000, 1)), {}, use_future), 500000);
}

TEST(Shortage, OfTheClientsCalls) {
  Short s;
  s.client_refuses = true;
  s.expect_later(s.client_refuses, s.client.async_call(proc(kEcho), copy(pattern(500000, 1)), {}, use_future), 500000);
}

TEST(Shortage, OfTheClientsReplies) {
  Short s;
  s.client_refuses = true;
  s.expect_later(s.client_refuses, s.client.async_call(proc(kMake), words({500000}), {}, use_future), 500008);
}

// Replies that a program keeps have the memory of Receives, and of what is sent. When it gives them back, a Call goes
// on that is alone and lacks nothing but the memory of its header.
class HeldReplies : public ::testing::TestWithParam<Carrier> {};
INSTANTIATE_TEST_SUITE_P(Over, HeldReplies, ::testing::Values(Carrier::kMemory, Carrier::kIwarp), carrier_name);

TEST_P(HeldReplies, HoldUpACallUntilTheyAreGivenBack) {
  World w(GetParam());
  Client client(w.engine, w.transport, {.requester = {.credits = 8}});
  std::vector<Reply> held;
  std::future<Reply> late;
  for (std::uint32_t i = 0; i < 2000; ++i) {
    late = client.async_call(proc(kAdd), words({i, 1}), {.timeout = 1h}, use_future);
    if (late.wait_for(500ms) != std::future_status::ready) break;
    held.push_back(late.get());
    ASSERT_EQ(word(held.back().results()), i + 1);
  }
  ASSERT_TRUE(late.valid()) << "2000 Replies are kept, and there is memory for more";
  held.clear();
  ASSERT_EQ(late.wait_for(kPatience), std::future_status::ready);
  EXPECT_TRUE(late.get().success());
}

}  // namespace
}  // namespace iwarp::rpc::test
