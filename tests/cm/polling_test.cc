// Threads that poll a completion queue in automatic mode: they do the I/O, and the background thread when they do not.
#include <algorithm>
#include <array>
#include <boost/asio/post.hpp>
#include <semaphore>
#include <thread>

#include "cm/engine_pace.h"
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

// Where others want the processor: who polls sleeps meanwhile, and has each message still.
TEST_F(Polling, WhoDozesGetsItsMessages) {
  constexpr std::uint64_t kRounds = 200;
  std::uint64_t dozed = 0;
  for (std::uint64_t i = 0; i < kRounds; ++i) {
    server.recv(i);
    poll_in_vain();
    if (i % 2 == 1) client.send(i, 64);
    for (int n = 0; n < 5; ++n) dozed += engine.doze(server.cq) ? 1 : 0;
    if (i % 2 == 0) client.send(i, 64);
    verbs::Completion c;
    EXPECT_TRUE(until([&] {
      engine.poll(server.cq);
      if (server.cq.poll({&c, 1}) == 1) return true;
      (void)engine.doze(server.cq);
      return false;
    }));
    EXPECT_EQ(c.wr_id, i);
    client.expect(verbs::WcOp::kSend, i);
  }
  EXPECT_GT(dozed, 0U);
}

TEST_F(Polling, WhatCameEndsADoze) {
  auto shortest = Clock::duration::max();
  for (std::uint64_t i = 0; i < 200; ++i) {
    server.recv(i);
    poll_in_vain();
    client.send(i, 64);
    client.expect(verbs::WcOp::kSend, i);
    const auto begin = Clock::now();
    if (engine.doze(server.cq)) shortest = std::min(shortest, Clock::now() - begin);
    EXPECT_EQ(polled(server).wr_id, i);
  }
  EXPECT_LT(shortest, pace::kDoze) << "each lasted as long as one may";
}

TEST_F(Polling, NobodyDozesInVain) {
  server.recv(1);
  client.send(1, 64);
  EXPECT_TRUE(until([&] {
    engine.poll(server.cq);
    return !server.cq.empty();
  }));
  EXPECT_FALSE(engine.doze(server.cq)) << "a completion waits";
  Engine idle;
  Node lonely{idle};
  for (int i = 0; i < 100; ++i) idle.poll(lonely.cq);
  EXPECT_FALSE(idle.doze(lonely.cq)) << "nothing can come";
}

// What waits in the socket for it would end each doze at once, and keep the processor from who is to post the Receive.
TEST_F(Polling, NobodyDozesWhileAMessageWaitsForAReceive) {
  stream::Options patient;
  patient.receive_wait = 60s;
  Node waiting{engine, patient}, sender{client_engine};
  const auto other = listen(engine);
  const Ends joined = join(sender, waiting, *other);
  sender.send(1, 64);
  sender.send(2, 64);
  sender.expect(verbs::WcOp::kSend, 1);
  sender.expect(verbs::WcOp::kSend, 2);
  // Once it has been read, by whomever: never again.
  EXPECT_TRUE(until([&] {
    for (int i = 0; i < 1000; ++i) {
      engine.poll(waiting.cq);
      if (engine.doze(waiting.cq)) return false;
    }
    return true;
  }));
  waiting.recv(1);
  EXPECT_EQ(polled(waiting).wr_id, 1U);
}

