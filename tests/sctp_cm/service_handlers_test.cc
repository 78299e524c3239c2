// What applications do in handlers, and who calls them; and a listener at all addresses.
#include <gmock/gmock.h>

#include <stdexcept>

#include "iwarp/cm/connector.h"
#include "iwarp/cm/listener.h"
#include "iwarp/sctp_cm/deadline.h"
#include "tests/sctp_cm/service_net.h"
#include "tests/support/covers.h"

namespace iwarp::sctp_cm {
namespace {

class SctpServiceManual : public SctpServiceBase {
 protected:
  SctpServiceManual() : SctpServiceBase(cm::Engine::Mode::kManual) {}
  // Exceptions of handlers until `done`.
  std::vector<std::string> thrown_until(const std::function<bool()>& done) {
    std::vector<std::string> thrown;
    for (const auto end = std::chrono::steady_clock::now() + 20s; !done();) {
      if (std::chrono::steady_clock::now() > end) {
        ADD_FAILURE() << "not done in time";
        break;
      }
      try {
        engine.poll();
      } catch (const std::runtime_error& error) {
        thrown.emplace_back(error.what());
      }
    }
    return thrown;
  }
};

TEST_F(SctpServiceManual, WhatHandlersThrowPassesToWhoPollsAndNothingElseSuffers) {
  listen();
  End x(engine, pd), y(engine, pd);
  std::shared_ptr<Connection> active, passive;
  bool over = false;
  listener->accept([&](const Error&, const std::unique_ptr<ConnectRequest>& r) {
    r->accept(y.qp, {}, [&](const Error&, std::shared_ptr<Connection> c) {
      passive = std::move(c);
      throw std::runtime_error("accepted");
    });
    throw std::runtime_error("requested");
  });
  sctp->connect(x.qp, to_listener(), [&](const Error&, std::shared_ptr<Connection> c) {
    active = std::move(c);
    throw std::runtime_error("connected");
  });
  EXPECT_THAT(thrown_until([&] { return active && passive; }),
              ::testing::UnorderedElementsAre("requested", "accepted", "connected"));
  exchange(x, y);
  exchange(y, x);
  passive->async_wait_disconnected(cm::as_error([&](const Error&, const stream::Disconnected&) { over = true; }));
  active->disconnect();
  EXPECT_THAT(thrown_until([&] { return over && sctp->associations() == 0; }), ::testing::IsEmpty());
}

TEST_F(SctpService, GoesInAHandlerOfItsOwn) {
  listen();
  End x(engine, pd);
  std::promise<void> gone;
  listener->accept([&](const Error& error, const std::unique_ptr<ConnectRequest>&) {
    if (error) return;
    listener.reset();
    sctp.reset();
    gone.set_value();
  });
  const auto [error, connection] = connect(x);
  EXPECT_EQ(error.code, Errc::kAborted);
  get(gone.get_future());
}

// A thread that waits looks at the sockets of TCP itself, and calls handlers outside of the reactor.
TEST_F(SctpService, ItsListenerGoesInAHandlerOfATcpConnection) {
  listen();
  auto tcp = cm::Listener::listen(engine, {.endpoint = {boost::asio::ip::make_address("127.0.0.1"), 0}});
  ASSERT_TRUE(tcp);
  End x(engine, pd), y(engine, pd);
  (*tcp)->accept([&](const Error& error, const std::unique_ptr<cm::ConnectRequest>& r) {
    if (!error) r->accept(y.qp, {}, [](const Error&, auto) {});
  });
  cm::ConnectOptions to;
  to.host = "127.0.0.1";
  to.port = (*tcp)->local().port();
  auto [error, connection] = get(cm::async_connect(engine, x.qp, to, cm::as_error(boost::asio::use_future)));
  ASSERT_FALSE(error) << error.why;
  exchange(x, y);
  std::promise<void> gone;
  connection->async_wait_disconnected(cm::as_error([&](const Error&, const stream::Disconnected&) {
    listener.reset();
    EXPECT_EQ(sctp->associations(), 0u);
    gone.set_value();
  }));
  auto future = gone.get_future();
  y.qp->abort();
  const auto end = std::chrono::steady_clock::now() + 20s;
  while (future.wait_for(0s) != std::future_status::ready && std::chrono::steady_clock::now() < end) x.cq.wait_for(5ms);
  EXPECT_EQ(future.wait_for(0s), std::future_status::ready);
}

// Where, and to which of its addresses.
class SctpServiceEverywhere : public SctpServiceBase,
                              public ::testing::WithParamInterface<std::pair<const char*, const char*>> {};

TEST_P(SctpServiceEverywhere, AnswersFromTheAddressThatAPeerHasSpokenTo) {
  COVERS("RFC5043-7.2-1");
  const auto& [all, one] = GetParam();
  listen({}, all);
  End x(engine, pd), y(engine, pd);
  ConnectOptions options = to_listener();
  options.host = one;
  join(x, y, options);
  ASSERT_TRUE(x.connection && y.connection);
  exchange(x, y);
  exchange(y, x);
  EXPECT_EQ(x.connection->remote().address(), boost::asio::ip::make_address(one));
  EXPECT_THAT(y.connection->local().address().to_string(), ::testing::EndsWith(one));
  EXPECT_FALSE(x.connection->local().address().is_unspecified());
}

INSTANTIATE_TEST_SUITE_P(Addresses, SctpServiceEverywhere,
                         ::testing::Values(std::pair{"0.0.0.0", "127.0.0.2"}, std::pair{"0.0.0.0", "127.0.0.1"},
                                           std::pair{"::", "127.0.0.3"}, std::pair{"::", "::1"}));

// One request of a peer that withdraws it.
TEST_F(SctpService, RequestsThatAreWithdrawnTakeNoPlaceOfOthers) {
  listen({.max_pending = 2});
  for (int i = 0; i < 3; ++i) {
    End x(engine, pd);
    ConnectOptions options = to_listener();
    options.session.answer_timeout = 100ms;
    const auto [error, connection] = connect(x, options);
    EXPECT_EQ(error.code, Errc::kStartupTimeout) << error.why;
    EXPECT_TRUE(eventually([&] { return sctp->associations() == 0; }));
  }
  End x(engine, pd), y(engine, pd);
  join(x, y);
}

TEST(SctpDeadline, OneThatIsCancelledAsItComesIsNotCalled) {
  boost::asio::io_context io;
  int called = 0;
  std::optional<Deadline> second;
  Deadline first(io, [&] { second->follow(std::nullopt); });
  second.emplace(io, [&] { ++called; });
  const auto now = std::chrono::steady_clock::now();
  second->follow(now + 2ms);
  first.follow(now + 1ms);
  std::this_thread::sleep_for(5ms);
  io.run();  // both are due
  EXPECT_EQ(called, 0);
}

}  // namespace
}  // namespace iwarp::sctp_cm
