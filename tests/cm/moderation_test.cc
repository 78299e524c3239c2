// Completion queues of an engine that tells of several completions at a time, and queue pairs that are told their
// state.
#include <poll.h>

#include <boost/asio/use_future.hpp>
#include <thread>

#include "iwarp/cm/completion_queue.h"
#include "iwarp/verbs/completion_channel.h"
#include "tests/cm/node.h"

namespace iwarp::cm {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace): the vocabulary of these tests
using boost::asio::use_future;

verbs::Completion numbered(std::uint64_t id) {
  verbs::Completion c;
  c.wr_id = id;
  return c;
}

// A manual engine: nothing happens but in poll().
TEST(Moderation, HoldsAPollBackUntilTheCountIsReached) {
  Engine engine(Engine::Mode::kManual);
  CompletionQueue cq(engine, 16);
  ASSERT_TRUE(cq.moderate(3, 1h).ok());
  std::array<verbs::Completion, 8> out;
  auto waiting = cq.async_poll(out, use_future);
  const auto done = [&] {
    for (int i = 0; i < 10; ++i) engine.poll();
    return waiting.wait_for(0s) == std::future_status::ready;
  };
  EXPECT_FALSE(done());
  ASSERT_TRUE(cq.push(numbered(1)));
  ASSERT_TRUE(cq.push(numbered(2)));
  EXPECT_FALSE(done());
  ASSERT_TRUE(cq.push(numbered(3)));
  EXPECT_TRUE(done());
  EXPECT_EQ(waiting.get(), 3U);
}

TEST(Moderation, ThePeriodEndsTheWait) {
  for (const std::chrono::microseconds period : {1us, 30000us}) {
    Engine engine;
    CompletionQueue cq(engine, 16);
    ASSERT_TRUE(cq.moderate(1000, period).ok());
    verbs::CompletionChannel channel;
    for (std::uint64_t round = 0; round < 3; ++round) {
      channel.arm(cq);
      const auto begin = std::chrono::steady_clock::now();
      ASSERT_TRUE(cq.push(numbered(round)));
      pollfd p{channel.fd(), POLLIN, 0};
      ASSERT_EQ(::poll(&p, 1, 30'000), 1) << "it is told";
      EXPECT_GE(std::chrono::steady_clock::now() - begin, period);
      EXPECT_EQ(channel.next_event(), static_cast<verbs::CompletionQueue*>(&cq));
      auto waiting = cq.async_poll_one(use_future);
      EXPECT_EQ(get(std::move(waiting)).wr_id, round);
      auto next = cq.async_poll_one(use_future);
      ASSERT_TRUE(cq.push(numbered(99)));
      EXPECT_EQ(get(std::move(next)).wr_id, 99U);
    }
  }
}

// Whether a channel is told of one completion while `run` makes the engine go forward.
template <class Run>
bool is_told(Engine& engine, Run run) {
  CompletionQueue cq(engine, 16);
  EXPECT_TRUE(cq.moderate(1000, 1ms).ok());
  verbs::CompletionChannel channel;
  channel.arm(cq);
  EXPECT_TRUE(cq.push(numbered(1)));
  std::optional<verbs::CompletionQueue*> told;
  const auto deadline = std::chrono::steady_clock::now() + 30s;
  while (!(told = channel.next_event()) && std::chrono::steady_clock::now() < deadline) run();
  return told == static_cast<verbs::CompletionQueue*>(&cq);
}

TEST(Moderation, OfAManualEngineWhosePollTellsTheTime) {
  Engine engine(Engine::Mode::kManual);
  EXPECT_TRUE(is_told(engine, [&] { engine.poll(); }));
}

TEST(Moderation, OfABorrowedContext) {
  boost::asio::io_context io;
  Engine engine(io);
  EXPECT_TRUE(is_told(engine, [&] {
    io.restart();
    io.run_for(1ms);
  }));
}

TEST(Moderation, OfAQueueThatGoesWhileItsTimerRuns) {
  Engine engine;
  for (int i = 0; i < 100; ++i) {
    verbs::CompletionChannel channel;
    CompletionQueue cq(engine, 16);
    ASSERT_TRUE(cq.moderate(1000, std::chrono::microseconds(i)).ok());
    channel.arm(cq);
    ASSERT_TRUE(cq.push(numbered(1)));
    if (i % 3 == 0) std::this_thread::sleep_for(std::chrono::microseconds(i));
  }
}

// What is held back is seen at once by who waits or polls.
TEST(Moderation, DoesNotHoldUpAWaitingThread) {
  Engine engine;
  CompletionQueue cq(engine, 16);
  ASSERT_TRUE(cq.moderate(1000, 1h).ok());
  verbs::CompletionChannel channel;
  channel.arm(cq);
  std::thread completing([&] {
    std::this_thread::sleep_for(20ms);
    EXPECT_TRUE(cq.push(numbered(1)));
  });
  EXPECT_TRUE(cq.wait_for(30s));
  completing.join();
  EXPECT_EQ(channel.next_event(), std::nullopt);
}

TEST(Moderation, OfAVerbsQueueKnowsNoPeriod) {
  Engine engine;
  verbs::CompletionQueue cq(16, &engine);
  EXPECT_EQ(cq.moderate(10, 1us).error().code, Errc::kInvalidArgument);
  EXPECT_TRUE(cq.moderate(10, 0us).ok());
}

TEST(Moderation, TheQueueOfAnEngineCanBeResized) {
  Engine engine;
  CompletionQueue cq(engine, 2);
  ASSERT_TRUE(cq.push(numbered(1)));
  ASSERT_TRUE(cq.resize(20).ok());
  EXPECT_EQ(cq.capacity(), 20U);
  EXPECT_EQ(get(cq.async_poll_one(use_future)).wr_id, 1U);
}

// What modify() of a queue pair does to its connection.
TEST(QueuePairStates, SqDrainClosesInOrderThroughAnEngine) {
  Engine engine;
  Node server(engine), client(engine);
  const auto listener = listen(engine);
  const Ends ends = join(client, server, *listener);
  server.recv(1);
  client.send(2, client.out.size());
  ASSERT_TRUE(client.qp->modify(verbs::QueuePairState::kSqDrain).ok());
  client.expect(verbs::WcOp::kSend, 2);
  server.expect(verbs::WcOp::kRecv, 1);
  EXPECT_EQ(ending(*ends.server.connection).reason.code, Errc::kPeerClosed);
  EXPECT_TRUE(ordinary_end(ending(*ends.client.connection)));
  EXPECT_EQ(client.qp->state(), verbs::QueuePairState::kError);
}

TEST(QueuePairStates, ErrorResetsThroughAnEngine) {
  Engine engine;
  Node server(engine), client(engine);
  const auto listener = listen(engine);
  const Ends ends = join(client, server, *listener);
  server.recv(1);
  ASSERT_TRUE(client.qp->modify(verbs::QueuePairState::kError).ok());
  server.expect(verbs::WcOp::kRecv, 1, Errc::kFlushed);
  const auto how = ending(*ends.server.connection);
  EXPECT_EQ(how.reason.code, Errc::kConnectionLost);
  EXPECT_FALSE(how.received) << "no Terminate";
}

}  // namespace
}  // namespace iwarp::cm