// It may have read what this thread would wait for.
TEST_F(Polling, NobodyDozesWhileTheThreadLeads) {
  Told told;
  poll_in_vain();
  server.cq.arm(verbs::CompletionQueue::Notify::kNext, told);
  EXPECT_TRUE(until([&] { return !engine.doze(server.cq); }));
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

// A message that comes behind the arming does not wait until the background thread looks for itself whether it is
// needed, after 1 ms at least: whether it has gone already, or was only just asked to.
TEST_F(Polling, WhoArmsTheQueueHandsTheIoOver) {
  Told told;
  for (const int polls : {16, 2000}) {  // the 16th asks it to
    std::vector<Clock::duration> took;
    for (std::uint64_t i = 0; i < 60; ++i) {
      server.recv(i);
      for (int n = 0; n < polls; ++n) engine.poll(server.cq);
      const auto begin = Clock::now();
      server.cq.arm(verbs::CompletionQueue::Notify::kNext, told);
      client.send(i, 64);
      ASSERT_TRUE(told.told.try_acquire_for(kPatience)) << i;
      took.push_back(Clock::now() - begin);
      verbs::Completion c;
      ASSERT_EQ(server.cq.poll({&c, 1}), 1U);
      client.expect(verbs::WcOp::kSend, i);
    }
    std::ranges::sort(took);
    EXPECT_LT(took[took.size() / 4], 900us) << polls;
  }
}

// Between two of them memory would stand still.
TEST_F(Polling, WhoPollsNowAndThenDoesNotKeepTheThreadAway) {
  // Handlers may run after the test, in the engine's destructor.
  const auto elsewhere = std::make_shared<std::atomic<unsigned>>(0);
  const auto me = std::this_thread::get_id();
  EXPECT_TRUE(until([&] {
    for (int i = 0; i < 40; ++i) {
      engine.poll(server.cq);
      boost::asio::post(engine.io(), [elsewhere, me] { *elsewhere += std::this_thread::get_id() != me ? 1 : 0; });
      std::this_thread::sleep_for(200us);
    }
    return elsewhere->exchange(0) >= 30;
  }));
}

// One who waits now and then arms a queue for what it sends and one for what it receives.
TEST_F(Polling, WhoWaitsMayArmSeveralQueues) {
  Told told;
  unsigned elsewhere = 0;
  const auto me = std::this_thread::get_id();
  poll_in_vain();
  for (int i = 0; i < 20; ++i) {
    EXPECT_FALSE(engine.wait_until([] { return false; }, Clock::now() + 200us));
    for (int arms = 0; arms < 2; ++arms) server.cq.arm(verbs::CompletionQueue::Notify::kNext, told);
    std::atomic<bool> ran{false};
    boost::asio::post(engine.io(), [&] {
      elsewhere += std::this_thread::get_id() != me ? 1 : 0;
      ran = true;
    });
    EXPECT_TRUE(engine.wait_until([&] { return ran.load(); }, Clock::now() + kPatience));
    server.cq.disarm();
  }
  EXPECT_LT(elsewhere, 15U);
}

// More than are looked at in one call, and more than are looked at at all.
TEST_F(Polling, OfManyConnectionsOfOneQueue) {
  for (const std::size_t many : {6U, 40U}) {
    verbs::CompletionQueue cq(1024, &engine);
    std::vector<std::unique_ptr<Node>> servers, clients;
    std::vector<Ends> all;
    for (std::size_t i = 0; i < many; ++i) {
      servers.push_back(std::make_unique<Node>(engine));
      Node& node = *servers.back();
      node.qp = std::make_shared<verbs::QueuePair>(node.pd, verbs::QueuePair::Options{.send_cq = &cq, .recv_cq = &cq});
      clients.push_back(std::make_unique<Node>(client_engine));
      all.push_back(join(*clients.back(), node, *listener));
      ASSERT_EQ(all.back().client.error.code, Errc::kOk);
    }
    const auto joined = [&] {
      std::array<std::shared_ptr<verbs::Driver>, 1> one;
      std::size_t n = 0;
      (void)cq.shared()->next_drivers(engine, one, n);
      return n;
    };
    EXPECT_EQ(joined(), many);
    for (std::size_t i = 0; i < 3 * many; ++i) {
      const std::size_t which = i * 7 % many;
      servers[which]->recv(i);
      clients[which]->send(i, 64);
      verbs::Completion c;
      ASSERT_TRUE(until([&] {
        engine.poll(cq);
        return cq.poll({&c, 1}) == 1;
      }));
      EXPECT_EQ(c.wr_id, i);
      EXPECT_EQ(c.qp_number, servers[which]->qp->number());
    }
    for (const Ends& ends_of_one : all) ends_of_one.client.connection->disconnect();
    EXPECT_TRUE(until([&] { return joined() == 0; })) << "they have ended";
  }
}

// What is not the queue's gets its turn as well.
TEST_F(Polling, ServesWhatIsOfNoQueueThatIsPolled) {
  Node other{engine}, peer{client_engine};
  ASSERT_EQ(join(peer, other, *listener).client.error.code, Errc::kOk);
  std::jthread poller([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) engine.poll(server.cq);
  });
  for (std::uint64_t i = 0; i < 50; ++i) {
    peer.read(i, other, 4096);
    peer.expect(verbs::WcOp::kRead, i);
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
