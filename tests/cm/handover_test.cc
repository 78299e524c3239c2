// TCP that the application has used before MPA, and TCP that it gets back when MPA is rejected (RFC 5044 s7.1.2,
// s7.1.3, s7.1.5), in both roles.
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>

#include "iwarp/cm/accept_over.h"
#include "tests/cm/node.h"
#include "tests/cm/raw_tcp.h"
#include "tests/support/segments.h"

namespace iwarp::cm {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace): the vocabulary of these tests
using boost::asio::use_future;
using boost::asio::ip::tcp;

// Two ends of a TCP connection, as an application has them.
struct TcpPair {
  explicit TcpPair(const tcp& protocol = tcp::v4()) : client(io), server(io) {
    tcp::acceptor acceptor(io,
                           {protocol == tcp::v4() ? boost::asio::ip::address(boost::asio::ip::address_v4::loopback())
                                                  : boost::asio::ip::address_v6::loopback(),
                            0});
    client.connect(acceptor.local_endpoint());
    acceptor.accept(server);
  }
  boost::asio::io_context io;
  tcp::socket client, server;
};

void say(tcp::socket& from, const Bytes& what) {
  boost::asio::write(from, boost::asio::buffer(what));
}
Bytes hear(tcp::socket& at, std::size_t n) {
  Bytes out(n);
  boost::asio::read(at, boost::asio::buffer(out));
  return out;
}
// Of a connection that was given back.
RawTcp raw(TcpConnection tcp) {
  return RawTcp(tcp.release());
}
// A socket with an address at each end as TCP has, but of UDP.
int connected_udp() {
  const int fd = ::socket(AF_INET, SOCK_DGRAM, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(9);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
  return fd;
}
bool is_open(int fd) {
  return ::fcntl(fd, F_GETFD) != -1;
}

bool has_ipv6() {
  boost::asio::io_context io;
  boost::system::error_code ec;
  tcp::acceptor a(io);
  a.open(tcp::v6(), ec);
  if (!ec) a.bind({boost::asio::ip::address_v6::loopback(), 0}, ec);
  return !ec;
}

class Handover : public ::testing::Test {
 protected:
  Connecting over(TcpConnection tcp, const ConnectOptions& options = {}) {
    return async_connect_over(client_engine_, client_.qp, std::move(tcp), options, as_error(use_future));
  }
  auto accept(TcpConnection tcp, const AcceptOverOptions& options = {}) {
    return async_accept_over(server_engine_, std::move(tcp), options, as_error(use_future));
  }
  // Both ends of `tcp` become one connection.
  void join_over(TcpConnection client, TcpConnection server) {
    auto accepting = accept(std::move(server));
    auto connecting = over(std::move(client));
    const auto [error, request] = get(std::move(accepting));
    ASSERT_STREQ(name(error.code), "ok") << error.why;
    auto accepted = request->async_accept(server_.qp, {}, as_error(use_future));
    const Outcome c = get_outcome(std::move(connecting)), s = get_outcome(std::move(accepted));
    ASSERT_STREQ(name(c.error.code), "ok") << c.error.why;
    ASSERT_STREQ(name(s.error.code), "ok") << s.error.why;
    EXPECT_TRUE(c.connection->initiator());
    EXPECT_FALSE(s.connection->initiator());
    EXPECT_EQ(c.connection->remote(), s.connection->local());
    ping_pong(client_, server_);
  }

  Engine server_engine_, client_engine_;
  Node server_{server_engine_}, client_{client_engine_};
};

TEST_F(Handover, MpaBeginsWhereTheApplicationsProtocolEnds) {
  COVERS("RFC5044-7.1-4");
  COVERS("RFC5044-7.1.3-1");
  TcpPair p;
  say(p.client, pattern(1000, 1));
  EXPECT_EQ(hear(p.server, 1000), pattern(1000, 1));
  say(p.server, pattern(500, 2));
  EXPECT_EQ(hear(p.client, 500), pattern(500, 2));
  join_over(TcpConnection(std::move(p.client)), TcpConnection(std::move(p.server)));
}

// Who sends the Request is the Initiator, whoever sent the SYN.
TEST_F(Handover, TheEndThatAcceptedTcpMayBeTheInitiator) {
  COVERS("RFC5044-7.1-9");
  TcpPair p;
  say(p.client, pattern(100, 1));
  EXPECT_EQ(hear(p.server, 100), pattern(100, 1));
  join_over(TcpConnection(std::move(p.server)), TcpConnection(std::move(p.client)));
}

TEST_F(Handover, TakesDescriptorsAndIpv6) {
  if (!has_ipv6()) GTEST_SKIP() << "this host has no ::1";
  TcpPair p(tcp::v6());
  join_over(TcpConnection(p.client.release()), TcpConnection(p.server.release()));
}

// What the application has read behind its own last message is the beginning of the Request: any part of it, or all.
TEST_F(Handover, NoOctetIsLostThatTheApplicationHasRead) {
  COVERS("RFC5044-7.1.5-1");
  const Bytes request = octets(good_request(pattern(9)));
  for (const std::size_t early : {std::size_t{1}, std::size_t{19}, request.size() - 1, request.size()}) {
    SCOPED_TRACE(early);
    TcpPair p;
    RawTcp peer(p.client.release());
    ASSERT_TRUE(peer.send(pattern(100)));
    ASSERT_TRUE(peer.send(request));
    const Bytes read = hear(p.server, 100 + early);
    auto accepting = accept(TcpConnection(std::move(p.server), Bytes(read.begin() + 100, read.end())));
    const auto [error, got] = get(std::move(accepting));
    ASSERT_STREQ(name(error.code), "ok") << error.why;
    EXPECT_EQ(got->private_data(), pattern(9));
    EXPECT_TRUE(got->reject(pattern(3)).ok());
    EXPECT_TRUE(read_frame(peer, true).frame.reject);
  }
}

TEST_F(Handover, EarlyOctetsOfAnInitiatorAreTheReply) {
  COVERS("RFC5044-7.1.5-1");
  const Bytes reply = octets(good_reply());
  TcpPair p;
  RawTcp peer(p.server.release());
  auto connecting = over(TcpConnection(std::move(p.client), Bytes(reply.begin(), reply.begin() + 7)));
  ASSERT_TRUE(read_frame(peer, false).complete);
  ASSERT_TRUE(peer.send(Bytes(reply.begin() + 7, reply.end())));
  EXPECT_STREQ(name(get_outcome(std::move(connecting)).error.code), "ok");

  TcpPair q;
  Node other(client_engine_);
  auto refused = async_connect_over(client_engine_, other.qp, TcpConnection(std::move(q.client), pattern(1)),
                                    ConnectOptions{}, as_error(use_future));
  EXPECT_STREQ(name(get_outcome(std::move(refused)).error.code), "malformed_startup_frame");
  RawTcp stranger(q.server.release());
  EXPECT_NE(stranger.end(), RawTcp::End::kTimeout);
}

// Whoever is told of a failure finds TCP closed.
TEST_F(Handover, TcpIsClosedBeforeAFailureIsTold) {
  TcpPair p;
  const int fd = p.client.release();
  ConnectOptions o;
  o.private_data = pattern(252);
  std::promise<std::pair<Errc, bool>> told;
  auto heard = told.get_future();
  async_connect_over(client_engine_, client_.qp, TcpConnection(fd), o,
                     [&](const Error& error, const std::shared_ptr<Connection>&) {
                       told.set_value({error.code, is_open(fd)});
                     });
  const auto [code, open] = get(std::move(heard));
  EXPECT_STREQ(name(code), "invalid_argument");
  EXPECT_FALSE(open);
}

// RFC 5044 s7.1.3: octets that are no Request end TCP at once.
TEST_F(Handover, WhatIsNoRequestEndsTcp) {
  COVERS("RFC5044-7.1.3-2");
  for (const bool early : {false, true}) {
    TcpPair p;
    RawTcp peer(p.client.release());
    if (!early) {
      ASSERT_TRUE(peer.send(pattern(5)));
    }
    const auto [error, request] = get(accept(TcpConnection(std::move(p.server), early ? pattern(5) : Bytes{})));
    EXPECT_STREQ(name(error.code), "malformed_startup_frame");
    EXPECT_EQ(request, nullptr);
    EXPECT_NE(peer.end(), RawTcp::End::kTimeout);
  }
}

TEST_F(Handover, WaitForTheRequestIsBoundedAndCanBeCancelled) {
  AcceptOverOptions soon;
  soon.policy.startup_timeout = 20ms;
  TcpPair p;
  RawTcp peer(p.client.release());
  EXPECT_STREQ(name(std::get<0>(get(accept(TcpConnection(std::move(p.server)), soon))).code), "startup_timeout");
  EXPECT_NE(peer.end(), RawTcp::End::kTimeout);

  TcpPair q;
  RawTcp other(q.client.release());
  boost::asio::cancellation_signal signal;
  std::promise<Error> told;
  async_accept_over(server_engine_, TcpConnection(std::move(q.server)), {},
                    boost::asio::bind_cancellation_slot(
                        signal.slot(), [&](const Error& error, std::unique_ptr<ConnectRequest> request) {
                          EXPECT_EQ(request, nullptr);
                          told.set_value(error);
                        }));
  signal.emit(boost::asio::cancellation_type::terminal);
  EXPECT_STREQ(name(get(told.get_future()).code), "aborted");
  EXPECT_NE(other.end(), RawTcp::End::kTimeout);
}

// The library owns what it was given, whatever comes of it.
TEST_F(Handover, EveryErrorClosesTheDescriptor) {
  const auto connect_fails = [&](TcpConnection tcp, const ConnectOptions& options, Errc code) {
    Node node(client_engine_);
    const Outcome o =
        get_outcome(async_connect_over(client_engine_, node.qp, std::move(tcp), options, as_error(use_future)));
    EXPECT_STREQ(name(o.error.code), name(code)) << o.error.why;
    EXPECT_EQ(o.connection, nullptr);
  };
  const auto accept_fails = [&](TcpConnection tcp, const AcceptOverOptions& options, Errc code) {
    const auto [error, request] = get(accept(std::move(tcp), options));
    EXPECT_STREQ(name(error.code), name(code)) << error.why;
    EXPECT_EQ(request, nullptr);
  };
  const auto each = [&](auto make) {
    const int first = make();
    connect_fails(TcpConnection(first), {}, Errc::kInvalidArgument);
    EXPECT_FALSE(is_open(first));
    const int second = make();
    accept_fails(TcpConnection(second), {}, Errc::kInvalidArgument);
    EXPECT_FALSE(is_open(second));
  };
  each([] { return ::socket(AF_INET, SOCK_STREAM, 0); });  // not connected
  each([] { return ::socket(AF_INET, SOCK_DGRAM, 0); });
  each(connected_udp);
  each([] { return ::socket(AF_UNIX, SOCK_STREAM, 0); });
  each([] { return ::open("/dev/null", O_RDWR); });
  connect_fails(TcpConnection(), {}, Errc::kInvalidArgument);  // none at all
  accept_fails(TcpConnection(), {}, Errc::kInvalidArgument);

  ConnectOptions bad;
  bad.policy.revision = 3;
  TcpPair p;
  const int client = p.client.native_handle(), server = p.server.native_handle();
  connect_fails(TcpConnection(std::move(p.client)), bad, Errc::kInvalidArgument);
  EXPECT_FALSE(is_open(client));
  AcceptOverOptions worse;
  worse.policy.revision = 3;
  accept_fails(TcpConnection(std::move(p.server)), worse, Errc::kInvalidArgument);
  EXPECT_FALSE(is_open(server));

  TcpPair q;  // a queue pair that was used
  client_.qp->abort();
  const int used = q.client.native_handle();
  EXPECT_STREQ(name(get_outcome(over(TcpConnection(std::move(q.client)))).error.code), "invalid_argument");
  EXPECT_FALSE(is_open(used));
}

TEST_F(Handover, ThereIsNoFallbackWithoutAnotherTcpConnection) {
  TcpPair p;
  RawTcp peer(p.server.release());
  auto connecting = over(TcpConnection(std::move(p.client)));
  ASSERT_TRUE(read_frame(peer, false).complete);
  peer.close();
  EXPECT_STREQ(name(get_outcome(std::move(connecting)).error.code), "connection_lost");
}

// --- Rejection.

TEST_F(Handover, ARejectedInitiatorHasTcpAgain) {
  COVERS("RFC5044-7.1.2-16");
  COVERS("RFC5044-7.1.4.2-2");
  RawListener listener;
  for (const std::size_t behind : {0U, 11U}) {
    SCOPED_TRACE(behind);
    Node client(client_engine_);
    ConnectOptions options = to_port(listener.port());
    options.keep_tcp_if_rejected = true;
    auto connecting = start_connect(client, options);
    RawTcp peer = listener.accept();
    ASSERT_TRUE(read_frame(peer, false).complete);
    mpa::StartupFrame reply = good_reply();
    reply.reject = true;
    ASSERT_TRUE(peer.send(octets(reply) | pattern(behind)));  // its own protocol goes on at once
    const Outcome c = get_outcome(std::move(connecting));
    ASSERT_STREQ(name(c.error.code), "peer_rejected");
    TcpConnection tcp = c.connection->take_tcp();
    ASSERT_TRUE(tcp);
    EXPECT_FALSE(c.connection->take_tcp()) << "given once";
    Bytes heard = tcp.early();
    RawTcp mine = raw(std::move(tcp));
    if (heard.size() < behind) {
      const Bytes rest = mine.read(behind - heard.size());
      heard.insert(heard.end(), rest.begin(), rest.end());
    }
    EXPECT_EQ(heard, pattern(behind));
    ASSERT_TRUE(mine.send(pattern(20)));
    EXPECT_EQ(peer.read(20), pattern(20));
    ASSERT_TRUE(peer.send(pattern(30)));
    EXPECT_EQ(mine.read(30), pattern(30));
  }
}

TEST_F(Handover, TcpOfARejectedInitiatorIsClosedUnlessItIsKept) {
  RawListener listener;
  for (const bool keep : {false, true}) {
    SCOPED_TRACE(keep);
    Node client(client_engine_);
    ConnectOptions options = to_port(listener.port());
    options.keep_tcp_if_rejected = keep;
    auto connecting = start_connect(client, options);
    RawTcp peer = listener.accept();
    ASSERT_TRUE(read_frame(peer, false).complete);
    mpa::StartupFrame reply = good_reply();
    reply.reject = true;
    ASSERT_TRUE(peer.send(octets(reply)));
    Outcome c = get_outcome(std::move(connecting));
    ASSERT_STREQ(name(c.error.code), "peer_rejected");
    if (!keep) {
      EXPECT_FALSE(c.connection->take_tcp());
    }
    c.connection.reset();  // nobody took it
    EXPECT_EQ(peer.end(), RawTcp::End::kFin);
  }
}

// The peer has accepted, and this end does not accept what it says.
TEST_F(Handover, AnInitiatorThatRefusesTheReplyHasTcpAgain) {
  COVERS("RFC5044-7.1.2-15");
  RawListener listener;
  for (const bool keep : {true, false}) {
    SCOPED_TRACE(keep);
    Node client(client_engine_);
    ConnectOptions options = to_port(listener.port());
    options.keep_tcp_if_rejected = keep;
    options.judge_reply = [](ConstBytes) -> Result<rdmap::Extensions> {
      return make_error(Errc::kResource, "not acceptable");
    };
    auto connecting = start_connect(client, options);
    RawTcp peer = listener.accept();
    ASSERT_TRUE(read_frame(peer, false).complete);
    ASSERT_TRUE(peer.send(octets(good_reply())));
    const Outcome c = get_outcome(std::move(connecting));
    ASSERT_STREQ(name(c.error.code), "resource");
    TcpConnection tcp = c.connection->take_tcp();
    EXPECT_EQ(static_cast<bool>(tcp), keep);
    if (!keep) {
      EXPECT_EQ(peer.end(), RawTcp::End::kFin);
      continue;
    }
    EXPECT_EQ(tcp.early(), Bytes{});
    RawTcp mine = raw(std::move(tcp));
    ASSERT_TRUE(mine.send(pattern(20)));
    EXPECT_EQ(peer.read(20), pattern(20)) << "no FPDU before it";
    ASSERT_TRUE(peer.send(pattern(30)));
    EXPECT_EQ(mine.read(30), pattern(30));
  }
}

// Only a rejection leaves TCP open: a malformed Reply closes it.
TEST_F(Handover, AMalformedReplyLeavesNothingToKeep) {
  COVERS("RFC5044-7.1.2-14");
  RawListener listener;
  ConnectOptions options = to_port(listener.port());
  options.keep_tcp_if_rejected = true;
  auto connecting = start_connect(client_, options);
  RawTcp peer = listener.accept();
  ASSERT_TRUE(read_frame(peer, false).complete);
  ASSERT_TRUE(peer.send(pattern(20)));
  const Outcome c = get_outcome(std::move(connecting));
  EXPECT_STREQ(name(c.error.code), "malformed_startup_frame");
  EXPECT_FALSE(c.connection->take_tcp());
  EXPECT_NE(peer.end(), RawTcp::End::kTimeout);
}

TEST_F(Handover, ARejectingResponderHasTcpAgain) {
  COVERS("RFC5044-7.1.2-7");
  COVERS("RFC6581-9.1-13");
  const auto listener = listen(server_engine_);
  RawTcp peer = RawTcp::connect(listener->local().port());
  ASSERT_TRUE(peer.send(octets(good_request(pattern(4)))));
  const auto request = next_request(*listener);
  const auto too_long = get(request->async_reject_keeping_tcp(pattern(252), {}, as_error(use_future)));
  EXPECT_STREQ(name(std::get<0>(too_long).code), "invalid_argument") << "and may still be decided";
  auto [error, tcp] = get(request->async_reject_keeping_tcp(pattern(6), 100, as_error(use_future)));
  ASSERT_STREQ(name(error.code), "ok") << error.why;
  ASSERT_TRUE(tcp);
  const FrameRead reply = read_frame(peer, true);
  ASSERT_TRUE(reply.complete);
  EXPECT_TRUE(reply.frame.reject);
  EXPECT_EQ(Bytes(reply.frame.private_data.begin(), reply.frame.private_data.end()), pattern(6));
  EXPECT_EQ(reply.frame.enhanced_data.ord, 100) << "above the peer's IRD: what the application needs";
  EXPECT_STREQ(name(request->reject({}).error().code), "invalid_argument") << "decided";
  RawTcp mine = raw(std::move(tcp));
  ASSERT_TRUE(mine.send(pattern(20)));
  EXPECT_EQ(peer.read(20), pattern(20));
  ASSERT_TRUE(peer.send(pattern(30)));
  EXPECT_EQ(mine.read(30), pattern(30));
}

TEST_F(Handover, ARejectingResponderHasNothingOfAPeerThatIsGone) {
  const auto listener = listen(server_engine_);
  RawTcp peer = RawTcp::connect(listener->local().port());
  ASSERT_TRUE(peer.send(octets(good_request())));
  const auto request = next_request(*listener);
  peer.reset();
  const auto [error, tcp] = get(request->async_reject_keeping_tcp({}, {}, as_error(use_future)));
  EXPECT_STREQ(name(error.code), "connection_lost");
  EXPECT_FALSE(tcp);
}

// Both ends go back to their own protocol, and to MPA again.
TEST_F(Handover, RejectedEndsMayTryAgainOnTheSameTcp) {
  TcpPair p;
  auto accepting = accept(TcpConnection(std::move(p.server)));
  Node first(client_engine_);
  ConnectOptions keep;
  keep.keep_tcp_if_rejected = true;
  keep.policy.ird = 3;
  auto connecting =
      async_connect_over(client_engine_, first.qp, TcpConnection(std::move(p.client)), keep, as_error(use_future));
  const auto [error, request] = get(std::move(accepting));
  ASSERT_STREQ(name(error.code), "ok") << error.why;
  EXPECT_EQ(request->peer_ird(), 3);
  auto [rejected, server] = get(request->async_reject_keeping_tcp(pattern(5), 7, as_error(use_future)));
  ASSERT_STREQ(name(rejected.code), "ok") << rejected.why;
  const Outcome c = get_outcome(std::move(connecting));
  ASSERT_STREQ(name(c.error.code), "peer_rejected");
  EXPECT_EQ(c.connection->private_data(), pattern(5));
  ASSERT_TRUE(c.connection->disconnected()->rejected_with);
  EXPECT_EQ(c.connection->disconnected()->rejected_with->ord, 7) << "what the application of the other end needs";
  join_over(c.connection->take_tcp(), std::move(server));
}

TEST_F(Handover, TheAsioSocketIsReadyForUse) {
  TcpPair p;
  TcpConnection tcp(std::move(p.client), pattern(3));
  boost::asio::io_context io;
  auto socket = tcp.socket(io.get_executor());
  ASSERT_TRUE(socket.ok());
  EXPECT_FALSE(tcp);
  EXPECT_EQ(tcp.early(), pattern(3));
  say(*socket, pattern(8));
  EXPECT_EQ(hear(p.server, 8), pattern(8));
  EXPECT_STREQ(name(tcp.socket(io.get_executor()).error().code), "invalid_argument") << "it owns nothing any more";
}

TEST(TcpConnection, OwnsItsDescriptor) {
  const auto make = [] { return ::socket(AF_INET, SOCK_STREAM, 0); };
  const int a = make();
  {
    const TcpConnection owner(a);
    EXPECT_TRUE(owner);
    EXPECT_EQ(owner.descriptor(), a);
  }
  EXPECT_FALSE(is_open(a));
  const int b = make(), c = make();
  TcpConnection first(b), second(c);
  first = std::move(second);
  EXPECT_FALSE(is_open(b)) << "what it owned before";
  EXPECT_FALSE(second);  // NOLINT(bugprone-use-after-move): it owns nothing
  EXPECT_EQ(first.release(), c);
  EXPECT_FALSE(first);
  EXPECT_TRUE(is_open(c));
  ::close(c);
}

TEST(TcpConnection, ClosesWhatIsNoTcp) {
  boost::asio::io_context io;
  const int fd = connected_udp();
  TcpConnection no_tcp(fd);
  EXPECT_FALSE(no_tcp.socket(io.get_executor()));
  EXPECT_FALSE(no_tcp);
  EXPECT_FALSE(is_open(fd));
}

TEST(HandoverEnding, AnEngineThatGoesCompletesTheWait) {
  TcpPair p;
  RawTcp peer(p.client.release());
  auto engine = std::make_unique<Engine>();
  auto accepting = async_accept_over(*engine, TcpConnection(std::move(p.server)), {}, as_error(use_future));
  engine.reset();
  EXPECT_STREQ(name(std::get<0>(get(std::move(accepting))).code), "aborted");
  EXPECT_NE(peer.end(), RawTcp::End::kTimeout);
}

}  // namespace
}  // namespace iwarp::cm
