// Completion queues that go before the queue pairs that use them.
#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <future>
#include <thread>

#include "iwarp/verbs/completion_channel.h"
#include "tests/verbs/joined.h"

namespace iwarp::verbs {
namespace {

using namespace std::chrono_literals;
using test::Bytes;
using test::drain;
using test::Joined;
using test::make_qp;
using test::region;
using test::sge;

class LifetimeTest : public ::testing::Test {
 protected:
  static bool readable(const CompletionChannel& channel) {
    pollfd p{channel.fd(), POLLIN, 0};
    return ::poll(&p, 1, 0) == 1;
  }

  std::shared_ptr<Context> context_ = std::make_shared<Context>();
  ProtectionDomain pd_{context_};
  CompletionQueue peer_cq_{256};
  Bytes memory_ = test::pattern(4096), peer_memory_ = Bytes(4096);
  MemoryRegion mr_ = region(pd_, memory_), peer_mr_ = region(pd_, peer_memory_);
  std::shared_ptr<QueuePair> peer_ = make_qp(pd_, peer_cq_);
};

TEST_F(LifetimeTest, AQueuePairMayOutliveItsCompletionQueue) {
  auto cq = std::make_unique<CompletionQueue>(4);
  const auto qp = make_qp(pd_, *cq);
  ASSERT_TRUE(qp->post_recv({.wr_id = 1, .sges = sge(mr_)}).ok());
  cq.reset();
  ASSERT_TRUE(qp->post_recv({.wr_id = 2, .sges = sge(mr_)}).ok());
  qp->abort();
  for (std::uint64_t i = 3; i < 99; ++i) EXPECT_TRUE(qp->post_recv({.wr_id = i}).ok()) << "flushed for nobody";
}

// What completes for nobody is dropped: it does not overflow, and the connection goes on.
TEST_F(LifetimeTest, CompletionsOfADestroyedQueueAreDropped) {
  auto cq = std::make_unique<CompletionQueue>(2);
  const auto qp = make_qp(pd_, *cq);
  Joined joined(qp, peer_);
  cq.reset();
  for (std::uint64_t i = 0; i < 10; ++i) {
    ASSERT_TRUE(peer_->post_recv({.wr_id = i, .sges = sge(peer_mr_, 0, 8)}).ok());
    ASSERT_TRUE(qp->post_send(SendWr{.wr_id = i, .sges = sge(mr_, 8 * i, 8)}).ok());
  }
  joined.pump();
  EXPECT_EQ(qp->endpoint().phase(), stream::Phase::kFull);
  EXPECT_EQ(drain(peer_cq_).size(), 10U);
}

TEST_F(LifetimeTest, ADestroyedQueueTellsNobody) {
  struct Told final : Notifier {
    void notify(CompletionQueue&) noexcept override { ++times; }
    int times = 0;
  };
  Told told;
  auto cq = std::make_unique<CompletionQueue>(4);
  const auto qp = make_qp(pd_, *cq);
  ASSERT_TRUE(qp->post_recv({.wr_id = 1, .sges = sge(mr_)}).ok());
  cq->arm(CompletionQueue::Notify::kNext, told);
  cq.reset();
  qp->abort();
  EXPECT_EQ(told.times, 0);
}

TEST_F(LifetimeTest, EventsOfADestroyedQueueDoNotNameIt) {
  CompletionChannel channel;
  CompletionQueue other(4);
  auto cq = std::make_unique<CompletionQueue>(4);
  channel.arm(*cq);
  channel.arm(other);
  ASSERT_TRUE(cq->push(Completion{}));
  ASSERT_TRUE(other.push(Completion{}));
  cq.reset();
  EXPECT_TRUE(readable(channel));
  EXPECT_EQ(channel.next_event(), &other) << "the older event is of a queue that is gone";
  EXPECT_EQ(channel.next_event(), std::nullopt);
  EXPECT_FALSE(readable(channel));
}

// An engine that is being told of a completion: the queue waits for that, and names nothing afterwards.
TEST_F(LifetimeTest, AQueueIsNotGoneWhileItsWaiterIsBeingWoken) {
  struct SlowEngine final : Progress {
    bool wait(CompletionQueue& cq, std::chrono::steady_clock::time_point) override {
      waiting.set_value();
      woken.get_future().wait();
      return !cq.empty();
    }
    void wake(CompletionQueue& cq) override {
      woken.set_value();
      told.set_value();
      go_on.get_future().wait();
      seen = &cq;
    }
    std::promise<void> waiting, woken, told, go_on;
    std::atomic<CompletionQueue*> seen{nullptr};
  };
  SlowEngine engine;
  auto cq = std::make_unique<CompletionQueue>(4, &engine);
  CompletionQueue* const address = cq.get();
  const auto qp = make_qp(pd_, *cq);
  ASSERT_TRUE(qp->post_recv({.wr_id = 1, .sges = sge(mr_)}).ok());
  auto waiter = std::async(std::launch::async, [&] { return cq->wait_for(30s); });
  engine.waiting.get_future().wait();
  auto completing = std::async(std::launch::async, [&] { qp->abort(); });
  engine.told.get_future().wait();
  EXPECT_TRUE(waiter.get());
  auto destroying = std::async(std::launch::async, [&] { cq.reset(); });
  EXPECT_EQ(destroying.wait_for(50ms), std::future_status::timeout) << "it went while the engine had its address";
  engine.go_on.set_value();
  destroying.get();
  completing.get();
  EXPECT_EQ(engine.seen, address);
}

TEST_F(LifetimeTest, QueuesGoWhileTheirQueuePairsComplete) {
  for (int round = 0; round < 200; ++round) {
    auto cq = std::make_unique<CompletionQueue>(64);
    CompletionChannel channel;
    channel.arm(*cq);
    const auto qp = make_qp(pd_, *cq, 32);
    for (std::uint64_t i = 0; i < 32; ++i) ASSERT_TRUE(qp->post_recv({.wr_id = i, .sges = sge(mr_)}).ok());
    std::thread completing([&] { qp->abort(); });
    cq.reset();
    completing.join();
    EXPECT_EQ(channel.next_event(), std::nullopt);
  }
}

}  // namespace
}  // namespace iwarp::verbs
