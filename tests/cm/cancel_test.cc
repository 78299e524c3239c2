// Operations that are cancelled, and executors whose context has nothing else to do.
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "tests/cm/node.h"
#include "tests/cm/raw_tcp.h"

namespace iwarp::cm {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace): the vocabulary of these tests
using boost::asio::awaitable;
using boost::asio::cancellation_type;
using boost::asio::use_awaitable;
using boost::asio::experimental::awaitable_operators::operator||;

TEST(Work, AnExecutorsContextRunsUntilTheHandlerHasRun) {
  boost::asio::io_context mine;  // without anything else to do
  Engine server_engine, engine;
  Node server(server_engine), client(engine);
  const auto listener = listen(server_engine);
  auto asked = listener->async_accept(cm::as_error(boost::asio::use_future));
  std::shared_ptr<Connection> connection;
  async_connect(engine, client.qp, to(*listener),
                boost::asio::bind_executor(mine, [&](const Error& e, const std::shared_ptr<Connection>& c) {
                  EXPECT_EQ(e.code, Errc::kOk);
                  connection = c;
                }));
  auto request = std::get<1>(get(std::move(asked)));
  auto accepting = request->async_accept(server.qp, {}, cm::as_error(boost::asio::use_future));
  mine.run_for(kPatience);
  ASSERT_NE(connection, nullptr) << "run() came back before the handler had run";
  EXPECT_TRUE(mine.stopped());
  EXPECT_EQ(std::get<0>(get(std::move(accepting))).code, Errc::kOk);
}

awaitable<void> accept_or_give_up(Listener& listener, std::optional<Errc>& how, std::size_t& winner) {
  boost::asio::steady_timer timer(co_await boost::asio::this_coro::executor, 20ms);
  auto first = co_await (listener.async_accept(use_awaitable) || timer.async_wait(use_awaitable));
  winner = first.index();
  how = Errc::kOk;
}

// Everything in one thread of the caller's, in coroutines.
TEST(CancelAwaitable, AcceptOrTimerEnds) {
  boost::asio::io_context io;
  Engine engine(io);
  auto listener = listen(engine);
  std::optional<Errc> how;
  std::size_t winner = 9;
  boost::asio::co_spawn(io, accept_or_give_up(*listener, how, winner), boost::asio::detached);
  const auto begin = std::chrono::steady_clock::now();
  while (!how && std::chrono::steady_clock::now() - begin < kPatience) io.run_one_for(1s);
  EXPECT_TRUE(how.has_value()) << "accept() did not end";
  EXPECT_EQ(winner, 1U);
  listener.reset();
  io.run_for(kPatience);
}

class Cancel : public ::testing::Test {
 protected:
  // A token that `signal_` cancels, and that completes a promise with the code.
  template <class Second>
  auto token(std::promise<Errc>& told) {
    return boost::asio::bind_cancellation_slot(
        signal_.slot(), boost::asio::bind_executor(boost::asio::system_executor(),
                                                   [&told](const Error& e, Second) { told.set_value(e.code); }));
  }
  Engine engine_;
  boost::asio::cancellation_signal signal_;
  std::promise<Errc> told_;
};

TEST_F(Cancel, ACancelledAcceptLosesNoRequest) {
  Engine client_engine;
  const auto listener = listen(engine_);
  for (int i = 0; i < 20; ++i) {
    Node client(client_engine), server(engine_);
    std::promise<Errc> told;
    std::unique_ptr<ConnectRequest> early;
    listener->async_accept(boost::asio::bind_cancellation_slot(
        signal_.slot(), boost::asio::bind_executor(boost::asio::system_executor(),
                                                   [&](const Error& e, std::unique_ptr<ConnectRequest> request) {
                                                     early = std::move(request);
                                                     told.set_value(e.code);
                                                   })));
    auto connecting = start_connect(client, to(*listener));
    if (i % 2 == 0) std::this_thread::sleep_for(std::chrono::microseconds(100 * i));
    signal_.emit(cancellation_type::total);
    const Errc code = get(told.get_future());
    EXPECT_EQ(code, early == nullptr ? Errc::kAborted : Errc::kOk);
    if (early == nullptr) early = next_request(*listener);
    auto accepting = early->async_accept(server.qp, {}, cm::as_error(boost::asio::use_future));
    EXPECT_EQ(get_outcome(std::move(connecting)).error.code, Errc::kOk);
    EXPECT_EQ(std::get<0>(get(std::move(accepting))).code, Errc::kOk);
  }
}

