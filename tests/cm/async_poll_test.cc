#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "iwarp/cm/completion_queue.h"
#include "iwarp/verbs/completion_channel.h"
#include "tests/cm/node.h"

namespace iwarp::cm {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace): the vocabulary of these tests
using boost::asio::awaitable;
using boost::asio::use_awaitable;
using boost::asio::use_future;

verbs::Completion completion(std::uint64_t id) {
  verbs::Completion c;
  c.wr_id = id;
  return c;
}

class AsyncPoll : public ::testing::Test {
 protected:
  Engine engine_;
  CompletionQueue cq_{engine_, 64};
  std::array<verbs::Completion, 4> out_;
};

TEST_F(AsyncPoll, TakesWhatIsThere) {
  for (std::uint64_t i = 0; i < 6; ++i) ASSERT_TRUE(cq_.push(completion(i)));
  EXPECT_EQ(get(cq_.async_poll(out_, use_future)), 4U);
  EXPECT_EQ(out_[3].wr_id, 3U);
  EXPECT_EQ(get(cq_.async_poll(out_, use_future)), 2U);
  EXPECT_EQ(out_[1].wr_id, 5U);
}

TEST_F(AsyncPoll, WaitsForWhatComes) {
  auto waiting = cq_.async_poll(out_, use_future);
  EXPECT_EQ(waiting.wait_for(20ms), std::future_status::timeout);
  ASSERT_TRUE(cq_.push(completion(7)));
  EXPECT_EQ(get(std::move(waiting)), 1U);
  EXPECT_EQ(out_[0].wr_id, 7U);
  EXPECT_TRUE(cq_.empty());
}

TEST_F(AsyncPoll, OfOneGivesTheCompletion) {
  auto waiting = cq_.async_poll_one(use_future);
  ASSERT_TRUE(cq_.push(completion(8)));
  ASSERT_TRUE(cq_.push(completion(9)));
  EXPECT_EQ(get(std::move(waiting)).wr_id, 8U);
  EXPECT_EQ(get(cq_.async_poll_one(use_future)).wr_id, 9U);
}

TEST_F(AsyncPoll, WorksWithAnyQueue) {
  verbs::CompletionQueue plain(4, &engine_);
  auto waiting = async_poll_one(engine_, plain, use_future);
  ASSERT_TRUE(plain.push(completion(3)));
  EXPECT_EQ(get(std::move(waiting)).wr_id, 3U);
  ASSERT_TRUE(plain.push(completion(4)));
  EXPECT_EQ(get(async_poll(engine_, plain, out_, use_future)), 1U);
}

TEST_F(AsyncPoll, HasNoRoom) {
  const auto [error, n] = get(cq_.async_poll({}, as_error(use_future)));
  EXPECT_EQ(error.code, Errc::kInvalidArgument);
  EXPECT_EQ(n, 0U);
}

// A completion is pushed while a queue pair is locked: each wait has to hear of each, whatever the threads do.
TEST_F(AsyncPoll, LosesNothingToARace) {
  constexpr std::uint64_t kMany = 2000;
  std::thread pusher([&] {
    for (std::uint64_t i = 0; i < kMany; ++i) {
      while (!cq_.push(completion(i))) std::this_thread::yield();
    }
  });
  for (std::uint64_t next = 0; next < kMany;) {
    const std::size_t n = get(cq_.async_poll(out_, use_future));
    for (std::size_t i = 0; i < n; ++i) EXPECT_EQ(out_[i].wr_id, next++);
  }
  pusher.join();
}

TEST_F(AsyncPoll, IsCancelledByItsSlot) {
  boost::asio::cancellation_signal signal;
  std::promise<Errc> told;
  cq_.async_poll_one(boost::asio::bind_cancellation_slot(
      signal.slot(),
      boost::asio::bind_executor(boost::asio::system_executor(),
                                 [&](const Error& e, const verbs::Completion&) { told.set_value(e.code); })));
  signal.emit(boost::asio::cancellation_type::total);
  EXPECT_EQ(get(told.get_future()), Errc::kAborted);
  ASSERT_TRUE(cq_.push(completion(1)));
  EXPECT_EQ(get(cq_.async_poll_one(use_future)).wr_id, 1U) << "a cancelled wait takes nothing";
}

TEST_F(AsyncPoll, IsCancelledByTheQueue) {
  auto waiting = cq_.async_poll(out_, as_error(use_future));
  cq_.cancel();
  EXPECT_EQ(std::get<0>(get(std::move(waiting))).code, Errc::kAborted);
  cq_.cancel();
}

TEST_F(AsyncPoll, EndsWithTheQueue) {
  auto gone = std::make_unique<CompletionQueue>(engine_, 4);
  auto waiting = gone->async_poll_one(as_error(use_future));
  std::this_thread::sleep_for(10ms);  // mostly it waits by then; what follows holds anyway
  gone.reset();
  EXPECT_EQ(std::get<0>(get(std::move(waiting))).code, Errc::kAborted);
}

TEST_F(AsyncPoll, MakesRoomForAnotherWait) {
  auto first = cq_.async_poll_one(as_error(use_future));
  std::this_thread::sleep_for(10ms);
  auto second = cq_.async_poll_one(as_error(use_future));
  // Whichever came last stays.
  ASSERT_TRUE(eventually([&] {
    return first.wait_for(0s) == std::future_status::ready || second.wait_for(0s) == std::future_status::ready;
  }));
  const bool first_ended = first.wait_for(0s) == std::future_status::ready;
  EXPECT_EQ(std::get<0>(get(std::move(first_ended ? first : second))).code, Errc::kAborted);
  ASSERT_TRUE(cq_.push(completion(5)));
  EXPECT_EQ(std::get<1>(get(std::move(first_ended ? second : first))).wr_id, 5U);
}

