// The operations of cm take any Asio completion token.
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "tests/cm/node.h"

namespace iwarp::cm {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace): the vocabulary of these tests
using boost::asio::awaitable;
using boost::asio::use_awaitable;

TEST(Token, Callback) {
  Engine engine;
  Node server(engine), client(engine);
  const auto listener = listen(engine);
  std::promise<Errc> accepted, connected, over;
  std::unique_ptr<ConnectRequest> pending;
  listener->async_accept([&](const Error& error, std::unique_ptr<ConnectRequest> request) {
    ASSERT_EQ(error.code, Errc::kOk);
    pending = std::move(request);
    pending->async_accept(server.qp, {},
                          [&](const Error& e, const std::shared_ptr<Connection>&) { accepted.set_value(e.code); });
  });
  async_connect(engine, client.qp, to(*listener), [&](const Error& e, const std::shared_ptr<Connection>& c) {
    c->async_wait_disconnected([&](const stream::Disconnected& how) { over.set_value(how.reason.code); });
    c->disconnect();
    connected.set_value(e.code);
  });
  EXPECT_EQ(get(accepted.get_future()), Errc::kOk);
  EXPECT_EQ(get(connected.get_future()), Errc::kOk);
  EXPECT_EQ(get(over.get_future()), Errc::kAborted);
}

TEST(Token, HandlerRunsOnItsAssociatedExecutor) {
  boost::asio::io_context mine;  // first: it is still told of the handler's end when the engine goes
  Engine engine;
  Node client(engine);
  auto work = boost::asio::make_work_guard(mine);
  std::thread::id ran_in;
  async_connect(engine, client.qp, ConnectOptions{},
                boost::asio::bind_executor(mine, [&](const Error& e, const std::shared_ptr<Connection>&) {
                  EXPECT_NE(e.code, Errc::kOk);
                  ran_in = std::this_thread::get_id();
                  work.reset();
                }));
  mine.run_for(kPatience);
  EXPECT_EQ(ran_in, std::this_thread::get_id());
}

awaitable<void> serve(Listener& listener, Node& node, Errc& how) {
  auto [error, request] = co_await listener.async_accept(as_error(use_awaitable));
  EXPECT_EQ(error.code, Errc::kOk);
  auto [failed, connection] = co_await request->async_accept(node.qp, {}, as_error(use_awaitable));
  EXPECT_EQ(failed.code, Errc::kOk);
  how = (co_await connection->async_wait_disconnected(use_awaitable)).reason.code;
}

awaitable<void> visit(Engine& engine, const ConnectOptions& options, Node& node, Errc& how) {
  auto [error, connection] = co_await async_connect(engine, node.qp, options, as_error(use_awaitable));
  EXPECT_EQ(error.code, Errc::kOk);
  if (connection == nullptr) co_return;
  connection->disconnect();
  how = (co_await connection->async_wait_disconnected(use_awaitable)).reason.code;
}

// Everything in one thread of the caller's, in coroutines.
TEST(Token, Coroutine) {
  boost::asio::io_context io;
  Engine engine(io);
  Node server(engine), client(engine);
  auto listener = listen(engine);
  Errc server_end = Errc::kOk, client_end = Errc::kOk;
  const ConnectOptions options = to(*listener);
  boost::asio::co_spawn(io, serve(*listener, server, server_end), boost::asio::detached);
  boost::asio::co_spawn(io, visit(engine, options, client, client_end), [&](const std::exception_ptr& e) {
    EXPECT_EQ(e, nullptr);
    listener.reset();
  });
  io.run_for(kPatience);
  EXPECT_TRUE(io.stopped()) << "nothing keeps the context busy when all is over";
  EXPECT_EQ(server_end, Errc::kPeerClosed);
  EXPECT_EQ(client_end, Errc::kAborted);
}

TEST(Token, Future) {
  Engine engine;
  Node server(engine), client(engine);
  const auto listener = listen(engine);
  const Ends ends = join(client, server, *listener);
  auto over = ends.server.connection->async_wait_disconnected(boost::asio::use_future);
  EXPECT_EQ(over.wait_for(0s), std::future_status::timeout);
  ends.client.connection->disconnect();
  EXPECT_EQ(get(std::move(over)).reason.code, Errc::kPeerClosed);
}

}  // namespace
}  // namespace iwarp::cm
