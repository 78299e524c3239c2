// Many threads on both sides: every Call is executed once, and every Reply finds its caller.
#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <cstring>
#include <deque>
#include <map>
#include <thread>

#include "tests/rpc/program.h"

namespace iwarp::rpc::test {
namespace {

class Threads : public ::testing::TestWithParam<Carrier> {};
INSTANTIATE_TEST_SUITE_P(Over, Threads, ::testing::Values(Carrier::kMemory, Carrier::kIwarp), carrier_name);

TEST_P(Threads, EveryCallIsExecutedOnce) {
  World w(GetParam(), {.threads = 4});
  std::mutex mu;
  std::map<std::uint32_t, int> seen;
  w.server.serve(kProgram, 2, [&](Call call) -> awaitable<Answer> {
    if (call.procedure() == 0) co_return AcceptStat::kSuccess;
    const std::uint32_t which = word(call.arguments());
    {
      const std::lock_guard lock(mu);
      ++seen[which];
    }
    co_return words({which * 2});
  });
  Client client(w.engine, w.transport);
  std::vector<std::thread> callers;
  constexpr std::uint32_t kCallers = 8, kCalls = 250;
  for (std::uint32_t t = 0; t < kCallers; ++t) {
    callers.emplace_back([&, t] {
      for (std::uint32_t i = 0; i < kCalls; ++i) {
        const std::uint32_t which = t * kCalls + i;
        const auto reply = client.call({kProgram, 2, 1}, words({which}));
        ASSERT_TRUE(reply.ok()) << reply.error().why;
        EXPECT_EQ(word(reply->results()), which * 2);
      }
    });
  }
  for (auto& caller : callers) caller.join();
  EXPECT_EQ(seen.size(), kCallers * kCalls);
  for (const auto& [which, times] : seen) EXPECT_EQ(times, 1) << which;
}

// A server with an engine of its own.
struct Apart {
  Apart() {
    server.serve(kProgram, 1, program.handler());
    server.listen(listener).value();
  }
  ~Apart() { program.let_go.set_value(); }
  std::shared_ptr<ClientTransport> way(cm::Engine& from) const {
    return over_iwarp(from, {.host = "127.0.0.1", .port = listener->local().port()});
  }