// Fills the queue of a listener, so that TCP itself waits.
class CancelTcp : public Cancel {
 protected:
  void SetUp() override {
    while (peers_.size() < 8) {
      peers_.push_back(std::make_unique<Node>(engine_));
      ConnectOptions o = to_port(full_.port());
      o.connect_timeout = o.policy.startup_timeout = 10min;
      pending_.push_back(start_connect(*peers_.back(), o));
    }
  }
  void TearDown() override {
    for (auto& p : peers_) p->qp->abort();
    for (auto& p : pending_) EXPECT_EQ(get_outcome(std::move(p)).error.code, Errc::kAborted);
  }
  RawListener full_{0};
  std::vector<std::unique_ptr<Node>> peers_;
  std::vector<Connecting> pending_;
};

// The check is in TearDown(): within the patience of the test, far below the time-out.
TEST_F(CancelTcp, AbortOfTheQueuePairIsToldAtOnce) {}

TEST_F(CancelTcp, OfConnectAbortsTheAttempt) {
  Node client(engine_);
  client.recv(7);
  ConnectOptions o = to_port(full_.port());
  o.connect_timeout = 10min;
  async_connect(engine_, client.qp, o, token<std::shared_ptr<Connection>>(told_));
  signal_.emit(cancellation_type::total);  // an attempt leaves traces: not understood
  auto future = told_.get_future();
  EXPECT_EQ(future.wait_for(20ms), std::future_status::timeout);
  signal_.emit(cancellation_type::terminal);
  EXPECT_EQ(get(std::move(future)), Errc::kAborted);
  client.expect(verbs::WcOp::kRecv, 7, Errc::kFlushed);
}

TEST_F(Cancel, OfConnectDuringMpaStartup) {
  RawListener silent;
  Node client(engine_);
  ConnectOptions o = to_port(silent.port());
  o.policy.startup_timeout = 10min;
  async_connect(engine_, client.qp, o, token<std::shared_ptr<Connection>>(told_));
  RawTcp peer = silent.accept();
  (void)peer.read(20);
  signal_.emit(cancellation_type::terminal);
  EXPECT_EQ(get(told_.get_future()), Errc::kAborted);
  EXPECT_EQ(peer.end(), RawTcp::End::kReset);
}

// Asks for it when the peer ends a connection.
struct CancelsAtTheEnd : ByteTap {
  explicit CancelsAtTheEnd(boost::asio::cancellation_signal& with) : signal(with) {}
  void sent(const std::vector<ConstBytes>&, TimePoint) override {}
  void received(const std::vector<ConstBytes>&, TimePoint) override {}
  void sent_end(End, TimePoint) override {}
  void received_end(End, TimePoint) override { signal.emit(cancellation_type::terminal); }
  boost::asio::cancellation_signal& signal;
};

// The peer does not like the first Request: the next connection does not begin any more.
TEST_F(Cancel, OfConnectBetweenTheConnectionsOfAFallback) {
  engine_.set_tap_maker([&](const TapTarget&) { return std::make_shared<CancelsAtTheEnd>(signal_); });
  RawListener peer;
  Node client(engine_);
  client.recv(7);
  async_connect(engine_, client.qp, to_port(peer.port()), token<std::shared_ptr<Connection>>(told_));
  {
    RawTcp first = peer.accept();
    EXPECT_TRUE(read_frame(first, false).complete);
  }
  EXPECT_EQ(get(told_.get_future()), Errc::kAborted);
  client.expect(verbs::WcOp::kRecv, 7, Errc::kFlushed);
  EXPECT_FALSE(peer.anybody(100));
}

