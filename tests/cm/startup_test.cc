// What two sides learn from each other while they connect: addresses, private data, IRD and ORD, rejections.
#include <linux/sockios.h>
#include <sys/ioctl.h>

#include <thread>

#include "iwarp/enhanced/private_depths.h"
#include "tests/cm/node.h"
#include "tests/cm/raw_tcp.h"
#include "tests/support/segments.h"

namespace iwarp::cm {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace): the vocabulary of these tests

class Startup : public ::testing::Test {
 protected:
  Engine server_engine_, client_engine_;
  Node server_{server_engine_}, client_{client_engine_};
};

TEST_F(Startup, BothSidesKnowTheirRolesAndAddresses) {
  const auto listener = listen(server_engine_);
  const Ends ends = join(client_, server_, *listener);
  const auto& c = *ends.client.connection;
  const auto& s = *ends.server.connection;
  EXPECT_TRUE(c.initiator());
  EXPECT_FALSE(s.initiator());
  EXPECT_EQ(c.remote(), listener->local());
  EXPECT_EQ(c.local(), s.remote());
  EXPECT_EQ(c.remote(), s.local());
  EXPECT_EQ(c.qp(), client_.qp);
  EXPECT_NE(c.to_string().find("role=initiator rev=2 enhanced=1 crc=1 p2p=1"), std::string::npos) << c.to_string();
  EXPECT_NE(s.to_string().find("role=responder rev=2"), std::string::npos) << s.to_string();
  EXPECT_EQ(c.disconnected(), std::nullopt);
  ping_pong(client_, server_);
}

class PrivateData : public ::testing::TestWithParam<std::size_t> {};

TEST_P(PrivateData, TravelsBothWays) {
  Engine engine;
  Node server(engine), client(engine);
  const auto listener = listen(engine);
  ConnectOptions o = to(*listener);
  o.private_data = pattern(GetParam(), 1);
  auto connecting = start_connect(client, o);
  const auto request = next_request(*listener);
  EXPECT_EQ(request->private_data(), o.private_data);
  ConnectRequest::AcceptOptions accept;
  accept.private_data = pattern(GetParam(), 2);
  auto accepting = request->async_accept(server.qp, accept, cm::as_error(boost::asio::use_future));
  const Outcome c = get_outcome(std::move(connecting)), s = get_outcome(std::move(accepting));
  ASSERT_EQ(c.error.code, Errc::kOk);
  EXPECT_EQ(c.connection->private_data(), accept.private_data);
  EXPECT_EQ(s.connection->private_data(), o.private_data);
}

INSTANTIATE_TEST_SUITE_P(Sizes, PrivateData, ::testing::Values(0, 1, 251));

TEST_F(Startup, RefusesToSendMorePrivateDataThanEveryPeerTakes) {
  const auto listener = listen(server_engine_);
  ConnectOptions o = to(*listener);
  o.private_data = pattern(252);
  const Outcome refused = get_outcome(start_connect(client_, o));
  EXPECT_EQ(refused.error.code, Errc::kInvalidArgument);
  EXPECT_EQ(refused.connection, nullptr);

  Node client(client_engine_);
  auto connecting = start_connect(client, to(*listener));
  const auto request = next_request(*listener);
  ConnectRequest::AcceptOptions accept;
  accept.private_data = pattern(252);
  const Outcome not_sent =
      get_outcome(request->async_accept(server_.qp, accept, cm::as_error(boost::asio::use_future)));
  EXPECT_EQ(not_sent.error.code, Errc::kInvalidArgument);
  accept.private_data = pattern(251);  // the request is still undecided
  EXPECT_EQ(get_outcome(request->async_accept(server_.qp, accept, cm::as_error(boost::asio::use_future))).error.code,
            Errc::kOk);
  EXPECT_EQ(get_outcome(std::move(connecting)).error.code, Errc::kOk);
}

TEST_F(Startup, TakesTheWholePrivateDataFieldFromAPeer) {
  COVERS("RFC5044-7.1.1-32");
  const auto listener = listen(server_engine_);
  RawTcp peer = RawTcp::connect(listener->local().port());
  const Bytes most = pattern(508);  // and 4 octets of enhanced data: 512
  ASSERT_TRUE(peer.send(octets(good_request(most))));
  const auto request = next_request(*listener);
  EXPECT_EQ(request->private_data(), most);
  auto accepting = request->async_accept(server_.qp, {}, cm::as_error(boost::asio::use_future));
  const FrameRead reply = read_frame(peer, true);
  ASSERT_TRUE(reply.complete);
  EXPECT_FALSE(reply.frame.reject);
  ASSERT_TRUE(peer.send(fpdu(write_segment(Stag{0}, 0, {}), true)));  // the RTR opens the connection
  EXPECT_EQ(get_outcome(std::move(accepting)).error.code, Errc::kOk);
}

