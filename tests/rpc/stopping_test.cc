// Servers that stop, or go, while handlers are at work, suspended, or the ones who stop them.
#include <boost/asio/steady_timer.hpp>
#include <thread>

#include "tests/rpc/program.h"
#include "tests/rpc/settle.h"

namespace iwarp::rpc::test {
namespace {

// A server whose handlers the test writes.
struct Small {
  explicit Small(ServerOptions options = {.threads = 2}, Carrier carrier = Carrier::kMemory)
      : server(std::make_shared<Server>(engine, options)) {
    if (carrier == Carrier::kMemory) {
      server->listen(network.server()).value();
      transport = network.client();
    } else {
      const auto listener = on_iwarp(engine, {.endpoint = {boost::asio::ip::address_v4::loopback(), 0}});
      server->listen(listener).value();
      transport = over_iwarp(engine, {.host = "127.0.0.1", .port = listener->local().port()});
    }
    client.emplace(engine, transport, ClientOptions{.timeout = 30s});
  }

  cm::Engine engine;
  MemoryNetwork network{engine.get_executor()};
  std::shared_ptr<Server> server;
  std::shared_ptr<ClientTransport> transport;
  std::optional<Client> client;
};

// Tells that what it lived in is gone.
struct Farewell {
  explicit Farewell(std::atomic<int>& of) : gone(&of) {}
  ~Farewell() { ++*gone; }
  Farewell(const Farewell&) = delete;
  Farewell& operator=(const Farewell&) = delete;
  std::atomic<int>* gone;
};

// What a handler waits for may be anywhere: here it is the engine's, and lasts longer than the Server.
TEST(Stopping, HandlersThatWaitElsewhereOutliveTheThreads) {
  for (const bool server_goes : {false, true}) {
    Small s;
    boost::asio::steady_timer timer(s.engine.get_executor(), 1h);
    std::atomic<int> waiting{0}, went_on{0}, gone{0};
    s.server->serve(kProgram, 1, [&](Call call) -> awaitable<Answer> {
      if (call.procedure() == kNull) co_return AcceptStat::kSuccess;
      const Farewell farewell(gone);
      ++waiting;
      co_await timer.async_wait(use_awaitable);
      ++went_on;
      co_return AcceptStat::kSuccess;
    });
    auto call = s.client->async_call(proc(kEcho), {}, {}, use_future);
    ASSERT_TRUE(eventually([&] { return waiting == 1; }));
    std::this_thread::sleep_for(5ms);  // so that it is suspended
    s.server->stop();
    if (server_goes) s.server.reset();
    EXPECT_EQ(gone, 0);
    boost::asio::post(s.engine.get_executor(), [&] { timer.cancel(); });
    EXPECT_TRUE(eventually([&] { return gone == 1; }));
    EXPECT_EQ(went_on, 0);
    s.client->close();
    EXPECT_EQ(call.wait_for(kPatience), std::future_status::ready);
  }
}

// Timers of the handlers' own executor go with the threads.
TEST(Stopping, HandlersThatWaitInTheThreadsEndWithThem) {
  Small s;
  std::atomic<int> waiting{0}, gone{0};
  s.server->serve(kProgram, 1, [&](Call call) -> awaitable<Answer> {
    if (call.procedure() == kNull) co_return AcceptStat::kSuccess;
    const Farewell farewell(gone);
    boost::asio::steady_timer timer(co_await boost::asio::this_coro::executor, call.procedure() == kEcho ? 1ms : 1h);
    ++waiting;
    co_await timer.async_wait(use_awaitable);
    co_return AcceptStat::kSuccess;
  });
  EXPECT_TRUE(s.client->call(proc(kEcho), {}).ok());
  auto call = s.client->async_call(proc(kHold), {}, {}, use_future);
  ASSERT_TRUE(eventually([&] { return waiting == 2; }));
  s.server->stop();
  EXPECT_EQ(gone, 2);
  s.client->close();
}

class StoppingInside : public ::testing::TestWithParam<Carrier> {};
INSTANTIATE_TEST_SUITE_P(Over, StoppingInside, ::testing::Values(Carrier::kMemory, Carrier::kIwarp), carrier_name);

TEST_P(StoppingInside, AHandlerMayStopItsServer) {
  for (const unsigned threads : {0u, 1u, 3u}) {
    std::atomic<unsigned> stopped{0};
    Small s({.threads = threads}, GetParam());
    s.server->serve(kProgram, 1, [&](Call call) -> awaitable<Answer> {
      if (call.procedure() == kNull) co_return AcceptStat::kSuccess;
      s.server->stop();
      ++stopped;
      co_return AcceptStat::kSuccess;
    });
    std::vector<std::future<Reply>> calls;
    for (unsigned i = 0; i < 3; ++i) calls.push_back(s.client->async_call(proc(kEcho), {}, {}, use_future));
    ASSERT_TRUE(eventually([&] { return stopped >= 1; }));
    s.server->stop();  // waits for those who are in it
    const unsigned so_many = stopped;
    std::this_thread::sleep_for(2ms);
    EXPECT_TRUE(threads == 0 || stopped == so_many);
    s.client->close();
    for (auto& call : calls) EXPECT_EQ(call.wait_for(kPatience), std::future_status::ready);
    settle(s.engine);  // without threads other handlers may be at it
  }
}

TEST_P(StoppingInside, TheLastOwnerMayBeAHandler) {
  for (const unsigned threads : {0u, 1u, 3u}) {
    Small s({.threads = threads}, GetParam());
    std::weak_ptr<Server> server = s.server;
    std::atomic<int> gone{0};
    std::promise<void> let_go;
    const auto gate = let_go.get_future().share();
    s.server->serve(kProgram, 1, [&, owner = s.server](Call call) mutable -> awaitable<Answer> {
      if (call.procedure() == kNull) co_return AcceptStat::kSuccess;
      const Farewell farewell(gone);
      gate.wait();
      owner.reset();
      co_return AcceptStat::kSuccess;
    });
    auto call = s.client->async_call(proc(kEcho), {}, {}, use_future);
    s.server.reset();
    EXPECT_FALSE(server.expired());
    let_go.set_value();
    EXPECT_TRUE(eventually([&] { return gone == 1 && server.expired(); }));
    s.client->close();
    EXPECT_EQ(call.wait_for(kPatience), std::future_status::ready);
  }
}

// Connections come while it stops, from several threads.
TEST(Stopping, AtAnyMomentOfAConnection) {
  for (int i = 0; i < 60; ++i) {
    Small s({.threads = 1});
    s.server->serve(kProgram, 1, [](Call) -> awaitable<Answer> { co_return AcceptStat::kSuccess; });
    Client other(s.engine, s.network.client(), {.timeout = 30s});
    auto one = s.client->async_call(proc(kNull), {}, {}, use_future);
    auto two = other.async_call(proc(kNull), {}, {}, use_future);
    std::this_thread::sleep_for(std::chrono::microseconds(i * 10));
    std::jthread stopper([&] { s.server->stop(); });
    s.server->stop();
    s.client->close();
    other.close();
    EXPECT_EQ(one.wait_for(kPatience), std::future_status::ready);
    EXPECT_EQ(two.wait_for(kPatience), std::future_status::ready);
    EXPECT_EQ(s.server->listen(s.network.server()).error().code, Errc::kAborted);
  }
}

TEST(Stopping, EndsNoListeningOfOthers) {
  Small s;
  s.server->serve(kProgram, 1, [](Call) -> awaitable<Answer> { co_return AcceptStat::kSuccess; });
  {
    Server other(s.engine, {});
    EXPECT_EQ(other.listen(s.network.server()).error().code, Errc::kInvalidArgument);
  }
  EXPECT_TRUE(s.client->call(proc(kNull), {}).ok());
}

// A connection that has ended keeps its place while a handler has a Call of it.
TEST(Stopping, ConnectionsCountUntilTheirMemoryIsFree) {
  World w(Carrier::kMemory, {.threads = 2, .max_connections = 1});
  std::future<Reply> held;
  {
    Client client(w.engine, w.transport);
    held = client.async_call(proc(kHold), {}, {}, use_future);
    ASSERT_TRUE(eventually([&] { return w.program.held == 1; }));
    Client other(w.engine, w.transport);
    EXPECT_FALSE(other.call(proc(kNull), {}).ok());
  }
  Client other(w.engine, w.transport, {.patient = true, .first_pause = 5ms});
  auto refused = other.async_call(proc(kNull), {}, {}, use_future);
  EXPECT_EQ(refused.wait_for(50ms), std::future_status::timeout);
  EXPECT_EQ(w.server.stats().connections, 1u);
  w.release();
  ASSERT_EQ(refused.wait_for(kPatience), std::future_status::ready);
  EXPECT_TRUE(refused.get().success());
}

}  // namespace
}  // namespace iwarp::rpc::test
