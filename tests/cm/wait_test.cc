// CompletionQueue::wait_for() over an engine: leader and followers, and no completion that anybody sleeps through.
#include <algorithm>
#include <array>
#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <condition_variable>
#include <ctime>
#include <functional>
#include <future>
#include <mutex>
#include <optional>
#include <semaphore>
#include <stop_token>
#include <thread>

#include "tests/cm/node.h"

namespace iwarp::cm {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace): the vocabulary of these tests

void serve_echo(Node& server, std::uint64_t rounds) {
  for (std::uint64_t i = 0; i < rounds; ++i) {
    server.expect(verbs::WcOp::kRecv, i);
    server.recv(i + 1);
    server.send(i, 64);
    server.expect(verbs::WcOp::kSend, i);
  }
}

void ping(Node& client, std::uint64_t rounds) {
  for (std::uint64_t i = 0; i < rounds; ++i) {
    client.recv(i);
    client.send(i, 64);
    client.expect(verbs::WcOp::kSend, i);
    client.expect(verbs::WcOp::kRecv, i);
  }
}

TEST(Wait, PingPongBetweenTwoEngines) {
  Engine server_engine, client_engine;
  Node server(server_engine), client(client_engine);
  const auto listener = listen(server_engine);
  server.recv(0);
  const Ends ends = join(client, server, *listener);
  std::thread other([&] { serve_echo(server, 2000); });
  ping(client, 2000);
  other.join();
}

// Each thread has its own queue pair and completion queue; both engines are shared by all of them.
TEST(Wait, ManyThreadsOnOneEngine) {
  constexpr std::size_t kPairs = 6;
  constexpr std::uint64_t kRounds = 300;
  Engine server_engine, client_engine;
  const auto listener = listen(server_engine);
  std::vector<std::unique_ptr<Node>> servers, clients;
  for (std::size_t i = 0; i < kPairs; ++i) {
    servers.push_back(std::make_unique<Node>(server_engine));
    clients.push_back(std::make_unique<Node>(client_engine));
    servers.back()->recv(0);
    ASSERT_EQ(join(*clients.back(), *servers.back(), *listener).client.error.code, Errc::kOk);
  }
  std::vector<std::thread> all;
  for (std::size_t i = 0; i < kPairs; ++i) {
    all.emplace_back([&, i] { serve_echo(*servers[i], kRounds); });
    all.emplace_back([&, i] { ping(*clients[i], kRounds); });
  }
  for (auto& t : all) t.join();
}

// Both ends in one engine: whoever leads makes the completions of the others.
TEST(Wait, BothEndsInOneEngine) {
  Engine engine;
  Node server(engine), client(engine);
  const auto listener = listen(engine);
  server.recv(0);
  const Ends ends = join(client, server, *listener);
  std::thread other([&] { serve_echo(server, 1000); });
  ping(client, 1000);
  other.join();
}

TEST(Wait, WakesWhenAnotherThreadsPostCompletes) {
  Engine server_engine, client_engine;
  Node server(server_engine), client(client_engine);
  const auto listener = listen(server_engine);
  const Ends ends = join(client, server, *listener);
  for (std::uint64_t i = 0; i < 100; ++i) {
    server.recv(i);
    std::promise<void> waiting;
    std::thread waiter([&] {
      waiting.set_value();
      client.expect(verbs::WcOp::kSend, i);
    });
    waiting.get_future().wait();
    if (i % 2 == 0) std::this_thread::yield();
    const auto begin = std::chrono::steady_clock::now();
    client.send(i, 64);  // completes in this thread, as soon as TCP has taken it
    waiter.join();
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s);
    server.expect(verbs::WcOp::kRecv, i);
  }
}

TEST(Wait, ThreadsOnOneQueueAreAllWoken) {
  Engine server_engine, client_engine;
  Node server(server_engine), client(client_engine);
  const auto listener = listen(server_engine);
  const Ends ends = join(client, server, *listener);
  server.recv(1);
  std::atomic<int> woken{0};
  std::vector<std::thread> waiters;
  for (int i = 0; i < 4; ++i) {
    waiters.emplace_back([&] {
      if (server.cq.wait_for(kPatience)) ++woken;
    });
  }
  std::this_thread::sleep_for(20ms);
  client.send(1, 10);
  for (auto& w : waiters) w.join();
  EXPECT_EQ(woken, 4);
}

TEST(Wait, TimesOutInTimeWhoeverLeads) {
  Engine engine;
  Node a(engine), b(engine);
  const auto listener = listen(engine);
  std::thread leader([&] { EXPECT_FALSE(a.cq.wait_for(400ms)); });
  std::this_thread::sleep_for(50ms);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_FALSE(b.cq.wait_for(50ms));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 50ms);
  EXPECT_FALSE(b.cq.wait_for(0ms));
  EXPECT_FALSE(b.cq.wait_for(-1ms));
  leader.join();
}