  cm::Engine engine;
  Program program;
  Server server{engine, {.threads = 2}};
  std::shared_ptr<IwarpServer> listener = on_iwarp(engine, {.endpoint = {boost::asio::ip::address_v4::loopback(), 0}});
};

// Of either mode of the engine: in manual mode nobody does the I/O but a thread that waits, and each hands it on, as
// where nobody may look at sockets.
TEST(Callers, WaitForTheirOwnReplies) {
  using Mode = cm::Engine::Mode;
  for (const auto& [mode, spin] :
       {std::pair{Mode::kAutomatic, cm::Engine::kUsualSpin}, {Mode::kManual, 0us}, {Mode::kAutomatic, 0us}}) {
    const Apart apart;
    cm::Engine engine(mode, spin);
    std::vector<std::thread> callers;
    for (std::uint32_t t = 0; t < 12; ++t) {
      callers.emplace_back([&, t] {
        Client client(engine, apart.way(engine));
        for (std::uint32_t i = 0; i < 40 + t; ++i) {  // the last ones are fewer and fewer
          const auto reply = client.call(proc(kAdd), words({t, i}));
          ASSERT_TRUE(reply.ok()) << reply.error().why;
          EXPECT_EQ(word(reply->results()), t + i);
        }
      });
    }
    for (auto& caller : callers) caller.join();
    EXPECT_TRUE(Client(engine, apart.way(engine)).call(proc(kNull), {}).ok()) << "by one thread as before";
  }
}

// Whatever threads do the I/O, and take Calls from the connection while they answer others.
TEST(CallsOfAConnection, AreHandedOverInTheirOrder) {
  constexpr std::uint32_t kCalls = 3000;
  boost::asio::io_context io;
  auto work = boost::asio::make_work_guard(io);
  std::vector<std::uint32_t> seen;
  std::deque<std::shared_ptr<IncomingCall>> unanswered;
  std::mutex mu;
  std::atomic<bool> over{false};
  std::vector<std::thread> threads;
  {
    cm::Engine engine(io);
    Server server(engine);
    server.serve_messages([&](std::shared_ptr<IncomingCall> call) {
      const ConstBytes arguments = call->message().subspan(call->head().arguments_offset);
      const std::lock_guard lock(mu);
      if (!arguments.empty()) seen.push_back(word(arguments));  // those of a NULL Call, which goes first, are
      unanswered.push_back(std::move(call));
    });
    const auto listener = on_iwarp(engine, {.endpoint = {boost::asio::ip::address_v4::loopback(), 0}});
    server.listen(listener).value();
    for (int i = 0; i < 3; ++i) threads.emplace_back([&] { io.run(); });
    for (int i = 0; i < 2; ++i) {
      threads.emplace_back([&] {
        while (!over) {
          std::shared_ptr<IncomingCall> call;
          {
            const std::lock_guard lock(mu);
            if (!unanswered.empty()) call = std::move(unanswered.front()), unanswered.pop_front();
          }
          if (!call) std::this_thread::yield();
          if (call) (void)call->answer(Octets());  // no Reply: SYSTEM_ERR
        }
      });
    }
    cm::Engine own;
    Client client(own, over_iwarp(own, {.host = "127.0.0.1", .port = listener->local().port()}));
    for (std::uint32_t i = 0; i < kCalls; ++i)
      client.async_call(proc(kAdd), words({i}), {.one_way = true}, [](const Error&, const Reply&) {});
    EXPECT_TRUE(eventually([&] {
      const std::lock_guard lock(mu);
      return seen.size() >= kCalls;
    }));
    over = true;
    work.reset();
    server.stop();
    io.stop();
    for (auto& thread : threads) thread.join();
    unanswered.clear();
  }
  EXPECT_EQ(seen.size(), kCalls);
  EXPECT_TRUE(std::ranges::is_sorted(seen));
}

// Those behind a Call whose handler throws are handed over all the same.
TEST(CallsOfAConnection, OutliveAHandlerThatThrows) {
  cm::Engine engine(cm::Engine::Mode::kManual);
  MemoryNetwork network(engine.get_executor());
  Server server(engine);
  std::vector<std::uint32_t> seen;
  server.serve_messages([&](const std::shared_ptr<IncomingCall>& call) {
    const ConstBytes arguments = call->message().subspan(call->head().arguments_offset);
    if (arguments.empty()) return;
    seen.push_back(word(arguments));
    if (seen.size() == 2) throw std::runtime_error("the handler has had enough");
  });
  server.listen(network.server()).value();
  Client client(engine, network.client());
  for (std::uint32_t i = 0; i < 5; ++i)
    client.async_call(proc(kAdd), words({i}), {.one_way = true}, [](const Error&, const Reply&) {});
  int thrown = 0;
  EXPECT_TRUE(eventually([&] {
    try {
      engine.poll();
    } catch (const std::runtime_error&) {
      ++thrown;
    }
    return seen.size() == 5;
  }));
  EXPECT_EQ(thrown, 1);
  EXPECT_EQ(seen, (std::vector<std::uint32_t>{0, 1, 2, 3, 4}));
}

TEST(Callers, AreToldOfTheEndOfTheirTime) {
  const Apart apart;
  cm::Engine engine;
  std::vector<std::thread> callers;
  for (int t = 0; t < 4; ++t) {
    callers.emplace_back([&, t] {
      Client client(engine, apart.way(engine));
      const auto reply = client.call(proc(kHold), words({1}), {.timeout = 50ms * (t + 1)});
      EXPECT_EQ(reply.ok() ? Errc::kOk : reply.error().code, Errc::kTimeout);
    });
  }
  for (auto& caller : callers) caller.join();
}

TEST_P(Threads, SlowHandlersDoNotHoldUpOthers) {
  World w(GetParam(), {.threads = 2});
  Client client(w.engine, w.transport);
  auto slow = client.async_call(proc(kHold), words({9}), {}, use_future);
  ASSERT_TRUE(eventually([&] { return w.program.held == 1; }));
  EXPECT_TRUE(client.call(proc(kNull), {}).ok());
  w.release();
  ASSERT_EQ(slow.wait_for(kPatience), std::future_status::ready);
  EXPECT_EQ(word(slow.get().results()), 9u);
}

TEST_P(Threads, MoreCallsThanCreditsOrMemory) {
  ServerOptions server{.threads = 4, .memory_bytes = 4u << 20};
  server.responder.credits = 8;
  World w(GetParam(), server);
  ClientOptions options{.memory_bytes = 4u << 20};
  options.requester.credits = 16;
  Client client(w.engine, w.transport, options);
  const auto octets = pattern(400000, 5);
  std::vector<std::future<Reply>> all;
  for (int i = 0; i < 50; ++i) all.push_back(client.async_call(proc(kEcho), copy(octets), {}, use_future));
  for (auto& one : all) {
    ASSERT_EQ(one.wait_for(kPatience), std::future_status::ready);
    const Reply reply = one.get();
    ASSERT_EQ(reply.results().size(), octets.size());
    EXPECT_EQ(std::memcmp(reply.results().data(), octets.data(), octets.size()), 0);
  }
}

TEST_P(Threads, HandlersMayRunOnTheEngine) {
  World w(GetParam(), {.threads = 0});
  Client client(w.engine, w.transport);
  for (std::uint32_t i = 0; i < 50; ++i) EXPECT_EQ(word(client.call(proc(kAdd), words({i, i}))->results()), 2 * i);
}

}  // namespace
}  // namespace iwarp::rpc::test