TEST_F(Cancel, OfARequestsAccept) {
  const auto listener = listen(engine_);
  RawTcp peer = RawTcp::connect(listener->local().port());
  ASSERT_TRUE(peer.send(octets(good_request())));
  const auto request = next_request(*listener);
  Node server(engine_);
  request->async_accept(server.qp, {}, token<std::shared_ptr<Connection>>(told_));
  (void)peer.read(20);  // now the first FPDU is waited for
  signal_.emit(cancellation_type::terminal);
  EXPECT_EQ(get(told_.get_future()), Errc::kAborted);
  EXPECT_EQ(peer.end(), RawTcp::End::kReset);
}

TEST_F(Cancel, OfAListenerEndsItsWaitAndLosesNoRequest) {
  const auto listener = listen(engine_);
  auto waiting = listener->async_accept(as_error(boost::asio::use_future));
  listener->cancel();
  EXPECT_EQ(std::get<0>(get(std::move(waiting))).code, Errc::kAborted);
  Node client(engine_), server(engine_);
  (void)join(client, server, *listener);
  listener->cancel();
}

// In this order: nothing runs before the three are asked for.
TEST(CancelListener, OfAnAcceptThatIsRefusedLeavesTheOneThatWaits) {
  boost::asio::io_context io;
  Engine engine(io);
  const auto listener = listen(engine);
  std::optional<Errc> first, second;
  boost::asio::cancellation_signal signal;
  listener->async_accept([&](const Error& e, const std::unique_ptr<ConnectRequest>&) { first = e.code; });
  listener->async_accept(boost::asio::bind_cancellation_slot(
      signal.slot(), [&](const Error& e, const std::unique_ptr<ConnectRequest>&) { second = e.code; }));
  signal.emit(cancellation_type::total);
  io.poll();
  EXPECT_EQ(second, Errc::kInvalidArgument);
  EXPECT_EQ(first, std::nullopt);
}

TEST_F(CancelTcp, OfAConnectorEndsAllItsAttempts) {
  Connector connector(engine_);
  ConnectOptions o = to_port(full_.port());
  o.connect_timeout = 10min;
  std::vector<std::unique_ptr<Node>> nodes;
  std::vector<Connecting> attempts;
  for (int i = 0; i < 3; ++i) {
    nodes.push_back(std::make_unique<Node>(engine_));
    attempts.push_back(connector.async_connect(nodes.back()->qp, o, as_error(boost::asio::use_future)));
  }
  EXPECT_EQ(attempts.back().wait_for(20ms), std::future_status::timeout);
  connector.cancel();
  for (auto& attempt : attempts) EXPECT_EQ(get_outcome(std::move(attempt)).error.code, Errc::kAborted);
}

TEST_F(Cancel, OfAConnectionEndsTheWaitsForItsEnd) {
  Engine server_engine;
  Node server(server_engine), client(engine_);
  const auto listener = listen(server_engine);
  const Ends ends = join(client, server, *listener);
  auto as_error_too = ends.client.connection->async_wait_disconnected(as_error(boost::asio::use_future));
  auto thrown = ends.client.connection->async_wait_disconnected(boost::asio::use_future);
  ends.client.connection->cancel();
  EXPECT_EQ(std::get<0>(get(std::move(as_error_too))).code, Errc::kAborted);
  EXPECT_THROW((void)get(std::move(thrown)), boost::system::system_error);
  ping_pong(client, server);
  EXPECT_FALSE(ends.client.connection->disconnected().has_value());
}

TEST_F(Cancel, OfAWaitForTheEndLeavesTheConnection) {
  Engine server_engine;
  Node server(server_engine), client(engine_);
  const auto listener = listen(server_engine);
  const Ends ends = join(client, server, *listener);
  std::promise<Errc> told;
  ends.client.connection->async_wait_disconnected(boost::asio::bind_cancellation_slot(
      signal_.slot(), boost::asio::bind_executor(boost::asio::system_executor(), [&](const stream::Disconnected& how) {
        told.set_value(how.reason.code);
      })));
  signal_.emit(cancellation_type::total);
  EXPECT_EQ(get(told.get_future()), Errc::kAborted);
  ping_pong(client, server);
  signal_.emit(cancellation_type::total);  // too late
}

}  // namespace
}  // namespace iwarp::cm