// A waiting thread polls its few connections for a while before it sleeps; the caller's deadline ends that too.
TEST(Wait, AShortTimeoutEndsTheSpin) {
  Engine server_engine, client_engine;
  Node server(server_engine), client(client_engine);
  const auto listener = listen(server_engine);
  const Ends ends = join(client, server, *listener);
  auto shortest = std::chrono::steady_clock::duration::max();
  for (int i = 0; i < 50; ++i) {
    ping_pong(client, server);  // so the next wait may spin
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_FALSE(client.cq.wait_for(50us));
    shortest = std::min(shortest, std::chrono::steady_clock::now() - begin);
  }
  EXPECT_GE(shortest, 50us);
  EXPECT_LT(shortest, 400us);  // whole spins are of 500 us; the shortest of many tries sees no other process
}

std::chrono::nanoseconds processor_time() {
  timespec t{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec);
}

TEST(Wait, WithoutSpinsItSleeps) {
  Engine server_engine, client_engine(Engine::Mode::kAutomatic, 0us);
  Node server(server_engine), client(client_engine);
  const auto listener = listen(server_engine);
  const Ends ends = join(client, server, *listener);
  std::array<std::chrono::nanoseconds, 51> used{};
  for (auto& one : used) {
    ping_pong(client, server);  // so that the next one would spin
    const auto before = processor_time();
    EXPECT_FALSE(client.cq.wait_for(2ms));
    one = processor_time() - before;
  }
  std::nth_element(used.begin(), used.begin() + 25, used.end());
  EXPECT_LT(used[25], 350us);  // a spin takes 500 us
}

// The alarm that one long wait has left behind goes off while the next one spins; that one ends in time all the same.
TEST(Wait, AnAlarmThatRanDuringASpinIsSetAgain) {
  if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "nothing spins on one processor";
  Engine server_engine, client_engine(Engine::Mode::kAutomatic, 1s);
  Node server(server_engine), client(client_engine);
  const auto listener = listen(server_engine);
  const Ends ends = join(client, server, *listener);
  client.recv(1);
  std::jthread peer([&] {
    std::this_thread::sleep_for(1600ms);
    server.send(1, 8);
  });
  EXPECT_TRUE(client.cq.wait_for(2400ms));  // spins for a second, then sets the alarm and sleeps; 800 ms are left
  (void)client.next();
  const auto begin = std::chrono::steady_clock::now();
  std::jthread rescuer([&](const std::stop_token& over) {
    std::mutex mu;
    std::unique_lock lock(mu);
    std::condition_variable_any().wait_for(lock, over, 6s, [] { return false; });
    boost::asio::post(client_engine.io(), [] {});
  });
  EXPECT_FALSE(client.cq.wait_for(2500ms));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s);
}

// A server that takes no octets any more.
class Stalled {
 public:
  static constexpr std::size_t kBytes = std::size_t{4} << 20;

  // What `client` writes comes to a halt.
  explicit Stalled(Node& client) {
    {
      std::jthread runner([this](const std::stop_token& over) {
        const auto work = boost::asio::make_work_guard(io_);
        const std::stop_callback stop(over, [this] { io_.stop(); });
        io_.run();
      });
      listener_ = listen(engine_);
      join(client, server_, *listener_);
    }
    for (std::uint64_t i = 0; i < 32; ++i) client.write(i, server_, kBytes);
    for (; client.cq.wait_for(50ms); ++written_) EXPECT_EQ(client.next().status, Errc::kOk);
    EXPECT_LT(written_, 32U) << "TCP took everything";
  }

 private:
  boost::asio::io_context io_;
  Engine engine_{io_};
  Node server_{engine_, {}, kBytes};
  std::unique_ptr<Listener> listener_;
  unsigned written_ = 0;
};

TEST(Wait, ASenderWhomTcpBlocksSoonStopsSpinning) {
  Engine engine;
  Node client(engine, {}, Stalled::kBytes);
  Stalled stalled(client);
  const auto begin = std::chrono::steady_clock::now();
  const auto used = processor_time();
  for (int i = 0; i < 50; ++i) EXPECT_FALSE(client.cq.wait_for(500us));  // not longer than a spin
  EXPECT_LT(2 * (processor_time() - used), std::chrono::steady_clock::now() - begin);
}

