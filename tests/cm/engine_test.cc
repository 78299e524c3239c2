// Who runs the I/O: the background thread, the caller, or the caller's own io_context.
#include "iwarp/cm/engine.h"

#include <poll.h>
#include <unistd.h>

#include <boost/asio/bind_executor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/system_executor.hpp>
#include <boost/asio/use_future.hpp>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <future>
#include <set>

#include "iwarp/verbs/completion_channel.h"
#include "tests/cm/node.h"

namespace iwarp::cm {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace): the vocabulary of these tests

// Asio completes futures in threads of its own, which it starts at the first one. They are not ours: let them be there
// before we count.
const bool asio_threads_run = [] {
  boost::asio::post(boost::asio::system_executor(), boost::asio::use_future).get();
  return true;
}();

std::set<std::string> thread_ids() {
  std::set<std::string> ids;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) ids.insert(entry.path().filename());
  return ids;
}

// How often these threads have gone to sleep.
std::uint64_t sleeps(const std::set<std::string>& ids) {
  static const std::string kField = "voluntary_ctxt_switches:";
  std::uint64_t sum = 0;
  for (const std::string& id : ids) {
    std::ifstream status("/proc/self/task/" + id + "/status");
    for (std::string line; std::getline(status, line);) {
      if (line.compare(0, kField.size(), kField) == 0) sum += std::stoull(line.substr(kField.size()));
    }
  }
  return sum;
}

TEST(Engine, HasNoThreadBeforeTheFirstListenOrConnect) {
  const std::size_t before = threads();
  Engine engine;
  Node node(engine);
  EXPECT_FALSE(node.cq.wait_for(1ms));
  EXPECT_EQ(threads(), before);
  const auto listener = listen(engine);
  EXPECT_EQ(threads(), before + 1);
  const auto second = listen(engine);
  EXPECT_EQ(threads(), before + 1);
}

TEST(Engine, ThreadGoesWithTheEngine) {
  const std::size_t before = threads();
  {
    Engine engine;
    const auto listener = listen(engine);
  }
  EXPECT_EQ(threads(), before);
}

// An application may wait for its signals in a thread of its own choice.
TEST(Engine, ThreadTakesNoSignals) {
  Engine engine;
  const auto listener = listen(engine);
  std::promise<bool> blocked;
  boost::asio::post(engine.io(), [&] {
    sigset_t mask;
    ::pthread_sigmask(SIG_BLOCK, nullptr, &mask);
    blocked.set_value(::sigismember(&mask, SIGTERM) == 1 && ::sigismember(&mask, SIGUSR1) == 1);
  });
  EXPECT_TRUE(blocked.get_future().get());
  sigset_t mine;
  ::pthread_sigmask(SIG_BLOCK, nullptr, &mine);
  EXPECT_EQ(::sigismember(&mine, SIGTERM), 0) << "the caller's are as they were";
}

TEST(Engine, SleepsWhenNothingHappens) {
  auto others = thread_ids();
  Engine server_engine, client_engine;
  Node server(server_engine), client(client_engine);
  const auto listener = listen(server_engine);
  const Ends ends = join(client, server, *listener);
  ping_pong(client, server);
  std::set<std::string> engines;
  for (const auto& id : thread_ids()) {
    if (others.count(id) == 0) engines.insert(id);
  }
  ASSERT_EQ(engines.size(), 2U);
  std::this_thread::sleep_for(300ms);  // what the ping-pong set in motion comes to rest
  const std::uint64_t before = sleeps(engines);
  std::this_thread::sleep_for(1s);
  EXPECT_EQ(sleeps(engines) - before, 0U) << "wake-ups of two idle engines in a second";

  // And while a thread of the application has taken the I/O over for long.
  std::thread waiter([&] { EXPECT_FALSE(client.cq.wait_for(1500ms)); });
  std::this_thread::sleep_for(200ms);
  const std::uint64_t then = sleeps(engines);
  std::this_thread::sleep_for(1s);
  EXPECT_EQ(sleeps(engines) - then, 0U);
  waiter.join();
  ping_pong(client, server);
}

// Neither a far deadline nor none at all makes a thread look now and then.
TEST(Engine, ALongWaitIsOneSleep) {
  constexpr auto kWait = 1200ms;  // longer than Asio sleeps at a time
  Engine far(Engine::Mode::kManual), none(Engine::Mode::kManual), soon(Engine::Mode::kManual);
  const auto others = thread_ids();
  std::promise<void> far_over, none_over;
  std::thread far_waiter([&, future = far_over.get_future()] { EXPECT_TRUE(far.wait_for(future, 1h)); });
  std::thread none_waiter(
      [&, future = none_over.get_future()] { EXPECT_TRUE(none.wait_for(future, std::chrono::nanoseconds::max())); });
  std::set<std::string> waiters;
  for (const auto& id : thread_ids()) {
    if (others.count(id) == 0) waiters.insert(id);
  }
  ASSERT_EQ(waiters.size(), 2U);
  std::this_thread::sleep_for(100ms);
  const std::uint64_t before = sleeps(waiters);

  // Meanwhile: a deadline is kept.
  Node node(soon);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_FALSE(node.cq.wait_for(kWait));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, kWait);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, kWait + 10s);

  EXPECT_EQ(sleeps(waiters) - before, 0U);
  boost::asio::post(far.io(), [&] { far_over.set_value(); });
  boost::asio::post(none.io(), [&] { none_over.set_value(); });
  far_waiter.join();
  none_waiter.join();
}

