// Connections that never come about, and what the application is told.
#include "tests/cm/node.h"
#include "tests/cm/raw_tcp.h"

namespace iwarp::cm {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace): the vocabulary of these tests

class ConnectFailure : public ::testing::Test {
 protected:
  // A failed connect() flushes what was posted.
  Error fail(const ConnectOptions& o) {
    client_.recv(1);
    const Outcome c = get_outcome(start_connect(client_, o));
    EXPECT_EQ(c.connection, nullptr);
    client_.expect(verbs::WcOp::kRecv, 1, Errc::kFlushed);
    return c.error;
  }

  Engine engine_;
  Node client_{engine_};
};

TEST_F(ConnectFailure, NameDoesNotResolve) {
  ConnectOptions o = to_port(1);
  o.host = "does-not-exist.invalid";
  const Error e = fail(o);
  EXPECT_EQ(e.code, Errc::kSystem);
  EXPECT_EQ(std::string(e.why).rfind("cannot resolve the host name: ", 0), 0U) << e.why;
}

TEST_F(ConnectFailure, NobodyListens) {
  std::uint16_t port = 0;
  { port = RawListener().port(); }
  const Error e = fail(to_port(port));
  EXPECT_EQ(e.code, Errc::kConnectionRefused);
  EXPECT_NE(std::string(e.why).find("refused"), std::string::npos) << e.why;
}

// A port that is bound, so that nobody else gets it, and where nobody listens.
class SilentPort {
 public:
  SilentPort() : acceptor(io_) {
    acceptor.open(boost::asio::ip::tcp::v4());
    acceptor.bind({boost::asio::ip::make_address("127.0.0.1"), 0});
  }
  [[nodiscard]] std::uint16_t number() const { return acceptor.local_endpoint().port(); }

 private:
  boost::asio::io_context io_;

 public:
  boost::asio::ip::tcp::acceptor acceptor;
};

TEST_F(ConnectFailure, NobodyListensForAsLongAsWanted) {
  const SilentPort port;
  ConnectOptions o = to_port(port.number());
  o.refusal_patience = 100ms;
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(fail(o).code, Errc::kConnectionRefused);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 100ms);
}

TEST_F(ConnectFailure, PatienceWithRefusalsEndsWithTheLimitForTcp) {
  const SilentPort port;
  ConnectOptions o = to_port(port.number());
  o.refusal_patience = 1h;
  o.connect_timeout = 100ms;
  EXPECT_EQ(fail(o).code, Errc::kTimeout);
}

// TCP lets a socket connect to its own port where nobody listens.
TEST_F(ConnectFailure, AConnectionToItselfIsARefusal) {
  std::uint16_t port = 0;
  { port = SilentPort().number(); }
  ConnectOptions o = to_port(port);
  o.local.emplace(boost::asio::ip::make_address("127.0.0.1"), port);
  o.policy.startup_timeout = 1h;
  o.refusal_patience = 20ms;
  EXPECT_EQ(fail(o).code, Errc::kConnectionRefused);
  boost::asio::io_context io;
  boost::asio::ip::tcp::acceptor server(io);
  server.open(boost::asio::ip::tcp::v4());
  EXPECT_NO_THROW(server.bind(*o.local)) << "nothing of it is left";
}

TEST_F(ConnectFailure, RefusedOneConnectsWhenSomebodyListens) {
  SilentPort port;
  ConnectOptions o = to_port(port.number());
  o.refusal_patience = kPatience;
  auto connecting = start_connect(client_, o);
  EXPECT_EQ(connecting.wait_for(50ms), std::future_status::timeout);
  auto listener = Listener::listen(engine_, std::move(port.acceptor), {});
  ASSERT_TRUE(listener);
  Node server(engine_);
  const auto request = next_request(**listener);
  ASSERT_NE(request, nullptr);
  request->accept(server.qp, {}, [](const Error&, const std::shared_ptr<Connection>&) {});
  EXPECT_EQ(get_outcome(std::move(connecting)).error.code, Errc::kOk);
}

// A listener whose backlog is full drops SYNs, which looks like a host that is off.
TEST_F(ConnectFailure, TcpConnectTimesOut) {
  RawListener full(0);
  ConnectOptions o = to_port(full.port());
  o.connect_timeout = 300ms;
  Error e{};
  for (int i = 0; i < 8 && e.code != Errc::kTimeout; ++i) {
    Node client(engine_);
    o.policy.startup_timeout = 200ms;
    e = get_outcome(start_connect(client, o)).error;
  }
  EXPECT_EQ(e.code, Errc::kTimeout) << name(e.code) << ": " << e.why;
}