TEST_F(Startup, SettlesIrdAndOrdOnBothSides) {
  COVERS("RFC6581-9.1-6");
  COVERS("RFC6581-9.1-7");
  COVERS("RFC6581-9.1-8");
  COVERS("RFC5040-6.1-4");
  COVERS("RFC5040-6.1-6");
  COVERS("RFC5040-6.1-8");
  const auto listener = listen(server_engine_);
  mpa::Policy policy;
  policy.ird = 5;
  policy.ord = 40;
  auto connecting = start_connect(client_, to(*listener, policy));
  const auto request = next_request(*listener);
  EXPECT_EQ(request->peer_ird(), 5);
  EXPECT_EQ(request->peer_ord(), 40);
  auto accepting = request->async_accept(server_.qp, {.ird = 7, .ord = 32, .private_data = {}},
                                         cm::as_error(boost::asio::use_future));
  const Outcome c = get_outcome(std::move(connecting)), s = get_outcome(std::move(accepting));
  ASSERT_EQ(c.error.code, Errc::kOk);
  ASSERT_EQ(s.error.code, Errc::kOk);
  const mpa::Negotiated client = c.connection->negotiated(), server = s.connection->negotiated();
  EXPECT_LE(client.ord, server.ird);
  EXPECT_LE(server.ord, client.ird);
  EXPECT_EQ(server.ord, 5) << "lowered to what the client admits";
  EXPECT_EQ(server.ird, 40) << "raised to what the client wants, below max_ird";
  EXPECT_EQ(client.peer_ird, server.ird);
  EXPECT_EQ(client.peer_ord, server.ord);
  EXPECT_EQ(server.peer_ird, 5);
  EXPECT_EQ(server.peer_ord, 40);
}

// Revision 1, as SMB Direct does it: 8 octets of private data each way, and both applications tell their own end.
TEST_F(Startup, ApplicationsSettleIrdAndOrdInTheirPrivateData) {
  COVERS("RFC6581-9.1-22");
  const auto listener = listen(server_engine_);
  mpa::Policy policy;
  policy.revision = 1;
  policy.ird = 4;
  policy.ord = 40;
  ConnectOptions o = to(*listener, policy);
  const auto asks = enhanced::write_private_depths({policy.ird, policy.ord});
  o.private_data.assign(asks.begin(), asks.end());
  auto connecting = start_connect(client_, o);
  const auto request = next_request(*listener);
  EXPECT_FALSE(request->enhanced());
  const auto told = enhanced::parse_private_depths(request->private_data());
  ASSERT_TRUE(told);
  ConnectRequest::AcceptOptions accept;
  accept.ird = 8;
  accept.ord = 16;
  accept.told = told;
  const auto answer = enhanced::write_private_depths(enhanced::answer_private_depths({8, 16}, *told));
  accept.private_data.assign(answer.begin(), answer.end());
  auto accepting = request->async_accept(server_.qp, accept, cm::as_error(boost::asio::use_future));
  const Outcome c = get_outcome(std::move(connecting)), s = get_outcome(std::move(accepting));
  ASSERT_EQ(c.error.code, Errc::kOk);
  ASSERT_EQ(s.error.code, Errc::kOk);
  const auto theirs = enhanced::parse_private_depths(c.connection->private_data());
  ASSERT_TRUE(theirs);
  const enhanced::Depths peer = enhanced::crossed(*theirs);
  ASSERT_TRUE(c.connection->settle_depths(peer.ird, peer.ord));
  const mpa::Negotiated client = c.connection->negotiated(), server = s.connection->negotiated();
  EXPECT_EQ(server.ord, 4) << "lowered to what the client admits";
  EXPECT_EQ(server.ird, 40) << "raised to what the client wants";
  EXPECT_EQ(client.ord, 8) << "what the server could do when it answered";
  EXPECT_EQ(client.ird, 4);
  ping_pong(client_, server_);
  EXPECT_STREQ(name(s.connection->settle_depths(16383, 1).error().code), "invalid_argument");
  c.connection->abort();
  EXPECT_STREQ(name(c.connection->settle_depths(1, 1).error().code), "not_connected");
}