TEST(Engine, ADeadlineIsKeptThoughAnEarlierWaitHadAFarOne) {
  Engine engine(Engine::Mode::kManual);
  std::promise<void> soon, never;
  const auto told = soon.get_future(), untold = never.get_future();
  boost::asio::post(engine.io(), [&] { soon.set_value(); });
  EXPECT_TRUE(engine.wait_for(told, 1h));
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_FALSE(engine.wait_for(untold, 1200ms));  // longer than Asio sleeps at a time
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 30s);
}

// It has come while poll() was at work, and nobody polls again.
TEST(Engine, AThreadTakesOverFromAPollerThatLeaves) {
  Engine engine(Engine::Mode::kManual);
  verbs::CompletionQueue cq(4, &engine);
  std::promise<void> polling;
  std::thread waiter([&] {
    get(polling.get_future());
    EXPECT_TRUE(cq.wait_for(20s));
  });
  boost::asio::post(engine.io(), [&] {
    polling.set_value();
    std::this_thread::sleep_for(200ms);  // the other one follows by then
  });
  engine.poll();
  std::this_thread::sleep_for(50ms);
  boost::asio::post(engine.io(), [&] { EXPECT_TRUE(cq.push(verbs::Completion{})); });
  waiter.join();
}

// A thread that sleeps in poll(2) on its own needs the background thread.
TEST(Engine, AThreadThatWaitsForAFutureDoesTheIo) {
  Engine engine;
  const auto caller = std::this_thread::get_id();
  // Nothing was started: no other thread could run this.
  std::promise<std::thread::id> promise;
  auto future = promise.get_future();
  boost::asio::post(engine.io(), [&] { promise.set_value(std::this_thread::get_id()); });
  EXPECT_TRUE(engine.wait_for(future, 5s));
  std::promise<void> never;
  const auto unready = never.get_future();
  EXPECT_FALSE(engine.wait_for(unready, 10ms));
  EXPECT_EQ(future.get(), caller);
}

TEST(Engine, FollowersHearOfTheirFutures) {
  Engine engine;
  constexpr int kThreads = 4;
  std::array<std::promise<void>, kThreads> promises;
  std::vector<std::jthread> waiting;
  std::atomic<int> heard{0};
  for (auto& promise : promises) {
    waiting.emplace_back([&engine, &heard, future = promise.get_future()] {
      if (engine.wait_for(future, 10s)) ++heard;
    });
  }
  for (auto& promise : promises) {
    std::this_thread::sleep_for(5ms);
    boost::asio::post(engine.io(), [&promise] { promise.set_value(); });
  }
  waiting.clear();
  EXPECT_EQ(heard, kThreads);
}