TEST_F(ConnectFailure, PeerAcceptsButNeverReplies) {
  COVERS("RFC5044-7.1.2-31");
  RawListener silent;
  ConnectOptions o = to_port(silent.port());
  o.policy.startup_timeout = 100ms;
  client_.recv(1);
  const Outcome c = get_outcome(start_connect(client_, o));
  EXPECT_EQ(c.error.code, Errc::kStartupTimeout);
  client_.expect(verbs::WcOp::kRecv, 1, Errc::kFlushed);
}

TEST_F(ConnectFailure, PolicyContradictsItself) {
  ConnectOptions o = to_port(1);
  o.policy.rtr_read = o.policy.rtr_write = false;
  EXPECT_EQ(fail(o).code, Errc::kInvalidArgument);

  ListenOptions lo;
  lo.policy.revision = 9;
  EXPECT_EQ(Listener::listen(engine_, lo).error().code, Errc::kInvalidArgument);
}

TEST_F(ConnectFailure, LocalAddressIsOfAnotherFamilyOrHost) {
  const RawListener somebody;
  ConnectOptions o = to_port(somebody.port());
  o.local = {boost::asio::ip::address_v6::loopback(), 0};
  const Error of_another_family = fail(o);
  EXPECT_EQ(of_another_family.code, Errc::kSystem);
  EXPECT_STREQ(of_another_family.why, "local address is of another family than the peer's");

  Node other(engine_);
  o.local = {boost::asio::ip::make_address("192.0.2.1"), 0};
  const Error e = get_outcome(start_connect(other, o)).error;
  EXPECT_EQ(e.code, Errc::kSystem);
  EXPECT_EQ(std::string(e.why).rfind("Cannot assign requested address: ", 0), 0U) << e.why;
}

TEST_F(ConnectFailure, AQueuePairServesOneConnectionOnly) {
  COVERS("RFC5041-2.3-1");
  const auto listener = listen(engine_);
  Node server(engine_);
  const Ends ends = join(client_, server, *listener);
  ASSERT_EQ(ends.client.error.code, Errc::kOk);

  const Outcome again = get_outcome(start_connect(client_, to(*listener)));
  EXPECT_EQ(again.error.code, Errc::kInvalidArgument);
  EXPECT_EQ(again.connection, nullptr);

  Node third(engine_);
  auto connecting = start_connect(third, to(*listener));
  auto request = next_request(*listener);
  if (request->remote() == ends.server.connection->remote()) request = next_request(*listener);
  EXPECT_EQ(get_outcome(request->async_accept(server.qp, {}, cm::as_error(boost::asio::use_future))).error.code,
            Errc::kInvalidArgument);
  request->reject();
  (void)get_outcome(std::move(connecting));
  ping_pong(client_, server);  // the connection that has the queue pairs is untouched
}

TEST_F(ConnectFailure, AnAbortedQueuePairDoesNotConnect) {
  const auto listener = listen(engine_);
  client_.qp->abort();
  EXPECT_EQ(get_outcome(start_connect(client_, to(*listener))).error.code, Errc::kInvalidArgument);
}

TEST_F(ConnectFailure, AbortEndsAnAttemptUnderWay) {
  RawListener silent;
  client_.recv(1);
  auto connecting = start_connect(client_, to_port(silent.port()));
  RawTcp peer = silent.accept();
  ASSERT_TRUE(read_frame(peer, false).complete);
  client_.qp->abort();
  client_.expect(verbs::WcOp::kRecv, 1, Errc::kFlushed);
  EXPECT_EQ(get_outcome(std::move(connecting)).error.code, Errc::kAborted);
  EXPECT_EQ(peer.end(), RawTcp::End::kReset);
}

TEST_F(ConnectFailure, PortIsTaken) {
  const auto listener = listen(engine_);
  ListenOptions lo;
  lo.endpoint = listener->local();
  const auto second = Listener::listen(engine_, lo);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, Errc::kSystem);
  EXPECT_NE(std::string(second.error().why).find("in use"), std::string::npos);
}

TEST_F(ConnectFailure, ADecisionIsMadeOnce) {
  const auto listener = listen(engine_);
  auto connecting = start_connect(client_, to(*listener));
  const auto request = next_request(*listener);
  Node server(engine_), other(engine_);
  auto first = request->async_accept(server.qp, {}, cm::as_error(boost::asio::use_future));
  const Outcome second = get_outcome(request->async_accept(other.qp, {}, cm::as_error(boost::asio::use_future)));
  EXPECT_EQ(second.error.code, Errc::kInvalidArgument);
  request->reject();
  EXPECT_EQ(get_outcome(std::move(first)).error.code, Errc::kOk);
  EXPECT_EQ(get_outcome(std::move(connecting)).error.code, Errc::kOk);
  ping_pong(client_, server);
}

}  // namespace
}  // namespace iwarp::cm
