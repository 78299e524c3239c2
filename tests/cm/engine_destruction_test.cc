// Engines that go while there is still something going on, and engines in a forked child.
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/bind_executor.hpp>
#include <optional>

#include "tests/cm/node.h"
#include "tests/cm/raw_tcp.h"

namespace iwarp::cm {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace): the vocabulary of these tests

template <class Future>
bool ended_as_aborted(Future f) {
  return std::get<0>(get(std::move(f))).code == Errc::kAborted;
}

TEST(EngineDestruction, ResetsOpenConnections) {
  Engine server_engine;
  Node server(server_engine);
  const auto listener = listen(server_engine);
  auto client_engine = std::make_unique<Engine>();
  Node client(*client_engine);
  const Ends ends = join(client, server, *listener);
  client.recv(1);
  auto waiting = ends.client.connection->async_wait_disconnected(boost::asio::use_future);
  client_engine.reset();

  verbs::Completion c;
  ASSERT_EQ(client.cq.poll({&c, 1}), 1U);
  EXPECT_EQ(c.status, Errc::kFlushed);
  EXPECT_EQ(ends.client.connection->disconnected().value().reason.code, Errc::kAborted);
  EXPECT_EQ(get(std::move(waiting)).reason.code, Errc::kAborted) << "or somebody would wait for ever";
  EXPECT_EQ(ending(*ends.server.connection).reason.code, Errc::kConnectionLost);
  EXPECT_TRUE(ends.client.connection->initiator());
  EXPECT_TRUE(client.qp->post_send(verbs::SendWr{}).ok());
  ASSERT_EQ(client.cq.poll({&c, 1}), 1U) << "without an engine";
  EXPECT_EQ(c.status, Errc::kFlushed);
}

TEST(EngineDestruction, WithAConnectUnderWay) {
  RawListener silent;
  Connecting resolving, connecting;
  std::vector<std::shared_ptr<verbs::QueuePair>> left;
  {
    Engine engine;
    Node a(engine), b(engine);
    ConnectOptions by_name = to_port(silent.port());
    by_name.host = "localhost";
    resolving = start_connect(a, by_name);
    connecting = start_connect(b, to_port(silent.port()));
    RawTcp first = silent.accept();
    left = {a.qp, b.qp};
  }
  EXPECT_TRUE(ended_as_aborted(std::move(resolving)));
  EXPECT_TRUE(ended_as_aborted(std::move(connecting)));
}

TEST(EngineDestruction, WithAConnectThatNobodyDroveYet) {
  RawListener silent;
  auto engine = std::make_unique<Engine>(Engine::Mode::kManual);
  Node a(*engine);
  Connecting connecting = start_connect(a, to_port(silent.port()));
  engine.reset();
  EXPECT_TRUE(ended_as_aborted(std::move(connecting)));
  EXPECT_TRUE(a.qp->post_send(verbs::SendWr{}).ok());
  verbs::Completion c;
  ASSERT_EQ(a.cq.poll({&c, 1}), 1U);
  EXPECT_EQ(c.status, Errc::kFlushed);
}

TEST(EngineDestruction, WithRequestsAndStartupsPending) {
  std::vector<RawTcp> peers;
  std::future<std::tuple<Error, std::unique_ptr<ConnectRequest>>> waiting;
  {
    Engine engine;
    auto listener = listen(engine);
    for (int i = 0; i < 4; ++i) {
      peers.push_back(RawTcp::connect(listener->local().port()));
      ASSERT_TRUE(peers.back().send(i % 2 == 0 ? octets(good_request()) : hex("4d")));
    }
    auto request = next_request(*listener);
    request.reset();
    (void)next_request(*listener);
    waiting = listener->async_accept(cm::as_error(boost::asio::use_future));
  }
  EXPECT_TRUE(ended_as_aborted(std::move(waiting)));
  for (RawTcp& p : peers) EXPECT_NE(p.end(), RawTcp::End::kTimeout);
}

// A request that nobody has decided, in a handler that never ran.
TEST(EngineDestruction, WithARequestInAPendingHandler) {
  RawTcp peer;
  {
    Engine engine(Engine::Mode::kManual);
    const auto listener = listen(engine);
    peer = RawTcp::connect(listener->local().port());
    ASSERT_TRUE(peer.send(octets(good_request())));
    auto accepting = listener->async_accept(cm::as_error(boost::asio::use_future));
    ASSERT_TRUE(eventually([&] {
      engine.poll();
      return accepting.wait_for(0s) == std::future_status::ready;
    }));
    std::shared_ptr<ConnectRequest> request = std::get<1>(accepting.get());
    ASSERT_NE(request, nullptr);
    boost::asio::post(engine.io(), [request] {});
  }
  EXPECT_NE(peer.end(), RawTcp::End::kTimeout);
}