// Bulk that nobody is told of keeps a spinning thread at the sockets; the reactor has its turns in the midst of that.
TEST(Wait, OneLongSpinLetsTheReactorHaveItsTurns) {
  std::atomic<unsigned> handlers{0};  // that ran while the other thread spun
  std::atomic<bool> counting{true};
  std::function<void()> next;
  std::chrono::steady_clock::time_point before_the_end;
  Engine server_engine, client_engine;
  Node server(server_engine), client(client_engine);
  const auto listener = listen(server_engine);
  const Ends ends = join(client, server, *listener);
  std::jthread writer([&](const std::stop_token& over) {
    while (!over.stop_requested()) {
      server.write(1, client, 64);
      server.expect(verbs::WcOp::kWrite, 1);
    }
  });
  before_the_end = std::chrono::steady_clock::now() + 90ms;
  next = [&] {
    if (!counting) return;
    if (std::chrono::steady_clock::now() < before_the_end) ++handlers;
    boost::asio::post(client_engine.io(), next);
  };
  std::jthread asker([&] {
    std::this_thread::sleep_for(5ms);  // the background thread has left the lead
    boost::asio::post(client_engine.io(), next);
  });
  EXPECT_FALSE(client.cq.wait_for(100ms));  // Writes complete here without a word
  EXPECT_GE(handlers, 200U);                // some turns, of 64 handlers each: there are always more
  counting = false;
}

// Waits that find their octets at the first look, one behind the other, leave no gap for new connections, timers and
// blocked senders: the reactor must get its turns all the same.
TEST(Wait, BusyConnectionsDoNotKeepTheReactorFromTheOthers) {
  Engine server_engine, client_engine;
  Node server(server_engine), client(client_engine);
  const auto listener = listen(server_engine);
  const Ends ends = join(client, server, *listener);
  const auto wait_all_the_time = [&](std::chrono::milliseconds time) {
    const auto until = std::chrono::steady_clock::now() + time;
    bool over = false;
    do {
      over = std::chrono::steady_clock::now() >= until;
      client.recv(1);
      server.send(2, 16);  // in the client's socket when this returns
      client.expect(verbs::WcOp::kRecv, 1);
      server.expect(verbs::WcOp::kSend, 2);
    } while (!over);
  };
  wait_all_the_time(5ms);  // until the background thread has left the lead
  for (int i = 0; i < 10; ++i) {
    std::atomic<bool> served{false};
    boost::asio::post(client_engine.io(), [&] { served = true; });
    wait_all_the_time(3ms);
    EXPECT_TRUE(served) << "round " << i;
    while (!served) std::this_thread::sleep_for(1ms);
  }
}

// When the leader leaves, a follower takes over; when all have left, the background thread does.
TEST(Wait, TheLeadIsHandedOn) {
  Engine server_engine, client_engine;
  Node server(server_engine), client(client_engine);
  const auto listener = listen(server_engine);
  const Ends ends = join(client, server, *listener);
  Node bystander(server_engine);
  for (std::uint64_t i = 0; i < 20; ++i) {
    server.recv(i);
    std::thread leader([&] { (void)bystander.cq.wait_for(5ms); });
    std::thread follower([&] { server.expect(verbs::WcOp::kRecv, i); });
    leader.join();
    client.send(i, 64);
    follower.join();
    client.expect(verbs::WcOp::kSend, i);
  }
  ends.client.connection->disconnect();
  EXPECT_EQ(ending(*ends.server.connection).reason.code, Errc::kPeerClosed);
}

// A wait for something of the application's own, of which a notifier tells.
class WaitForAFlag : public ::testing::Test {
 protected:
  // As a completion channel has it.
  struct Bell final : verbs::Notifier {
    explicit Bell(Engine& e) : engine(e) {}
    void notify(verbs::CompletionQueue&) noexcept override {
      by.store(std::this_thread::get_id());
      rung.fetch_add(1);
      engine.look_again();
    }
    Engine& engine;
    std::atomic<unsigned> rung{0};
    std::atomic<std::thread::id> by;
  };
  static TimePoint after(std::chrono::nanoseconds time) { return std::chrono::steady_clock::now() + time; }
  [[nodiscard]] bool rings(unsigned times) {
    return engine.wait_until([&] { return bell.rung.load() >= times; }, after(kPatience));
  }

  Engine engine, client_engine;
  Bell bell{engine};
  Node server{engine}, client{client_engine};
  std::unique_ptr<Listener> listener = listen(engine);
  Ends ends = join(client, server, *listener);
};

TEST_F(WaitForAFlag, TheWaitingThreadMovesTheOctets) {
  unsigned here = 0;
  for (unsigned i = 1; i <= 200; ++i) {
    server.recv(i);
    server.cq.arm(verbs::CompletionQueue::Notify::kNext, bell);
    std::jthread sender([&] { client.send(i, 64); });
    ASSERT_TRUE(rings(i));
    here += bell.by.load() == std::this_thread::get_id() ? 1 : 0;
    server.expect(verbs::WcOp::kRecv, i);
    client.expect(verbs::WcOp::kSend, i);
  }
  EXPECT_GT(here, 20U);
}

