// Handlers of the application that throw: the exception passes to who runs them, and the next call goes on.
#include <atomic>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/multiple_exceptions.hpp>
#include <boost/asio/post.hpp>
#include <thread>

#include "iwarp/cm/run_in_engine.h"
#include "tests/cm/node.h"

namespace iwarp::cm {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace): the vocabulary of these tests

struct Thrown : std::runtime_error {
  Thrown() : std::runtime_error("by a handler") {}
};

// The engine does what it did: a handler runs in this thread, in time.
void expect_alive(Engine& engine) {
  std::promise<std::thread::id> ran;
  const auto future = ran.get_future();
  boost::asio::post(engine.io(), [&] { ran.set_value(std::this_thread::get_id()); });
  EXPECT_TRUE(engine.wait_for(future, 5s));
}

TEST(Throwing, PassesThroughAWaitForAFuture) {
  for (const auto mode : {Engine::Mode::kManual, Engine::Mode::kAutomatic}) {
    Engine engine(mode);
    std::promise<void> never;
    const auto future = never.get_future();
    boost::asio::post(engine.io(), [] { throw Thrown(); });
    EXPECT_THROW(engine.wait_for(future, 5s), Thrown);
    expect_alive(engine);
  }
}

// What was to be done has the caller's objects.
TEST(Throwing, LeavesRunInWhenTheWorkIsDone) {
  Engine engine(Engine::Mode::kManual);
  bool done = false;
  boost::asio::post(engine.io(), [] { throw Thrown(); });
  EXPECT_THROW(run_in(engine, [&] { done = true; }), Thrown);
  EXPECT_TRUE(done);
  expect_alive(engine);
}

TEST(Throwing, PassesThroughAWaitForACompletion) {
  Engine engine(Engine::Mode::kManual);
  Node node(engine);
  boost::asio::post(engine.io(), [] { throw Thrown(); });
  EXPECT_THROW(node.cq.wait_for(5s), Thrown);
  EXPECT_FALSE(node.cq.wait_for(1ms));
  expect_alive(engine);
}

TEST(Throwing, PassesThroughPoll) {
  Engine engine(Engine::Mode::kManual);
  boost::asio::post(engine.io(), [] { throw Thrown(); });
  EXPECT_THROW(engine.poll(), Thrown);
  bool ran = false;
  boost::asio::post(engine.io(), [&] { ran = true; });
  EXPECT_TRUE(eventually([&] {
    engine.poll();
    return ran;
  }));
  expect_alive(engine);
}

// Whoever of two threads leads leaves with an exception; the other one takes over.
TEST(Throwing, AnotherThreadThatWaitsTakesOver) {
  Engine engine(Engine::Mode::kManual);
  std::atomic<int> thrown{0};
  const auto wait = [&] {
    std::promise<void> never;
    const auto unready = never.get_future();
    try {
      (void)engine.wait_for(unready, 30s);
    } catch (const Thrown&) {
      ++thrown;
    }
  };
  std::jthread one(wait), other(wait);
  for (int i = 1; i <= 2; ++i) {
    boost::asio::post(engine.io(), [] { throw Thrown(); });
    EXPECT_TRUE(eventually([&] { return thrown == i; }));
  }
}

class ThrowingDelivery : public ::testing::Test {
 protected:
  // Polls until both engines have nothing to say; how often a handler threw meanwhile.
  template <class Condition>
  int poll_until(Condition condition) {
    int thrown = 0;
    EXPECT_TRUE(eventually([&] {
      try {
        engine_.poll();
      } catch (const Thrown&) {
        ++thrown;
      }
      return condition();
    }));
    return thrown;
  }
  Engine engine_{Engine::Mode::kManual};
};

// The end of a connection is told to all who wait for it, though each of them throw. They throw on a condition: of a
// function that can only throw gcc 12 forgets what it has written (-fipa-modref), and releases a shared_ptr twice.
TEST_F(ThrowingDelivery, LosesNoOtherCall) {
  Engine server_engine;
  Node server(server_engine), client(engine_);
  const auto listener = listen(server_engine);
  std::shared_ptr<Connection> connection;
  async_connect(engine_, client.qp, to(*listener), [&](const Error&, const std::shared_ptr<Connection>& c) {
    connection = c;
    if (c != nullptr) throw Thrown();
  });
  auto asked = listener->async_accept(cm::as_error(boost::asio::use_future));
  EXPECT_EQ(poll_until([&] { return asked.wait_for(0s) == std::future_status::ready; }), 0);
  auto request = std::get<1>(asked.get());
  request->accept(server.qp, {}, [](const Error&, const std::shared_ptr<Connection>&) {});
  EXPECT_EQ(poll_until([&] { return connection != nullptr; }), 1);

  int told = 0, thrown = 0;
  for (int i = 0; i < 4; ++i) {
    connection->async_wait_disconnected([&](const stream::Disconnected&) {
      if (++told > 0) throw Thrown();
    });
  }
  server.qp->abort();
  // In the reactor, where handlers of this engine run at once, all of them in one batch.
  std::promise<void> never;
  const auto unready = never.get_future();
  EXPECT_TRUE(eventually([&] {
    try {
      (void)engine_.wait_for(unready, 100ms);
    } catch (const Thrown&) {
      ++thrown;
    } catch (const boost::asio::multiple_exceptions&) {  // of one run, as Asio passes them on
      ++thrown;
    }
    return told == 4;
  }));
  EXPECT_GE(thrown, 1);
  expect_alive(engine_);
}

// Runs what it is given at once, as executors of applications may: what a handler throws passes through the engine.
struct AtOnce {
  boost::asio::io_context* io;

  template <class Function>
  void execute(Function function) const {
    function();
  }
  boost::asio::io_context::executor_type require(boost::asio::execution::blocking_t::never_t) const {
    return io->get_executor();
  }
  bool operator==(const AtOnce&) const noexcept = default;
};

TEST_F(ThrowingDelivery, LosesNoOtherCallThatRunsAtOnce) {
  Engine server_engine;
  Node server(server_engine), client(engine_);
  const auto listener = listen(server_engine);
  auto connecting = start_connect(client, to(*listener));
  auto asked = listener->async_accept(cm::as_error(boost::asio::use_future));
  EXPECT_EQ(poll_until([&] { return asked.wait_for(0s) == std::future_status::ready; }), 0);
  auto request = std::get<1>(asked.get());
  request->accept(server.qp, {}, [](const Error&, const std::shared_ptr<Connection>&) {});
  EXPECT_EQ(poll_until([&] { return connecting.wait_for(0s) == std::future_status::ready; }), 0);
  const auto connection = get_outcome(std::move(connecting)).connection;
  ASSERT_NE(connection, nullptr);

  int told = 0;
  for (int i = 0; i < 3; ++i) {
    connection->async_wait_disconnected(
        boost::asio::bind_executor(AtOnce{&engine_.io()}, [&](const stream::Disconnected&) {
          if (++told == 1) throw Thrown();
        }));
  }
  server.qp->abort();
  EXPECT_EQ(poll_until([&] { return told == 3; }), 1);
  expect_alive(engine_);
}

}  // namespace
}  // namespace iwarp::cm