TEST_F(Startup, SettledIrdAndOrdAreNotTheApplicationsAnyMore) {
  const auto listener = listen(server_engine_);
  const Ends ends = join(client_, server_, *listener);
  EXPECT_STREQ(name(ends.client.connection->settle_depths(1, 1).error().code), "invalid_argument");
  EXPECT_STREQ(name(ends.server.connection->settle_depths(1, 1).error().code), "invalid_argument");
}

// What the application of the other end needs, and what the peer can: seen at both ends.
TEST_F(Startup, RejectionStatesTheOrdThatIsNeeded) {
  COVERS("RFC6581-9.1-13");
  COVERS("RFC6581-9.1-20");
  const auto listener = listen(server_engine_);
  mpa::Policy policy;
  policy.ird = 2;
  auto connecting = start_connect(client_, to(*listener, policy));
  const auto request = next_request(*listener);
  EXPECT_EQ(request->peer_ird(), 2);
  EXPECT_EQ(request->reject({}, 16383).error().code, Errc::kInvalidArgument);
  EXPECT_TRUE(request->reject(pattern(5), 100).ok());
  const Outcome c = get_outcome(std::move(connecting));
  ASSERT_EQ(c.error.code, Errc::kPeerRejected);
  const auto how = c.connection->disconnected();
  EXPECT_EQ(how->private_data, pattern(5));
  ASSERT_TRUE(how->rejected_with);
  EXPECT_EQ(how->rejected_with->ord, 100);
}

TEST_F(Startup, RejectionCarriesPrivateDataAndIrdOrd) {
  COVERS("RFC6581-9.1-20");
  const auto listener = listen(server_engine_);
  auto connecting = start_connect(client_, to(*listener));
  client_.recv(9);
  const auto request = next_request(*listener);
  EXPECT_EQ(request->reject(pattern(252)).error().code, Errc::kInvalidArgument) << "and may still be decided";
  EXPECT_TRUE(request->reject(pattern(33)).ok());
  EXPECT_EQ(request->reject(pattern(33)).error().code, Errc::kInvalidArgument) << "decided";
  const Outcome c = get_outcome(std::move(connecting));
  EXPECT_EQ(c.error.code, Errc::kPeerRejected);
  ASSERT_NE(c.connection, nullptr);
  const auto how = c.connection->disconnected();
  ASSERT_TRUE(how.has_value());
  EXPECT_FALSE(how->was_established);
  EXPECT_EQ(how->private_data, pattern(33));
  EXPECT_EQ(c.connection->private_data(), pattern(33));
  EXPECT_TRUE(how->rejected_with.has_value());
  client_.expect(verbs::WcOp::kRecv, 9, Errc::kFlushed);
}

TEST_F(Startup, ARequestDroppedWithoutDecisionIsRejected) {
  const auto listener = listen(server_engine_);
  auto connecting = start_connect(client_, to(*listener));
  next_request(*listener).reset();
  EXPECT_EQ(get_outcome(std::move(connecting)).error.code, Errc::kPeerRejected);
}

TEST_F(Startup, CrcIsOnUnlessBothSidesLeaveItOff) {
  using Crc = mpa::Policy::Crc;
  struct Case {
    Crc client, server;
    bool on;
  };
  for (const Case& c : {Case{Crc::kOn, Crc::kPreferOff, true}, Case{Crc::kPreferOff, Crc::kOn, true},
                        Case{Crc::kPreferOff, Crc::kPreferOff, false}, Case{Crc::kOff, Crc::kOff, false}}) {
    ListenOptions lo;
    lo.policy.crc = c.server;
    const auto listener = listen(server_engine_, lo);
    Node server(server_engine_), client(client_engine_);
    mpa::Policy policy;
    policy.crc = c.client;
    const Ends ends = join(client, server, *listener, to(*listener, policy));
    EXPECT_EQ(ends.client.connection->negotiated().crc, c.on);
    EXPECT_EQ(ends.server.connection->negotiated().crc, c.on);
    ping_pong(client, server);
  }
}

