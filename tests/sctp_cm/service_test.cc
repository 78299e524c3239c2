// Connections over SCTP as an application makes them: listen, accept, reject, connect, disconnect.
#include <sys/wait.h>
#include <unistd.h>

#include <utility>

#include "tests/sctp_cm/service_net.h"
#include "tests/support/covers.h"

namespace iwarp::sctp_cm {
namespace {

// A UDP port where nobody answers.
class Silence {
 public:
  [[nodiscard]] ConnectOptions options() const {
    ConnectOptions o;
    o.host = "127.0.0.1";
    o.port = socket_.local_endpoint().port();
    o.transport.connect_timeout = 300ms;
    return o;
  }

 private:
  boost::asio::io_context io_;
  boost::asio::ip::udp::socket socket_{io_, {boost::asio::ip::make_address("127.0.0.1"), 0}};
};

class SctpServiceAt : public SctpServiceBase, public ::testing::WithParamInterface<const char*> {};

TEST_P(SctpServiceAt, ListensAcceptsConnectsAndDisconnects) {
  listen({}, GetParam());
  EXPECT_NE(listener->local().port(), 0);
  EXPECT_EQ(listener->sctp_port(), listener->local().port());
  End x(engine, pd), y(engine, pd);
  ConnectOptions options = to_listener();
  options.private_data = private_data("hello");
  auto connected = connecting(x, options);
  const auto r = request();
  ASSERT_TRUE(r);
  EXPECT_EQ(text(r->private_data()), "hello");
  EXPECT_TRUE(r->enhanced());
  EXPECT_EQ(r->peer_ird(), 32);
  EXPECT_EQ(r->local(), listener->local());
  const auto [bad, passive] =
      get(r->async_accept(y.qp, {8, 4, private_data("welcome")}, cm::as_error(boost::asio::use_future)));
  ASSERT_FALSE(bad) << bad.why;
  const auto [error, active] = get(std::move(connected));
  ASSERT_FALSE(error) << error.why;
  EXPECT_EQ(text(active->private_data()), "welcome");
  EXPECT_EQ(text(passive->private_data()), "hello");
  EXPECT_TRUE(active->initiator());
  EXPECT_FALSE(passive->initiator());
  EXPECT_EQ(active->remote(), listener->local());
  EXPECT_EQ(passive->remote(), r->remote());
  const Negotiated a = active->negotiated(), p = passive->negotiated();
  EXPECT_EQ(a.ord, p.ird);
  EXPECT_EQ(a.ird, 32);
  EXPECT_EQ(p.ord, 4);
  EXPECT_GT(a.mulpdu, 1000u);
  EXPECT_EQ(x.qp->query()->mulpdu, a.mulpdu);
  EXPECT_EQ(x.qp->state(), verbs::QueuePairState::kRts);
  exchange(x, y);
  exchange(y, x);
  EXPECT_EQ(active->counters().tx.sends, 1u);
  EXPECT_EQ(active->counters().rx.sends, 1u);
  EXPECT_EQ(sctp->associations(), 2u);
  active->disconnect();
  EXPECT_EQ(over(*active).reason.code, Errc::kAborted);
  EXPECT_STREQ(over(*active).reason.why, stream::kClosedHere);
  EXPECT_EQ(over(*passive).reason.code, Errc::kPeerClosed);
  EXPECT_TRUE(passive->disconnected()->was_established);
  EXPECT_TRUE(eventually([&] { return sctp->associations() == 0; }));
}

INSTANTIATE_TEST_SUITE_P(Addresses, SctpServiceAt, ::testing::Values("127.0.0.1", "::1"));

TEST_F(SctpService, RejectsWithPrivateData) {
  COVERS("RFC5043-5.2.3-8");
  listen();
  End x(engine, pd);
  auto connected = connecting(x, to_listener());
  auto r = request();
  ASSERT_TRUE(r);
  EXPECT_EQ(r->reject(std::vector<std::byte>(509)).error().code, Errc::kInvalidArgument);
  ASSERT_TRUE(r->reject(private_data("not today"), 7));
  EXPECT_EQ(r->reject().error().code, Errc::kInvalidArgument);  // decided
  const auto [error, connection] = get(std::move(connected));
  EXPECT_EQ(error.code, Errc::kPeerRejected);
  ASSERT_TRUE(connection);
  const auto how = over(*connection);
  EXPECT_EQ(text(how.private_data), "not today");
  ASSERT_TRUE(how.rejected_with);
  EXPECT_EQ(how.rejected_with->ord, 7);
  EXPECT_FALSE(how.was_established);
  EXPECT_EQ(x.qp->state(), verbs::QueuePairState::kError);
  EXPECT_TRUE(eventually([&] { return sctp->associations() == 0; }));
}

TEST_F(SctpService, ARequestThatNobodyDecidesIsRejected) {
  listen();
  End x(engine, pd);
  auto connected = connecting(x, to_listener());
  request().reset();
  EXPECT_EQ(std::get<0>(get(std::move(connected))).code, Errc::kPeerRejected);
}

TEST_F(SctpService, NobodyListens) {
  COVERS("RFC5043-7.1-3");
  listen();
  ConnectOptions options = to_listener();
  options.sctp_port = static_cast<std::uint16_t>(options.port ^ 1);
  End x(engine, pd), y(engine, pd);
  EXPECT_EQ(std::get<0>(connect(x, options)).code, Errc::kConnectionRefused);
  const Silence silence;
  EXPECT_EQ(std::get<0>(connect(y, silence.options())).code, Errc::kTimeout);
  ConnectOptions closed = Silence{}.options();  // its socket has gone
  closed.transport.connect_timeout = 60s;
  End c(engine, pd);
  EXPECT_EQ(std::get<0>(connect(c, closed)).code, Errc::kConnectionRefused);
  options.host = "does-not-exist.invalid";
  End z(engine, pd);
  EXPECT_EQ(std::get<0>(connect(z, options)).code, Errc::kSystem);
  EXPECT_TRUE(eventually([&] { return sctp->associations() == 0; }));
}

TEST_F(SctpService, ConnectsFromAnAddressThatIsChosen) {
  listen();
  ConnectOptions options = to_listener();
  options.local = boost::asio::ip::make_address("127.0.0.2");
  End x(engine, pd), y(engine, pd), z(engine, pd);
  auto connected = connecting(x, options);
  const auto r = request();
  ASSERT_TRUE(r);
  EXPECT_EQ(r->remote().address(), *options.local);
  r->accept(y.qp, {}, [](const Error&, const std::shared_ptr<Connection>&) {});
  const auto [error, connection] = get(std::move(connected));
  ASSERT_FALSE(error) << error.why;
  EXPECT_EQ(connection->local().address(), *options.local);
  options.local = boost::asio::ip::make_address("::1");
  EXPECT_EQ(std::get<0>(connect(z, options)).code, Errc::kInvalidArgument);
  End w(engine, pd);
  options.local = boost::asio::ip::make_address("192.0.2.1");
  EXPECT_EQ(std::get<0>(connect(w, options)).code, Errc::kSystem);
}

TEST_F(SctpService, WhatIsImpossibleIsRefused) {
  listen();
  ConnectOptions options = to_listener();
  options.private_data.resize(509);
  End x(engine, pd);
  EXPECT_EQ(std::get<0>(connect(x, options)).code, Errc::kInvalidArgument);
  options = to_listener();
  options.port = 0;
  EXPECT_EQ(std::get<0>(connect(x, options)).code, Errc::kInvalidArgument);
  EXPECT_EQ(x.qp->state(), verbs::QueuePairState::kInit);  // and may be used still
  auto connected = connecting(x, to_listener());
  const auto r = request();
  ASSERT_TRUE(r);
  const auto accept = [&](End& end, ConnectRequest::AcceptOptions o) {
    return std::get<0>(get(r->async_accept(end.qp, std::move(o), cm::as_error(boost::asio::use_future)))).code;
  };
  End y(engine, pd);
  EXPECT_EQ(accept(y, {.ird = 16383}), Errc::kInvalidArgument);
  EXPECT_EQ(accept(y, {.private_data = std::vector<std::byte>(509)}), Errc::kInvalidArgument);
  EXPECT_EQ(accept(x, {}), Errc::kInvalidArgument);  // in use
  EXPECT_EQ(accept(y, {}), Errc::kOk);
  EXPECT_EQ(std::get<0>(get(std::move(connected))).code, Errc::kOk);
  COVERS("RFC5043-6-3");
  EXPECT_EQ(std::get<0>(connect(x, to_listener())).code, Errc::kInvalidArgument);  // used before
  EXPECT_EQ(Service::make(engine).error().code, Errc::kResource);
}

TEST_F(SctpService, ThePeerEnds) {
  listen();
  End x(engine, pd), y(engine, pd);
  join(x, y);
  x.receive();
  y.connection->disconnect();
  EXPECT_EQ(over(*x.connection).reason.code, Errc::kPeerClosed);
  EXPECT_EQ(x.next().status, Errc::kFlushed);
  EXPECT_EQ(over(*y.connection).reason.code, Errc::kAborted);
  EXPECT_TRUE(eventually([&] { return sctp->associations() == 0; }));
}

TEST_F(SctpService, AnAbortFlushesAndThePeerHears) {
  listen();
  End x(engine, pd), y(engine, pd);
  join(x, y);
  x.receive();
  x.connection->abort(make_error(Errc::kTimeout, "as the application has it"));
  EXPECT_EQ(x.next().status, Errc::kFlushed);
  EXPECT_STREQ(over(*x.connection).reason.why, "as the application has it");
  EXPECT_EQ(over(*y.connection).reason.code, Errc::kPeerClosed);
}

TEST_F(SctpService, QueuePairsOfOtherEngines) {
  listen();
  cm::Engine other;
  const verbs::ProtectionDomain elsewhere(other.context());
  End x(other, elsewhere), y(engine, pd);
  join(x, y);
  exchange(x, y);
  exchange(y, x);
  x.connection->disconnect();
  EXPECT_EQ(over(*y.connection).reason.code, Errc::kPeerClosed);
}

TEST_F(SctpService, ConnectingEndsByAnAbort) {
  listen();
  End x(engine, pd), y(engine, pd);
  auto waits = connecting(x, to_listener());
  const auto r = request();  // the association is up
  ASSERT_TRUE(r);
  x.qp->abort();
  EXPECT_EQ(std::get<0>(get(std::move(waits))).code, Errc::kAborted);
  ASSERT_TRUE(eventually([&] { return sctp->associations() == 0; }));
  const auto [error, none] = get(r->async_accept(y.qp, {}, cm::as_error(boost::asio::use_future)));
  EXPECT_TRUE(error.code == Errc::kPeerClosed || error.code == Errc::kConnectionLost) << name(error.code);
  const Silence silence;
  ConnectOptions nobody = silence.options();
  nobody.transport.connect_timeout = 60s;
  End z(engine, pd);
  auto asks = connecting(z, nobody);
  std::this_thread::sleep_for(20ms);
  z.qp->abort();
  EXPECT_EQ(std::get<0>(get(std::move(asks))).code, Errc::kAborted);
  EXPECT_TRUE(eventually([&] { return sctp->associations() == 0; }));
}

TEST_F(SctpService, AnAcceptThatWaitsHearsOfItsEnd) {
  listen();
  auto first = listener->async_accept(cm::as_error(boost::asio::use_future));
  EXPECT_EQ(std::get<0>(get(listener->async_accept(cm::as_error(boost::asio::use_future)))).code,
            Errc::kInvalidArgument);
  listener->cancel();
  EXPECT_EQ(std::get<0>(get(std::move(first))).code, Errc::kAborted);
  auto second = listener->async_accept(cm::as_error(boost::asio::use_future));
  listener.reset();
  EXPECT_EQ(std::get<0>(get(std::move(second))).code, Errc::kAborted);
}

TEST_F(SctpService, AServiceThatGoesEndsAll) {
  listen();
  End x(engine, pd), y(engine, pd), z(engine, pd);
  join(x, y);
  x.receive();
  auto waits = x.connection->async_wait_disconnected(cm::as_error(boost::asio::use_future));
  auto connected = connecting(z, to_listener());
  const auto undecided = request();
  sctp.reset();
  EXPECT_EQ(std::get<1>(get(std::move(waits))).reason.code, Errc::kAborted);
  EXPECT_EQ(std::get<0>(get(std::move(connected))).code, Errc::kAborted);
  EXPECT_EQ(x.next().status, Errc::kFlushed);
  EXPECT_TRUE(y.connection->disconnected());
  EXPECT_EQ(y.qp->state(), verbs::QueuePairState::kError);
  End late(engine, pd);
  EXPECT_EQ(std::get<0>(get(undecided->async_accept(late.qp, {}, cm::as_error(boost::asio::use_future)))).code,
            Errc::kAborted);
  EXPECT_EQ(std::get<0>(get(listener->async_accept(cm::as_error(boost::asio::use_future)))).code, Errc::kAborted);
  SetUp();  // and another one takes its place
  listen();
  End v(engine, pd), w(engine, pd);
  join(v, w);
  exchange(v, w);
}

// What an application forgets goes on until its end.
TEST_F(SctpService, ConnectionsLiveWithoutTheApplicationsReference) {
  listen();
  End x(engine, pd), y(engine, pd);
  join(x, y);
  x.connection.reset();
  y.connection.reset();
  exchange(x, y);
  ASSERT_TRUE(x.qp->modify(verbs::QueuePairState::kSqDrain));
  EXPECT_TRUE(sctp->wait_closed(20s));
  EXPECT_EQ(sctp->associations(), 0u);
  EXPECT_EQ(y.qp->state(), verbs::QueuePairState::kError);
}

// The number of the first thing that did not refuse, or 0.
int use_in_child(SctpServiceBase::Outcome& told, Service& sctp, Listener& listener, Connection& connection,
                 ConnectOptions options) {
  const auto hear = [&](const Error& error, const std::shared_ptr<Connection>& none) { told = {error, none}; };
  sctp.connect(connection.qp(), std::move(options), hear);
  if (std::get<0>(told).code != Errc::kInvalidArgument) return 1;
  if (sctp.listen({}).error().code != Errc::kInvalidArgument) return 2;
  if (sctp.associations() != 0 || !sctp.wait_closed(1h)) return 3;
  Errc asked = Errc::kOk;
  listener.accept([&](const Error& error, const std::unique_ptr<ConnectRequest>&) { asked = error.code; });
  if (asked != Errc::kInvalidArgument) return 4;
  connection.disconnect();
  connection.abort();
  if (!connection.disconnected() || connection.disconnected()->reason.code != Errc::kInvalidArgument) return 5;
  if (connection.counters().tx.sends != 0 || connection.local().port() != 0 || connection.negotiated().enhanced)
    return 6;
  if (!connection.private_data().empty() || connection.to_string().empty()) return 7;
  return 0;
}

TEST_F(SctpService, AForkedChildRefusesAndThePeersDoNotNotice) {
  listen();
  End x(engine, pd), y(engine, pd);
  join(x, y);
  exchange(x, y);
  const ConnectOptions options = to_listener();
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);
    Outcome told;
    const int wrong = use_in_child(told, *sctp, *listener, *x.connection, options);
    listener.reset();
    sctp.reset();
    ::_exit(wrong);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  exchange(x, y);
  exchange(y, x);
}

class SctpServicePolled : public SctpServiceBase {
 protected:
  SctpServicePolled() : SctpServiceBase(cm::Engine::Mode::kManual) {}
};

// Nobody but the poller does the I/O.
TEST_F(SctpServicePolled, AnEngineWithoutAThread) {
  listen();
  End x(engine, pd), y(engine, pd);
  join(x, y);
  y.receive();
  x.send();
  verbs::Completion c;
  ASSERT_TRUE(eventually([&] {
    engine.poll();
    return y.cq.poll({&c, 1}) == 1;
  }));
  EXPECT_EQ(c.status, Errc::kOk);
  EXPECT_EQ(x.next().status, Errc::kOk);
  x.connection->disconnect();
  EXPECT_EQ(over(*y.connection).reason.code, Errc::kPeerClosed);
}

TEST(SctpServiceBorrowed, AnIoContextOfTheApplication) {
  boost::asio::io_context io;
  cm::Engine engine(io);
  const verbs::ProtectionDomain pd(engine.context());
  auto sctp = Service::make(engine).value();
  ListenOptions where;
  where.endpoint = {boost::asio::ip::make_address("127.0.0.1"), 0};
  auto listener = sctp->listen(where).value();
  End x(engine, pd), y(engine, pd);
  listener->accept([&](const Error& error, const std::unique_ptr<ConnectRequest>& r) {
    if (!error) r->accept(y.qp, {}, [&](const Error&, std::shared_ptr<Connection> c) { y.connection = std::move(c); });
  });
  ConnectOptions to;
  to.host = "127.0.0.1";
  to.port = listener->local().port();
  sctp->connect(x.qp, to, [&](const Error&, std::shared_ptr<Connection> c) { x.connection = std::move(c); });
  for (int i = 0; i < 1000 && (!x.connection || !y.connection); ++i) io.run_one_for(20ms);
  ASSERT_TRUE(x.connection && y.connection);
  x.connection->disconnect();
  for (int i = 0; i < 1000 && !y.connection->disconnected(); ++i) io.run_one_for(20ms);
  EXPECT_EQ(y.connection->disconnected()->reason.code, Errc::kPeerClosed);
}

}  // namespace
}  // namespace iwarp::sctp_cm