TEST(Engine, MakesProgressWhileNobodyWaits) {
  Engine server_engine, client_engine;
  Node server(server_engine), client(client_engine);
  const auto listener = listen(server_engine);
  const Ends ends = join(client, server, *listener);
  verbs::CompletionChannel channel;
  for (std::uint64_t i = 0; i < 50; ++i) {
    server.recv(i);
    channel.arm(server.cq);
    client.send(i, 100);
    pollfd p{channel.fd(), POLLIN, 0};
    ASSERT_EQ(::poll(&p, 1, 30'000), 1);
    ASSERT_EQ(channel.next_event(), &server.cq);
    server.expect(verbs::WcOp::kRecv, i);
    client.expect(verbs::WcOp::kSend, i);
  }
}

// Two manual engines in one thread: nothing moves but in poll().
class Manual : public ::testing::Test {
 protected:
  template <class Condition>
  bool poll_until(Condition condition) {
    return eventually([&] {
      server_engine_.poll();
      client_engine_.poll();
      return condition();
    });
  }
  template <class T>
  T poll_for(std::future<T> f) {
    if (!poll_until([&] { return f.wait_for(0s) == std::future_status::ready; }))
      throw std::runtime_error("operation never ended");
    return f.get();
  }
  verbs::Completion poll_completion(Node& node) {
    if (!poll_until([&] { return !node.cq.empty(); })) throw std::runtime_error("completion never came");
    return node.next();
  }
  void connect() {
    auto connecting = start_connect(client_, to(*listener_));
    auto [error, request] = poll_for(listener_->async_accept(cm::as_error(boost::asio::use_future)));
    ASSERT_EQ(error.code, Errc::kOk);
    auto accepting = request->async_accept(server_.qp, {}, cm::as_error(boost::asio::use_future));
    auto [c_error, c] = poll_for(std::move(connecting));
    auto [s_error, s] = poll_for(std::move(accepting));
    ASSERT_EQ(c_error.code, Errc::kOk);
    ASSERT_EQ(s_error.code, Errc::kOk);
    client_connection_ = c;
  }

  std::size_t threads_before_ = threads();
  Engine server_engine_{Engine::Mode::kManual}, client_engine_{Engine::Mode::kManual};
  Node server_{server_engine_}, client_{client_engine_};
  std::unique_ptr<Listener> listener_ = listen(server_engine_);
  std::shared_ptr<Connection> client_connection_;
};

TEST_F(Manual, PollDrivesEverything) {
  connect();
  EXPECT_EQ(threads(), threads_before_);
  for (std::uint64_t i = 0; i < 100; ++i) {
    server_.recv(i);
    client_.send(i, 64);
    EXPECT_EQ(poll_completion(server_).wr_id, i);
    EXPECT_EQ(poll_completion(client_).wr_id, i);
  }
  client_connection_->disconnect();
  EXPECT_EQ(poll_for(client_connection_->async_wait_disconnected(boost::asio::use_future)).reason.code, Errc::kAborted);
}

TEST_F(Manual, WaitDrivesTheEngineOfItsQueue) {
  connect();
  server_.recv(0);
  std::atomic<std::uint64_t> taken{0};
  std::thread other([&] {
    for (std::uint64_t i = 0; i < 100; ++i) {
      server_.expect(verbs::WcOp::kRecv, i);
      server_.recv(i + 1);
      ++taken;
    }
  });
  for (std::uint64_t i = 0; i < 100; ++i) {
    client_.send(i, 64);
    client_.expect(verbs::WcOp::kSend, i);
    // No faster than the receiver posts.
    ASSERT_TRUE(eventually([&] { return taken > i; }));
  }
  other.join();
}

// Sending is the first to hear of it.
TEST_F(Manual, ATapSeesAResetThatSendingMet) {
  struct Tap : ByteTap {
    void sent(const std::vector<ConstBytes>&, TimePoint) override {}
    void received(const std::vector<ConstBytes>&, TimePoint) override {}
    void sent_end(End, TimePoint) override {}
    void received_end(End how, TimePoint) override { ends.push_back(how); }
    std::vector<End> ends;
  };
  const auto tap = std::make_shared<Tap>();
  client_engine_.set_tap_maker([&](const TapTarget&) { return tap; });
  connect();
  server_.qp->abort();
  for (int i = 0; i < 10; ++i) server_engine_.poll();
  client_.send(1, 10);
  EXPECT_EQ(poll_completion(client_).status, Errc::kFlushed);
  EXPECT_EQ(tap->ends, std::vector{ByteTap::End::kReset});
}

// The handler runs in the thread that polls, and ends when the one that leads has looked in vain and sleeps again.
TEST_F(Manual, AThreadHearsOfAFutureThatAnotherThreadsPollMadeReady) {
  connect();
  std::promise<void> told;
  const auto future = told.get_future();
  client_connection_->async_wait_disconnected(
      boost::asio::bind_executor(boost::asio::system_executor(), [&](const stream::Disconnected&) {
        std::this_thread::sleep_for(100ms);
        told.set_value();
      }));
  std::atomic<bool> over{false};
  std::thread poller([&] {
    std::this_thread::sleep_for(50ms);  // the other one leads by now
    server_.qp->abort();
    while (!over) {
      server_engine_.poll();
      client_engine_.poll();
    }
  });
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(client_engine_.wait_for(future, 10s));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s);
  over = true;
  poller.join();
}

TEST_F(Manual, PollFromSeveralThreads) {
  connect();
  std::atomic<bool> over{false};
  std::vector<std::thread> pollers;
  for (int i = 0; i < 3; ++i) {
    pollers.emplace_back([&] {
      while (!over) {
        server_engine_.poll();
        client_engine_.poll();
      }
    });
  }
  for (std::uint64_t i = 0; i < 200; ++i) {
    server_.recv(i);
    client_.send(i, 64);
    EXPECT_EQ(server_.next().wr_id, i);
    EXPECT_EQ(client_.next().wr_id, i);
  }
  over = true;
  for (auto& p : pollers) p.join();
}

TEST(Borrowed, RunsInTheCallersContextAndThreads) {
  const std::size_t before = threads();
  boost::asio::io_context io;
  const auto work = boost::asio::make_work_guard(io);
  Engine engine(io);
  EXPECT_EQ(&engine.io(), &io);
  const auto listener = listen(engine);
  EXPECT_EQ(threads(), before);
  std::vector<std::thread> runners;
  for (int i = 0; i < 3; ++i) runners.emplace_back([&] { io.run(); });
  {
    std::vector<std::unique_ptr<Node>> nodes;
    for (int i = 0; i < 20; ++i) {
      Node& server = *nodes.emplace_back(std::make_unique<Node>(engine));
      Node& client = *nodes.emplace_back(std::make_unique<Node>(engine));
      const Ends ends = join(client, server, *listener);
      ASSERT_EQ(ends.client.error.code, Errc::kOk);
      ping_pong(client, server);
      if (i % 2 == 0) ends.server.connection->disconnect();
    }
  }
  io.stop();
  for (auto& r : runners) r.join();
}

}  // namespace
}  // namespace iwarp::cm