TEST_F(Startup, WorksWithoutPeerToPeerAndWithRevision1) {
  for (const std::uint8_t revision : {std::uint8_t{1}, std::uint8_t{2}}) {
    const auto listener = listen(server_engine_);
    Node server(server_engine_), client(client_engine_);
    mpa::Policy policy;
    policy.revision = revision;
    policy.peer_to_peer = false;
    const Ends ends = join(client, server, *listener, to(*listener, policy));
    EXPECT_EQ(ends.client.connection->negotiated().revision, revision);
    EXPECT_EQ(ends.client.connection->negotiated().enhanced, revision == 2);
    ping_pong(client, server);
  }
}

bool has_ipv6() {
  boost::asio::io_context io;
  boost::system::error_code ec;
  boost::asio::ip::tcp::acceptor a(io);
  a.open(boost::asio::ip::tcp::v6(), ec);
  if (!ec) a.bind({boost::asio::ip::address_v6::loopback(), 0}, ec);
  return !ec;
}

TEST_F(Startup, Ipv6) {
  if (!has_ipv6()) GTEST_SKIP() << "this host has no ::1";
  ListenOptions lo;
  lo.endpoint = {boost::asio::ip::address_v6::loopback(), 0};
  const auto listener = listen(server_engine_, lo);
  ConnectOptions o = to(*listener);
  o.host = "::1";
  const Ends ends = join(client_, server_, *listener, o);
  EXPECT_EQ(to_string(ends.client.connection->remote()), "[::1]:" + std::to_string(listener->local().port()));
  ping_pong(client_, server_);
}

TEST_F(Startup, ADualStackListenerServesIpv4AndIpv6) {
  if (!has_ipv6()) GTEST_SKIP() << "this host has no ::1";
  ListenOptions lo;
  lo.endpoint = {boost::asio::ip::address_v6::any(), 0};
  const auto listener = listen(server_engine_, lo);
  for (const char* host : {"127.0.0.1", "::1", "::ffff:127.0.0.1", "localhost"}) {
    SCOPED_TRACE(host);
    Node server(server_engine_), client(client_engine_);
    ConnectOptions o = to(*listener);
    o.host = host;
    const Ends ends = join(client, server, *listener, o);
    ASSERT_NE(ends.server.connection, nullptr);
    ping_pong(client, server);
  }
}

TEST_F(Startup, BindsTheLocalAddressAskedFor) {
  const auto listener = listen(server_engine_);
  ConnectOptions o = to(*listener);
  o.local = {boost::asio::ip::make_address("127.0.0.2"), 0};
  const Ends ends = join(client_, server_, *listener, o);
  EXPECT_EQ(ends.server.connection->remote().address(), o.local->address());
}

// Though TCP still remembers the connection that had the port before.
TEST_F(Startup, BindsALocalPortThatWasInUseAMomentAgo) {
  const auto listener = listen(server_engine_), another = listen(server_engine_);
  ConnectOptions o = to(*listener);
  o.local = {boost::asio::ip::address_v4::loopback(), 0};
  const Ends before = join(client_, server_, *listener, o);
  ASSERT_NE(before.client.connection, nullptr);
  before.client.connection->disconnect();  // first, so that this end remembers
  (void)ending(*before.client.connection);
  Node client(client_engine_), server(server_engine_);
  o.port = another->local().port();
  o.local = before.client.connection->local();
  const Ends ends = join(client, server, *another, o);
  ASSERT_NE(ends.server.connection, nullptr);
  EXPECT_EQ(ends.server.connection->remote(), *o.local);
}

TEST_F(Startup, WhatIsPostedWhileItConnectsIsSent) {
  boost::asio::io_context io;
  Engine engine(io);
  Node client(engine);
  const auto listener = listen(server_engine_);
  auto connecting = start_connect(client, to(*listener));
  client.send(1, 16);  // nothing has moved yet
  auto asked = listener->async_accept(cm::as_error(boost::asio::use_future));
  server_.recv(2);
  std::unique_ptr<ConnectRequest> request;
  Connecting accepting;
  EXPECT_TRUE(eventually([&] {
    io.restart();
    io.poll();
    if (request == nullptr && asked.valid() && asked.wait_for(0s) == std::future_status::ready) {
      request = std::get<1>(asked.get());
      accepting = request->async_accept(server_.qp, {}, cm::as_error(boost::asio::use_future));
    }
    return connecting.wait_for(0s) == std::future_status::ready && !client.cq.empty();
  }));
  EXPECT_EQ(get_outcome(std::move(connecting)).error.code, Errc::kOk);
  verbs::Completion sent;
  ASSERT_EQ(client.cq.poll({&sent, 1}), 1U);
  EXPECT_STREQ(name(sent.status), "ok");
  server_.expect(verbs::WcOp::kRecv, 2);
}

