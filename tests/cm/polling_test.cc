// Threads that poll a completion queue in automatic mode: they do the I/O, and the background thread when they do not.
#include <boost/asio/post.hpp>
#include <semaphore>
#include <thread>

#include "tests/cm/node.h"

namespace iwarp::cm {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace): the vocabulary of these tests
using Clock = std::chrono::steady_clock;

template <class Done>
[[nodiscard]] bool until(Done done) {
  for (const auto end = Clock::now() + kPatience; Clock::now() < end;) {
    if (done()) return true;
  }
  return false;
}

// The next completion, by polling.
verbs::Completion polled(Node& node) {
  verbs::Completion c;
  EXPECT_TRUE(until([&] {
    node.engine.poll(node.cq);
    return node.cq.poll({&c, 1}) == 1;
  }));
  return c;
}

class Polling : public ::testing::Test {
 protected:
  void poll_in_vain() {
    for (int i = 0; i < 100; ++i) engine.poll(server.cq);
  }

  Engine engine, client_engine;
  Node server{engine}, client{client_engine};
  std::unique_ptr<Listener> listener = listen(engine);
  Ends ends = join(client, server, *listener);
};

struct Told final : verbs::Notifier {
  void notify(verbs::CompletionQueue&) noexcept override { told.release(); }
  std::binary_semaphore told{0};
};

TEST_F(Polling, BothEndsGetTheirMessages) {
  constexpr std::uint64_t kRounds = 1000;
  // One more than are under way: the next message may come before the last one's completion is seen.
  for (std::uint64_t i = 0; i < 2; ++i) client.recv(i);
  std::thread other([&] {
    for (std::uint64_t i = 0; i < kRounds; ++i) {
      server.recv(i);
      server.send(i, 64);
      for (int n = 0; n < 2; ++n) EXPECT_EQ(polled(server).status, Errc::kOk);
    }
  });
  for (std::uint64_t i = 0; i < kRounds; ++i) {
    while (polled(client).op != verbs::WcOp::kRecv) {
    }
    client.recv(i);
    client.send(i, 64);
  }
  other.join();
}

TEST_F(Polling, TheThreadThatPollsRunsTheHandlers) {
  bool here = false;
  EXPECT_TRUE(until([&] {
    bool ran = false;
    boost::asio::post(engine.io(), [&, me = std::this_thread::get_id()] {
      here = std::this_thread::get_id() == me;
      std::atomic_ref(ran).store(true);
    });
    while (!std::atomic_ref(ran).load()) engine.poll(server.cq);
    return here;
  }));
}

// As one does that watches its memory: the peer gets its answers, though nobody here calls anything.
TEST_F(Polling, WhoStopsIsServed) {
  for (std::uint64_t i = 0; i < 20; ++i) {
    poll_in_vain();
    client.read(i, server, 4096);
    client.expect(verbs::WcOp::kRead, i);
  }
}

TEST_F(Polling, WhoArmsTheQueueMaySleep) {
  Told told;
  for (std::uint64_t i = 0; i < 20; ++i) {
    server.recv(i);
    poll_in_vain();
    server.cq.arm(verbs::CompletionQueue::Notify::kNext, told);
    poll_in_vain();  // what came before it was armed
    client.send(i, 64);
    ASSERT_TRUE(told.told.try_acquire_for(kPatience)) << i;
    EXPECT_EQ(polled(server).wr_id, i);
  }
}

// More than are looked at one by one.
TEST_F(Polling, OfManyConnections) {
  constexpr std::size_t kMore = 12;
  std::vector<std::unique_ptr<Node>> servers, clients;
  for (std::size_t i = 0; i < kMore; ++i) {
    servers.push_back(std::make_unique<Node>(engine));
    clients.push_back(std::make_unique<Node>(client_engine));
    ASSERT_EQ(join(*clients.back(), *servers.back(), *listener).client.error.code, Errc::kOk);
  }
  poll_in_vain();
  for (std::size_t i = 0; i < kMore; ++i) {
    servers[i]->recv(i);
    clients[i]->send(i, 64);
    EXPECT_EQ(polled(*servers[i]).wr_id, i);
  }
}

}  // namespace
}  // namespace iwarp::cm