TEST_F(WaitForAFlag, EndsWhenItsTimeIsUp) {
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_FALSE(engine.wait_until([] { return false; }, begin + 20ms));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 20ms);
  EXPECT_TRUE(engine.wait_until([] { return true; }, begin)) << "it is asked all the same";
}

// Who sleeps elsewhere behind its wait does not leave the I/O to nobody until the background thread looks for itself
// whether it is needed, after 1 ms at least.
TEST_F(WaitForAFlag, WhoIsAboutToSleepHandsTheIoOver) {
  std::vector<std::chrono::steady_clock::duration> took;
  for (int i = 0; i < 60; ++i) {
    EXPECT_FALSE(engine.wait_until([] { return false; }, after(200us)));
    const auto begin = std::chrono::steady_clock::now();
    engine.hand_over();
    std::promise<void> ran;
    boost::asio::post(engine.io(), [&] { ran.set_value(); });
    ASSERT_EQ(ran.get_future().wait_for(kPatience), std::future_status::ready);
    took.push_back(std::chrono::steady_clock::now() - begin);
  }
  std::ranges::sort(took);
  EXPECT_LT(took[took.size() / 4], 900us);
}

TEST_F(WaitForAFlag, NobodyIsHandedWhatAnotherThreadIsWaitingFor) {
  std::atomic<bool> over{false};
  std::jthread other([&] { EXPECT_TRUE(engine.wait_until([&] { return over.load(); }, after(kPatience))); });
  const auto it_leads = [&] {
    std::promise<std::thread::id> ran;
    boost::asio::post(engine.io(), [&] { ran.set_value(std::this_thread::get_id()); });
    return ran.get_future().get() == other.get_id();
  };
  while (!it_leads()) std::this_thread::yield();
  for (int i = 0; i < 20; ++i) {
    engine.hand_over();
    EXPECT_TRUE(it_leads());
  }
  over = true;
  engine.look_again();
}

// Asleep in the reactor, or behind another thread that leads.
TEST_F(WaitForAFlag, AnotherThreadMayEndIt) {
  for (const bool follows : {false, true}) {
    std::atomic<bool> leader_over{false}, over{false};
    std::optional<std::jthread> leader;
    if (follows) {
      leader.emplace([&] { EXPECT_TRUE(engine.wait_until([&] { return leader_over.load(); }, after(kPatience))); });
      std::this_thread::sleep_for(5ms);
    }
    auto waited = std::async(std::launch::async, [&] {
      return engine.wait_until([&] { return over.load(); }, after(std::chrono::hours{1}));
    });
    std::this_thread::sleep_for(10ms);
    over = true;
    engine.look_again();
    ASSERT_EQ(waited.wait_for(kPatience), std::future_status::ready);
    EXPECT_TRUE(waited.get());
    leader_over = true;
    engine.look_again();
  }
}

// Those that wait for queues, for flags, and the notifiers among them, take each other's locks in no circle, and none
// is forgotten.
TEST_F(WaitForAFlag, BesideWaitsForQueues) {
  constexpr unsigned kMessages = 400;
  Node other{engine}, peer{client_engine};
  ASSERT_EQ(join(peer, other, *listener).client.error.code, Errc::kOk);
  std::counting_semaphore<> room_of_queue{16}, room_of_flag{16};
  std::jthread of_queue([&] {
    for (unsigned i = 0; i < kMessages; ++i) {
      other.expect(verbs::WcOp::kRecv, i);
      room_of_queue.release();
    }
  });
  std::jthread of_flag([&] {
    for (unsigned i = 1; i <= kMessages; ++i) {
      server.cq.arm(verbs::CompletionQueue::Notify::kNext, bell);
      if (!server.cq.empty()) {  // came before
        server.cq.disarm();
      } else if (!engine.wait_until([&] { return !server.cq.seems_empty(); }, after(kPatience))) {
        ADD_FAILURE() << i;
        return;
      }
      server.expect(verbs::WcOp::kRecv, i - 1);
      room_of_flag.release();
    }
  });
  for (unsigned i = 0; i < kMessages; ++i) {
    ASSERT_TRUE(room_of_queue.try_acquire_for(kPatience) && room_of_flag.try_acquire_for(kPatience)) << i;
    other.recv(i);
    server.recv(i);
    client.send(i, 64);
    peer.send(i, 64);
    client.expect(verbs::WcOp::kSend, i);
    peer.expect(verbs::WcOp::kSend, i);
  }
}

}  // namespace
}  // namespace iwarp::cm
