// What handlers are told: a std::error_code's twin for Asio's tokens, an Error for callbacks that take one.
#include "iwarp/base/error_code.h"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "tests/cm/node.h"
#include "tests/cm/raw_tcp.h"

namespace iwarp::cm {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace): the vocabulary of these tests
using boost::asio::as_tuple;
using boost::asio::awaitable;
using boost::asio::redirect_error;
using boost::asio::use_awaitable;
using boost::asio::use_future;

// At a port where nobody listens.
struct Refused : ::testing::Test {
  Refused() {
    RawListener closed;
    options_ = to_port(closed.port());
  }
  void run(awaitable<void> body) {
    std::exception_ptr thrown;
    boost::asio::co_spawn(io_, std::move(body), [&](std::exception_ptr e) { thrown = std::move(e); });
    io_.run_for(kPatience);
    EXPECT_TRUE(io_.stopped());
    if (thrown) std::rethrow_exception(thrown);
  }

  boost::asio::io_context io_;
  Engine engine_{io_};
  Node client_{engine_};
  ConnectOptions options_;
  static constexpr const char* kWhy = "Connection refused: nothing listens there";
};

TEST_F(Refused, IsThrownByUseAwaitable) {
  try {
    run([](Refused& t) -> awaitable<void> {
      (void)co_await async_connect(t.engine_, t.client_.qp, t.options_, use_awaitable);
    }(*this));
    FAIL() << "connected";
  } catch (const boost::system::system_error& e) {
    EXPECT_TRUE(e.code() == Errc::kConnectionRefused);
    EXPECT_TRUE(e.code() == Condition::kSystemFailure);
    EXPECT_TRUE(e.code() == std::errc::connection_refused);
    EXPECT_FALSE(e.code() == Errc::kTimeout);
    EXPECT_EQ(e.code().message(), kWhy);
    EXPECT_TRUE(std::error_code(e.code()) == Errc::kConnectionRefused);
    EXPECT_NE(std::string(e.what()).find(kWhy), std::string::npos) << e.what();
  }
}

TEST_F(Refused, IsThrownByUseFuture) {
  auto connecting = async_connect(engine_, client_.qp, options_, use_future);
  static_assert(std::is_same_v<decltype(connecting), std::future<std::shared_ptr<Connection>>>);
  io_.run_for(kPatience);
  EXPECT_THROW((void)get(std::move(connecting)), boost::system::system_error);
}

TEST_F(Refused, IsRedirected) {
  boost::system::error_code ec;
  run([](Refused& t, boost::system::error_code& error) -> awaitable<void> {
    (void)co_await async_connect(t.engine_, t.client_.qp, t.options_, redirect_error(use_awaitable, error));
  }(*this, ec));
  EXPECT_TRUE(ec == Errc::kConnectionRefused);
}

TEST_F(Refused, StandsInATuple) {
  bool told = false;
  run([](Refused& t, bool& done) -> awaitable<void> {
    const auto [ec, connection] = co_await async_connect(t.engine_, t.client_.qp, t.options_, as_tuple(use_awaitable));
    EXPECT_TRUE(ec == Errc::kConnectionRefused);
    EXPECT_EQ(connection, nullptr);
    done = true;
  }(*this, told));
  EXPECT_TRUE(told);
}

TEST_F(Refused, IsAnErrorForWhoTakesOne) {
  std::string plain, bound, generic;
  Node second(engine_), third(engine_);
  async_connect(engine_, client_.qp, options_,
                [&](const Error& error, const std::shared_ptr<Connection>&) { plain = error.why; });
  async_connect(
      engine_, second.qp, options_,
      boost::asio::bind_executor(io_, [&](Error error, const std::shared_ptr<Connection>&) { bound = error.why; }));
  async_connect(engine_, third.qp, options_, [&](auto error, const auto&) {
    if (error) generic = error.message();
  });
  io_.run_for(kPatience);
  EXPECT_EQ(plain, kWhy);
  EXPECT_EQ(bound, kWhy);
  EXPECT_EQ(generic, kWhy);
}

TEST_F(Refused, IsACodeForWhoTakesOne) {
  std::error_code standard;
  boost::system::error_code boosts;
  Node second(engine_);
  async_connect(engine_, client_.qp, options_,
                [&](std::error_code ec, const std::shared_ptr<Connection>&) { standard = ec; });
  async_connect(engine_, second.qp, options_,
                boost::asio::bind_executor(
                    io_, [&](boost::system::error_code ec, const std::shared_ptr<Connection>&) { boosts = ec; }));
  io_.run_for(kPatience);
  EXPECT_TRUE(standard == Errc::kConnectionRefused);
  EXPECT_TRUE(standard == std::errc::connection_refused);
  EXPECT_TRUE(boosts == Errc::kConnectionRefused);
}

TEST_F(Refused, IsWholeInATupleOfAsError) {
  bool told = false;
  run([](Refused& t, bool& done) -> awaitable<void> {
    const auto [error, connection] =
        co_await async_connect(t.engine_, t.client_.qp, t.options_, as_error(use_awaitable));
    EXPECT_STREQ(error.why, kWhy);
    done = true;
  }(*this, told));
  EXPECT_TRUE(told);
}

TEST(Code, NoErrorIsFalse) {
  Engine engine;
  Node server(engine), client(engine);
  const auto listener = listen(engine);
  auto asked = listener->async_accept(use_future);
  auto connecting = async_connect(engine, client.qp, to(*listener), as_error(use_future));
  const auto request = get(std::move(asked));
  auto accepting = request->async_accept(server.qp, {}, use_future);
  const auto [error, connection] = get(std::move(connecting));
  EXPECT_FALSE(error);
  EXPECT_FALSE(to_error_code(error));
  EXPECT_TRUE(to_error_code(error) == Errc::kOk);
  ASSERT_NE(get(std::move(accepting)), nullptr);

  auto over = connection->async_wait_disconnected(as_error(use_future));
  connection->disconnect();
  const auto [in_vain, how] = get(std::move(over));
  EXPECT_FALSE(in_vain) << "that a connection ends is no error of the wait for it";
  EXPECT_EQ(how.reason.code, Errc::kAborted);
}

}  // namespace
}  // namespace iwarp::cm