// Whether the accept that was started before has got its request, whose handler waits for its executor.
bool handed_over(Engine& engine, Listener& listener) {
  return eventually([&] {
    engine.poll();
    auto another = listener.async_accept(cm::as_error(boost::asio::use_future));
    engine.poll();
    return another.wait_for(0s) != std::future_status::ready;  // else it was refused: the first still waits
  });
}

// The executor of the handler is not the engine's, and runs after the engine has gone.
TEST(EngineDestruction, WithARequestThatWaitsInAnotherExecutor) {
  RawTcp peer;
  boost::asio::io_context later;
  std::optional<Errc> heard;
  bool had_request = false;
  {
    Engine engine(Engine::Mode::kManual);
    const auto listener = listen(engine);
    peer = RawTcp::connect(listener->local().port());
    ASSERT_TRUE(peer.send(octets(good_request())));
    listener->async_accept(
        boost::asio::bind_executor(later, [&](const Error& e, const std::unique_ptr<ConnectRequest>& request) {
          heard = e.code;
          had_request = request != nullptr;
        }));
    ASSERT_TRUE(handed_over(engine, *listener));
    EXPECT_FALSE(heard.has_value());
  }
  EXPECT_NE(peer.end(), RawTcp::End::kTimeout) << "rejected with its engine";
  later.poll();
  EXPECT_EQ(heard, Errc::kAborted);
  EXPECT_FALSE(had_request);
}

// As before, but the executor never runs it.
TEST(EngineDestruction, WithARequestInAnExecutorThatDropsIt) {
  RawTcp peer;
  std::optional<boost::asio::io_context> later(std::in_place);
  {
    Engine engine(Engine::Mode::kManual);
    const auto listener = listen(engine);
    peer = RawTcp::connect(listener->local().port());
    ASSERT_TRUE(peer.send(octets(good_request())));
    listener->async_accept(boost::asio::bind_executor(
        *later, [](const Error&, const std::unique_ptr<ConnectRequest>&) { FAIL() << "it was dropped"; }));
    ASSERT_TRUE(handed_over(engine, *listener));
  }
  EXPECT_NE(peer.end(), RawTcp::End::kTimeout);
  later.reset();
}

TEST(EngineDestruction, BorrowedContextGoesOn) {
  boost::asio::io_context io;
  Engine server_engine;
  Node server(server_engine);
  const auto listener = listen(server_engine);
  auto work = boost::asio::make_work_guard(io);
  std::thread runner([&] { io.run(); });
  Ends ends;
  {
    Engine engine(io);
    Node client(engine);
    ends = join(client, server, *listener);
    ping_pong(client, server);
  }
  EXPECT_EQ(ending(*ends.server.connection).reason.code, Errc::kConnectionLost);
  ends.client.connection.reset();
  std::promise<void> still_runs;
  boost::asio::post(io, [&] { still_runs.set_value(); });
  get(still_runs.get_future());
  work.reset();
  runner.join();
}

// A child that inherits an engine can neither use nor harm its parent's connections.
TEST(ForkedChild, LeavesTheParentsConnectionsAlone) {
  auto server_engine = std::make_unique<Engine>(), client_engine = std::make_unique<Engine>();
  Node server(*server_engine), client(*client_engine);
  const auto listener = listen(*server_engine);
  const Ends ends = join(client, server, *listener);
  const pid_t pid = ::fork();
  if (pid == 0) {
    bool ok = !client.qp->post_send(verbs::SendWr{}).ok() && !client.cq.wait_for(1ms);
    ok = ok && Listener::listen(*client_engine, {}).error().code == Errc::kInvalidArgument;
    ends.client.connection->disconnect();
    ends.server.connection->abort();
    client.qp->abort();
    client_engine->poll();
    client_engine.reset();  // must not wait for a thread that the child does not have
    ::_exit(ok ? 0 : 1);
  }
  int status = -1;
  ASSERT_TRUE(eventually([&] { return ::waitpid(pid, &status, WNOHANG) == pid; }));
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  ping_pong(client, server);
  EXPECT_EQ(ends.client.connection->disconnected(), std::nullopt);
}

}  // namespace
}  // namespace iwarp::cm
