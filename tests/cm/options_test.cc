// Options are judged when they are given, in words that name them.
#include <limits>
#include <string>

#include "tests/cm/node.h"

namespace iwarp::cm {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace): the vocabulary of these tests
using std::chrono::milliseconds;

void expect_refused(const Result<void>& result, const std::string& words) {
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, Errc::kInvalidArgument);
  EXPECT_NE(std::string(result.error().why).find(words), std::string::npos) << result.error().why;
}

TEST(Options, OfSocketsKeepToWhatTheKernelTakes) {
  SocketOptions o;
  EXPECT_TRUE(validate(o).ok());
  o.keepalive_idle = 24h;
  expect_refused(validate(o), "keepalive_idle must be 0 (no probes) to 32767 s");
  o.keepalive_idle = -1s;
  expect_refused(validate(o), "keepalive_idle");
  o.keepalive_idle = 32767s;
  EXPECT_TRUE(validate(o).ok());
  o.user_timeout = milliseconds::max();
  expect_refused(validate(o), "user_timeout must be 0 (the system's) to 2147483647 ms");
  o.user_timeout = -1ms;
  expect_refused(validate(o), "user_timeout");
  o.user_timeout = milliseconds(std::numeric_limits<int>::max());
  EXPECT_TRUE(validate(o).ok());
}

TEST(Options, TheLongestThatAreAllowedWork) {
  Engine engine;
  Node server(engine), client(engine);
  ListenOptions lo;
  lo.socket.keepalive_idle = 32767s;
  lo.socket.user_timeout = milliseconds(std::numeric_limits<int>::max());
  lo.policy.startup_timeout = milliseconds::max();
  const auto listener = listen(engine, lo);
  ConnectOptions o = to(*listener);
  o.socket = lo.socket;
  o.policy.startup_timeout = milliseconds::max();
  o.connect_timeout = milliseconds::max();
  const Ends ends = join(client, server, *listener, o);
  ASSERT_NE(ends.client.connection, nullptr);
  ping_pong(client, server);
}

TEST(Options, OfAConnectionAreJudgedBeforeItIsTried) {
  Engine engine;
  const auto listener = listen(engine);
  const auto outcome = [&](auto change) {
    Node client(engine);
    ConnectOptions o = to(*listener);
    change(o);
    const Outcome of = get_outcome(start_connect(client, o));
    EXPECT_EQ(of.connection, nullptr);
    return Result<void>(of.error);
  };
  expect_refused(outcome([](ConnectOptions& o) { o.socket.keepalive_idle = 24h; }), "keepalive_idle");
  expect_refused(outcome([](ConnectOptions& o) { o.connect_timeout = 0ms; }), "connect_timeout must be 1 ms or more");
  expect_refused(outcome([](ConnectOptions& o) { o.policy.startup_timeout = 0ms; }), "startup timeout");
  expect_refused(outcome([](ConnectOptions& o) { o.mpa.unheard_wait = -1ms; }), "unheard_wait must be 0 ms or more");
}

TEST(Options, OfAListenerAreJudgedBeforeItListens) {
  Engine engine;
  const auto refused = [&](auto change) {
    ListenOptions o;
    change(o);
    const auto made = Listener::listen(engine, o);
    return made.ok() ? Result<void>() : Result<void>(made.error());
  };
  expect_refused(refused([](ListenOptions& o) { o.socket.keepalive_idle = 24h; }), "keepalive_idle");
  expect_refused(refused([](ListenOptions& o) { o.max_pending = 0; }), "max_pending must be 1 or more");
}

// A queue pair that cannot work is neither connected nor accepted with, and the Request stays undecided.
TEST(Options, OfAQueuePairAreJudgedBeforeItIsConnected) {
  Engine engine;
  Node server(engine), client(engine);
  const auto listener = listen(engine);
  const auto without_queues = std::make_shared<verbs::QueuePair>(server.pd, verbs::QueuePair::Options{});
  const Outcome c =
      get_outcome(async_connect(engine, without_queues, to(*listener), cm::as_error(boost::asio::use_future)));
  expect_refused(Result<void>(c.error), "send_cq");
  EXPECT_EQ(c.connection, nullptr);

  auto connecting = start_connect(client, to(*listener));
  const auto request = next_request(*listener);
  const Outcome s = get_outcome(request->async_accept(without_queues, {}, cm::as_error(boost::asio::use_future)));
  expect_refused(Result<void>(s.error), "send_cq");
  stream::MpaOptions hasty;
  hasty.first_fpdu_timeout = -1ms;
  const Outcome h =
      get_outcome(request->async_accept(server.qp, {.mpa = hasty}, cm::as_error(boost::asio::use_future)));
  expect_refused(Result<void>(h.error), "first_fpdu_timeout must be 0 ms or more");
  auto accepting = request->async_accept(server.qp, {}, cm::as_error(boost::asio::use_future));
  EXPECT_EQ(get_outcome(std::move(connecting)).error.code, Errc::kOk);
  EXPECT_EQ(get_outcome(std::move(accepting)).error.code, Errc::kOk);
}

}  // namespace
}  // namespace iwarp::cm
