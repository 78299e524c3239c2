// Deadlines, cancellation, and objects that go while Calls are under way.
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>

#include "tests/rpc/program.h"

namespace iwarp::rpc::test {
namespace {

class Ending : public ::testing::TestWithParam<Carrier> {};
INSTANTIATE_TEST_SUITE_P(Over, Ending, ::testing::Values(Carrier::kMemory, Carrier::kIwarp), carrier_name);

TEST_P(Ending, DeadlinesEndCallsAndNothingElse) {
  World w(GetParam());
  Client client(w.engine, w.transport);
  const auto late = client.call(proc(kHold), {}, {.timeout = 20ms});
  ASSERT_FALSE(late.ok());
  EXPECT_EQ(late.error().code, Errc::kTimeout);
  EXPECT_TRUE(client.call(proc(kNull), {}).ok());
  w.release();
  EXPECT_TRUE(client.call(proc(kNull), {}).ok());  // the late Reply is nobody's
  EXPECT_EQ(client.stats().timeouts, 1u);
  EXPECT_EQ(client.stats().connections, 1u);
}

TEST_P(Ending, CancellationSlots) {
  World w(GetParam());
  Client client(w.engine, w.transport);
  boost::asio::cancellation_signal signal;
  std::promise<Error> told;
  client.async_call(proc(kHold), {}, {},
                    boost::asio::bind_cancellation_slot(
                        signal.slot(), [&](const Error& error, const Reply&) { told.set_value(error); }));
  ASSERT_TRUE(eventually([&] { return w.program.held == 1; }));
  signal.emit(boost::asio::cancellation_type::terminal);
  auto future = told.get_future();
  ASSERT_EQ(future.wait_for(kPatience), std::future_status::ready);
  EXPECT_EQ(future.get().code, Errc::kAborted);
  EXPECT_TRUE(client.call(proc(kNull), {}).ok());
}

TEST_P(Ending, AClientThatGoesAbortsItsCalls) {
  World w(GetParam());
  std::future<Reply> call;
  {
    Client client(w.engine, w.transport);
    call = client.async_call(proc(kHold), {}, {}, use_future);
    ASSERT_TRUE(eventually([&] { return w.program.held == 1; }));
  }
  ASSERT_EQ(call.wait_for(kPatience), std::future_status::ready);
  try {
    (void)call.get();
    FAIL();
  } catch (const boost::system::system_error& e) {
    EXPECT_TRUE(e.code() == Errc::kAborted);
  }
}

TEST_P(Ending, RepliesOutliveTheirClient) {
  World w(GetParam());
  Reply reply;
  {
    Client client(w.engine, w.transport);
    reply = std::move(client.call(proc(kEcho), pattern(100000, 1))).value();
  }
  EXPECT_TRUE(std::ranges::equal(reply.results(), pattern(100000, 1)));
}

TEST_P(Ending, AServerMayStopWhileCallsAreUnderWay) {
  World w(GetParam());
  Client client(w.engine, w.transport, {.timeout = 200ms, .first_pause = 5ms});
  EXPECT_TRUE(client.call(proc(kNull), {}).ok());
  auto call = client.async_call(proc(kHold), {}, {}, use_future);
  ASSERT_TRUE(eventually([&] { return w.program.held == 1; }));
  w.release();
  w.server.stop();
  ASSERT_EQ(call.wait_for(kPatience), std::future_status::ready);
  EXPECT_FALSE(client.call(proc(kNull), {}).ok());
}

TEST_P(Ending, TooManyCallsAreRefused) {
  World w(GetParam());
  Client client(w.engine, w.transport, {.max_calls = 1});
  auto held = client.async_call(proc(kHold), {}, {}, use_future);
  ASSERT_TRUE(eventually([&] { return w.program.held == 1; }));
  EXPECT_EQ(client.call(proc(kNull), {}).error().code, Errc::kQueueFull);
  w.release();
  ASSERT_EQ(held.wait_for(kPatience), std::future_status::ready);
}

TEST_P(Ending, ClosedClientsRefuse) {
  World w(GetParam());
  Client client(w.engine, w.transport);
  client.close();
  client.close();
  EXPECT_EQ(client.call(proc(kNull), {}).error().code, Errc::kAborted);
}

// Credits that a server does not give back would be missed for ever.
TEST_P(Ending, AServerThatAnswersNothingIsLeft) {
  World w(GetParam(), {.threads = 2});
  ClientOptions options;
  options.requester.credits = 1;
  Client client(w.engine, w.transport, options);
  EXPECT_FALSE(client.call(proc(kHold), {}, {.timeout = 20ms}).ok());
  EXPECT_FALSE(client.call(proc(kNull), {}, {.timeout = 20ms}).ok());
  EXPECT_TRUE(client.call(proc(kNull), {}).ok());
  EXPECT_EQ(client.stats().connections, 2u);
}

}  // namespace
}  // namespace iwarp::rpc::test