// A completion that comes while one wait makes room for another is told of once.
TEST(AsyncPollEngine, LosesNothingWhenAWaitMakesRoom) {
  boost::asio::io_context io;
  Engine engine(io);
  CompletionQueue cq(engine, 4);
  std::vector<std::uint64_t> ids;
  const auto told = [&](const Error& e, const verbs::Completion& c) {
    if (e.code == Errc::kOk) ids.push_back(c.wr_id);
  };
  cq.async_poll_one(told);
  io.poll();  // it waits
  cq.async_poll_one(told);
  io.restart();
  EXPECT_EQ(io.poll_one(), 1U);  // now the second one does, and the first has not yet heard of it
  ASSERT_TRUE(cq.push(completion(5)));
  ASSERT_TRUE(cq.push(completion(6)));
  io.restart();
  io.poll();
  EXPECT_EQ(ids, (std::vector<std::uint64_t>{5, 6}));
}

TEST_F(AsyncPoll, GivesWayToAChannel) {
  auto waiting = cq_.async_poll_one(as_error(use_future));
  verbs::CompletionChannel channel;
  EXPECT_TRUE(eventually([&] {
    channel.arm(cq_);
    return waiting.wait_for(1ms) == std::future_status::ready;
  }));
  EXPECT_EQ(std::get<0>(get(std::move(waiting))).code, Errc::kAborted);
}

TEST(AsyncPollEngine, TellsItsWaitsWhenItGoes) {
  std::optional<CompletionQueue> cq;
  std::future<std::tuple<Error, verbs::Completion>> waiting;
  {
    Engine engine;
    cq.emplace(engine, 4);
    waiting = cq->async_poll_one(as_error(use_future));
    std::this_thread::sleep_for(10ms);
  }
  EXPECT_EQ(std::get<0>(get(std::move(waiting))).code, Errc::kAborted);
  EXPECT_TRUE(cq->push(completion(1))) << "nobody is told any more";
}

TEST(AsyncPollEngine, ExecutorsAreTheEngines) {
  boost::asio::io_context io;
  Engine engine(io);
  CompletionQueue cq(engine, 4);
  const auto listener = listen(engine);
  Connector connector(engine);
  EXPECT_EQ(engine.get_executor(), io.get_executor());
  EXPECT_EQ(cq.get_executor(), io.get_executor());
  EXPECT_EQ(listener->get_executor(), io.get_executor());
  EXPECT_EQ(connector.get_executor(), io.get_executor());
}

awaitable<void> echo(CompletionQueue& cq, Node& node, int times) {
  for (int i = 0; i < times; ++i) {
    const auto got = co_await cq.async_poll_one(use_awaitable);
    EXPECT_EQ(got.status, Errc::kOk);
    if (got.op == verbs::WcOp::kRecv) {
      node.recv();
      node.send(1, 64);
    } else {
      --i;
    }
  }
}

// Everything in one thread, with a queue pair behind the queue.
TEST(AsyncPollEngine, ServesCoroutines) {
  constexpr int kTimes = 50;
  boost::asio::io_context io;
  Engine engine(io);
  Engine other;
  Node server(engine), client(other);
  CompletionQueue cq(engine, 256);
  verbs::QueuePair::Options o;
  o.send_cq = o.recv_cq = &cq;
  server.qp->abort();
  server.qp = std::make_shared<verbs::QueuePair>(server.pd, o);
  for (int i = 0; i < 4; ++i) server.recv();
  const auto listener = listen(engine);
  auto asked = listener->async_accept(use_future);
  auto connecting = start_connect(client, to(*listener));
  const auto run_until = [&](const auto& future) {
    const auto until = std::chrono::steady_clock::now() + kPatience;
    while (future.wait_for(0s) != std::future_status::ready && std::chrono::steady_clock::now() < until)
      io.run_one_for(100ms);
  };
  run_until(asked);
  const auto request = get(std::move(asked));
  auto accepting = request->async_accept(server.qp, {}, use_future);
  run_until(connecting);
  EXPECT_EQ(get_outcome(std::move(connecting)).error.code, Errc::kOk);

  auto served = boost::asio::co_spawn(io, echo(cq, server, kTimes), use_future);
  std::thread visitor([&] {
    for (int i = 0; i < kTimes; ++i) {
      client.recv(2);
      client.send(1, 64);
      for (int n = 0; n < 2; ++n) EXPECT_EQ(client.next().status, Errc::kOk);
    }
  });
  run_until(served);
  // What is left to send goes out.
  std::atomic<bool> over{false};
  std::thread joiner([&] {
    visitor.join();
    over = true;
  });
  while (!over) io.run_one_for(10ms);
  joiner.join();
  server.qp->abort();
  run_until(accepting);
  EXPECT_NE(get(std::move(accepting)), nullptr);
}

TEST(AsyncPollEngine, EndsWhenATimerComesFirst) {
  using boost::asio::experimental::awaitable_operators::operator||;
  boost::asio::io_context io;
  Engine engine(io);
  CompletionQueue cq(engine, 4);
  auto winner = boost::asio::co_spawn(
      io,
      [](CompletionQueue& queue) -> awaitable<std::size_t> {
        boost::asio::steady_timer timer(queue.get_executor(), 20ms);
        const auto first = co_await (queue.async_poll_one(use_awaitable) || timer.async_wait(use_awaitable));
        co_return first.index();
      }(cq),
      use_future);
  io.run_for(kPatience);
  EXPECT_EQ(get(std::move(winner)), 1U);
}

}  // namespace
}  // namespace iwarp::cm