TEST_F(Startup, ARequestOutlivesTheRefusalOfAQueuePairThatWasUsed) {
  const auto listener = listen(server_engine_);
  (void)join(client_, server_, *listener);
  Node client(client_engine_), server(server_engine_);
  auto connecting = start_connect(client, to(*listener));
  const auto request = next_request(*listener);
  EXPECT_EQ(get_outcome(request->async_accept(server_.qp, {}, cm::as_error(boost::asio::use_future))).error.code,
            Errc::kInvalidArgument);
  auto accepting = request->async_accept(server.qp, {}, cm::as_error(boost::asio::use_future));
  EXPECT_EQ(get_outcome(std::move(connecting)).error.code, Errc::kOk);
  EXPECT_EQ(get_outcome(std::move(accepting)).error.code, Errc::kOk);
  const Node fresh(server_engine_);
  EXPECT_EQ(get_outcome(request->async_accept(fresh.qp, {}, cm::as_error(boost::asio::use_future))).error.code,
            Errc::kInvalidArgument)
      << "decided";
}

// What the peer has sent lies in the receiver's socket, or has been read.
bool has_arrived(const RawTcp& from) {
  int outstanding = 1;
  return ::ioctl(from.fd(), SIOCOUTQ, &outstanding) == 0 && outstanding == 0;
}

const Bytes kRtr = fpdu(write_segment(Stag{0}, 0, {}), true);

// The clock alone is no judge: what came in time while nobody looked came in time.
TEST(ManualStartup, AFirstFpduThatLayInTheSocketIsNotLate) {
  Engine engine(Engine::Mode::kManual);
  stream::Options o;
  o.first_fpdu_timeout = 50ms;
  Node server(engine, o);
  const auto listener = listen(engine);
  auto incoming = listener->async_accept(cm::as_error(boost::asio::use_future));
  RawTcp peer = RawTcp::connect(listener->local().port());
  ASSERT_TRUE(peer.send(octets(good_request())));
  ASSERT_TRUE(engine.wait_for(incoming, kPatience));
  const auto request = std::get<1>(incoming.get());
  ASSERT_NE(request, nullptr);
  auto accepting = request->async_accept(server.qp, {.mpa = o}, cm::as_error(boost::asio::use_future));
  const auto replied = std::chrono::steady_clock::now();
  ASSERT_TRUE(read_frame(peer, true).complete);
  ASSERT_TRUE(peer.send(kRtr));
  ASSERT_TRUE(eventually([&] { return has_arrived(peer); }));
  std::this_thread::sleep_until(replied + 2 * o.first_fpdu_timeout);  // the application is busy elsewhere
  ASSERT_TRUE(engine.wait_for(accepting, kPatience));
  EXPECT_STREQ(name(std::get<0>(accepting.get()).code), "ok");
}

// In the segment of the Request or in one of its own, before the application has decided: the same answer.
TEST_F(Startup, AnFpduBehindTheUnansweredRequestIsRefusedHoweverTcpCuts) {
  COVERS("RFC5044-7.1.1-31");
  const auto listener = listen(server_engine_);
  const Bytes request_octets = octets(good_request());
  Bytes both = request_octets;
  both.insert(both.end(), kRtr.begin(), kRtr.end());
  RawTcp together = RawTcp::connect(listener->local().port());
  ASSERT_TRUE(together.send(both));
  EXPECT_TRUE(together.read(1).empty()) << "no Reply";

  RawTcp apart = RawTcp::connect(listener->local().port());
  ASSERT_TRUE(apart.send(request_octets));
  const auto request = next_request(*listener);
  ASSERT_TRUE(apart.send(kRtr));
  ASSERT_TRUE(eventually([&] { return has_arrived(apart); }));
  server_.recv(1);
  const Outcome s = get_outcome(request->async_accept(server_.qp, {}, cm::as_error(boost::asio::use_future)));
  EXPECT_STREQ(name(s.error.code), "malformed_startup_frame");
  EXPECT_TRUE(apart.read(1).empty()) << "no Reply";
  server_.expect(verbs::WcOp::kRecv, 1, Errc::kFlushed);
}

}  // namespace
}  // namespace iwarp::cm
