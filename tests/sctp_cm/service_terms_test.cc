// What both ends of a connection over SCTP agree on.
#include "iwarp/cm/connector.h"
#include "iwarp/cm/listener.h"
#include "tests/sctp_cm/service_net.h"
#include "tests/support/covers.h"

namespace iwarp::sctp_cm {
namespace {

TEST_F(SctpService, SessionsOfALaterAssociationMayBeOthers) {
  listen();
  sctp::SessionOptions plain;
  plain.enhanced = false;
  ASSERT_TRUE(listener->set_session(plain));
  plain.ahead = 0;
  EXPECT_EQ(listener->set_session(plain).error().code, Errc::kInvalidArgument);
  End x(engine, pd), y(engine, pd);
  join(x, y);
  EXPECT_FALSE(x.connection->negotiated().enhanced);
}

TEST_F(SctpService, PeerToPeerBeginsWithTheRtr) {
  COVERS("RFC6581-7-25");
  listen();
  ConnectOptions options = to_listener();
  options.session.offer.peer_to_peer = true;
  End x(engine, pd), y(engine, pd);
  join(x, y, options);
  EXPECT_TRUE(x.connection->negotiated().peer_to_peer);
  EXPECT_EQ(x.connection->negotiated().rtr, enhanced::Rtr::kRead);
  EXPECT_EQ(y.connection->negotiated().rtr, enhanced::Rtr::kRead);
  EXPECT_NE(x.connection->to_string().find("llp=sctp enhanced=1 p2p=1 rtr=read"), std::string::npos);
  exchange(y, x);
}

// IRD, ORD, the connection model and the RTR, at both ends, whatever the lower layer.
TEST_F(SctpService, SettlesWhatMpaSettles) {
  COVERS("RFC6581-7-25");
  struct Case {
    enhanced::Depths active, passive;
    std::uint16_t max_ird;
    bool peer_to_peer, write, read;
  };
  listen();
  cm::ListenOptions where;
  where.endpoint = {boost::asio::ip::make_address("127.0.0.1"), 0};
  const auto tcp = cm::Listener::listen(engine, where).value();
  for (const Case& c : {Case{{32, 32}, {32, 32}, 128, false, true, true}, Case{{4, 16}, {8, 64}, 128, true, true, true},
                        Case{{4, 16}, {200, 2}, 4, true, true, false}, Case{{1, 1}, {300, 300}, 128, true, false, true},
                        Case{{0, 8}, {8, 0}, 128, false, true, true}, Case{{16, 0}, {0, 16}, 16, true, true, false}}) {
    SCOPED_TRACE(testing::Message() << c.active.ird << '/' << c.active.ord << " to " << c.passive.ird << '/'
                                    << c.passive.ord);
    cm::ConnectOptions by_tcp;
    by_tcp.host = "127.0.0.1";
    by_tcp.port = tcp->local().port();
    by_tcp.policy.ird = c.active.ird;
    by_tcp.policy.ord = c.active.ord;
    by_tcp.policy.max_ird = c.max_ird;
    by_tcp.policy.peer_to_peer = c.peer_to_peer;
    by_tcp.policy.rtr_write = c.write;
    by_tcp.policy.rtr_read = c.read;
    const ConnectRequest::AcceptOptions accepts{.ird = c.passive.ird, .ord = c.passive.ord};
    End v(engine, pd), w(engine, pd), x(engine, pd), y(engine, pd);
    auto connected = cm::async_connect(engine, v.qp, by_tcp, cm::as_error(boost::asio::use_future));
    const auto [none, asked] = get(tcp->async_accept(cm::as_error(boost::asio::use_future)));
    ASSERT_TRUE(asked) << none.why;
    auto accepting = asked->async_accept(w.qp, accepts, cm::as_error(boost::asio::use_future));
    const auto [bad, here] = get(std::move(connected));
    ASSERT_FALSE(bad) << bad.why;
    const auto [worse, there] = get(std::move(accepting));
    ASSERT_FALSE(worse) << worse.why;
    ConnectOptions by_sctp = to_listener();
    by_sctp.session.offer = mpa::offer_of(by_tcp.policy);
    join(x, y, by_sctp, accepts);
    const auto same = [](const mpa::Negotiated& first, const Negotiated& second) {
      EXPECT_EQ(first.peer_to_peer, second.peer_to_peer);
      EXPECT_EQ(first.rtr, second.rtr);
      EXPECT_EQ(first.ird, second.ird);
      EXPECT_EQ(first.ord, second.ord);
      EXPECT_EQ(first.peer_ird, second.peer_ird);
      EXPECT_EQ(first.peer_ord, second.peer_ord);
    };
    same(here->negotiated(), x.connection->negotiated());
    same(there->negotiated(), y.connection->negotiated());
  }
}

TEST_F(SctpService, APeerThatIsStrictMayBeTooStrict) {
  listen();
  ConnectOptions options = to_listener();
  options.session.offer.depths = {1, 32};
  options.session.offer.max_ird = 1;
  End x(engine, pd), y(engine, pd);
  auto connected = connecting(x, options);
  const auto r = request();
  ASSERT_TRUE(r);
  r->accept(y.qp, {.ird = 16, .ord = 16}, [](const Error&, const std::shared_ptr<Connection>&) {});
  const auto [error, connection] = get(std::move(connected));
  // The peer holds its ORD to this end's IRD, so that it suits.
  EXPECT_FALSE(error) << error.why;
  EXPECT_EQ(connection->negotiated().ird, 1);
  EXPECT_EQ(connection->negotiated().ord, 32);
}

TEST_F(SctpService, APeerThatKnowsRfc5043OnlyIsAskedAgainPlainly) {
  COVERS("RFC6581-7-23");
  ListenOptions plain;
  plain.session.enhanced = false;
  listen(plain);
  End x(engine, pd), y(engine, pd), z(engine, pd);
  ConnectOptions options = to_listener();
  options.private_data = private_data("again");
  auto connected = connecting(x, options);
  const auto r = request();
  ASSERT_TRUE(r);
  EXPECT_FALSE(r->enhanced());
  EXPECT_EQ(text(r->private_data()), "again");
  r->accept(y.qp, {}, [](const Error&, const std::shared_ptr<Connection>&) {});
  const auto [error, connection] = get(std::move(connected));
  ASSERT_FALSE(error) << error.why;
  EXPECT_FALSE(connection->negotiated().enhanced);
  exchange(x, y);
  options.plain_fallback = false;
  EXPECT_EQ(std::get<0>(connect(z, options)).code, Errc::kPeerRejected);
}

}  // namespace
}  // namespace iwarp::sctp_cm
