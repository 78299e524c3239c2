// What only one of the lower layers does.
#include <boost/asio/ip/udp.hpp>

#include "tests/llp/over.h"

namespace iwarp::llp {
namespace {

class OverSctp : public Over {};
class OverTcp : public Over {};

TEST_P(OverTcp, ARequestMovesToAnotherEngine) {
  cm::Engine other(cm::Engine::Mode::kAutomatic, cm::Engine::kUsualSpin, engine.context());
  Node client(engine), server(other);
  auto connected = connecting(client, to(*listener));
  const auto r = request(*listener);
  ASSERT_TRUE(r->move_to(other));
  EXPECT_EQ(&r->engine(), &other);
  EXPECT_FALSE(std::get<0>(get(r->async_accept(server.qp, {}, cm::as_error(use_future)))));
  EXPECT_FALSE(std::get<0>(get(std::move(connected))));
  ping_pong(client, server);
}

TEST_P(OverTcp, ConnectionsOutliveTheLayer) {
  Node client(engine), server(engine);
  const auto [active, passive] = join(client, server, to(*listener));
  layer.reset();
  ping_pong(client, server);
}

TEST_P(OverSctp, WhatOnlyTcpCanDoIsRefused) {
  const auto refused = [&](auto set) {
    cm::ConnectOptions options = to(*listener);
    set(options);
    const Error error = refusal(options);
    EXPECT_EQ(error.code, Errc::kInvalidArgument);
    return std::string(error.why);
  };
  EXPECT_THAT(refused([](auto& o) { o.refusal_patience = 1ms; }), HasSubstr("refusal_patience is for TCP"));
  EXPECT_THAT(refused([](auto& o) { o.keep_tcp_if_rejected = true; }), HasSubstr("keep_tcp_if_rejected is for TCP"));
  EXPECT_THAT(refused([](auto& o) {
                o.judge_reply = [](ConstBytes) { return Result<rdmap::Extensions>(rdmap::Extensions{}); };
              }),
              HasSubstr("judge_reply is for MPA"));
  EXPECT_THAT(refused([](auto& o) {
                o.try_again = [](const Error&, ConstBytes) { return std::optional<std::vector<std::byte>>{}; };
              }),
              HasSubstr("try_again is for MPA"));
  EXPECT_THAT(refused([](auto& o) { o.connect_timeout = 0ms; }), HasSubstr("connect_timeout"));
  EXPECT_EQ(layer->listen({}, {.packet_bytes = 100}).error().code, Errc::kInvalidArgument);
  Node small(engine);
  const auto [why, none] =
      get(layer->async_connect(small.qp, to(*listener), SctpOptions{.packet_bytes = 100}, cm::as_error(use_future)));
  EXPECT_THAT(why.why, HasSubstr("SctpOptions::packet_bytes must be 576 to 65507"));
  EXPECT_EQ(listener->set_packet_bytes(100).error().code, Errc::kInvalidArgument);

  Node client(engine);
  cm::Engine other;
  auto connected = connecting(client, to(*listener));
  const auto r = request(*listener);
  EXPECT_TRUE(r->move_to(engine));
  EXPECT_EQ(r->move_to(other).error().code, Errc::kInvalidArgument);
}

TEST_P(OverSctp, WhatIsNegotiatedIsInThePolicy) {
  cm::ConnectOptions options = to(*listener);
  options.policy.negotiate_depths = false;
  options.private_data = octets("long");
  Node client(engine);
  auto connected = connecting(client, options);
  EXPECT_EQ(request(*listener)->peer_ird(), enhanced::kNoIrdOrdNegotiation);
  EXPECT_EQ(std::get<0>(get(std::move(connected))).code, Errc::kPeerRejected);
  mpa::Policy brief;
  brief.max_private_data_bytes = 4;  // those of RFC 6581 alone
  ASSERT_TRUE(listener->set_policy(brief));
  options.policy.allow_revision_1_fallback = false;  // it would have room
  EXPECT_EQ(refusal(options).code, Errc::kPeerRejected);
}

TEST_P(OverSctp, AProcessHasOneAtATime) {
  EXPECT_EQ(LowerLayer::make(engine, Kind::kSctp).error().code, Errc::kResource);
  EXPECT_EQ(LowerLayer::make(engine, Kind::kSctp, {.packet_bytes = 70}).error().code, Errc::kInvalidArgument);
  listener.reset();
  layer.reset();
  EXPECT_TRUE(LowerLayer::make(engine, Kind::kSctp));
}

TEST_P(OverSctp, ItsPortIsChosen) {
  cm::ListenOptions o;
  o.endpoint = {boost::asio::ip::make_address("127.0.0.1"), 0};
  const auto other = layer->listen(o, {.port = 4711}).value();
  Node client(engine), server(engine);
  auto connected = layer->async_connect(client.qp, to(*other), {.port = 4711}, cm::as_error(use_future));
  EXPECT_FALSE(std::get<0>(get(request(*other)->async_accept(server.qp, {}, cm::as_error(use_future)))));
  EXPECT_FALSE(std::get<0>(get(std::move(connected))));
  ping_pong(client, server);
  EXPECT_EQ(refusal(to(*other)).code, Errc::kConnectionRefused);
}

// Its end is waited for as long as it is asked, and no longer.
TEST_P(OverSctp, WhatIsThereIsWaitedFor) {
  Node client(engine), server(engine);
  const auto [active, passive] = join(client, server, to(*listener));
  const auto from = std::chrono::steady_clock::now();
  EXPECT_FALSE(layer->wait_closed(10ms));
  EXPECT_LT(std::chrono::steady_clock::now() - from, kPatience);
  active->disconnect();
  EXPECT_TRUE(layer->wait_closed(kPatience));
}

// An association outlives its listener, which rejects sessions on it from then on. Others are refused as a whole.
TEST_P(OverSctp, AssociationsAreShared) {
  const cm::ConnectOptions options = to(*listener);
  const auto error_of = [&](Node& node, bool share) {
    return std::get<0>(
        get(layer->async_connect(node.qp, options, {.share_association = share}, cm::as_error(use_future))));
  };
  Node client(engine), server(engine), second(engine), alone(engine);
  listener->accept([&](const Error&, const std::unique_ptr<ConnectRequest>& r) {
    if (r != nullptr) r->accept(server.qp, {}, [](const Error&, const std::shared_ptr<Connection>&) {});
  });
  ASSERT_FALSE(error_of(client, true));
  listener.reset();
  EXPECT_EQ(error_of(second, true).code, Errc::kPeerRejected);
  EXPECT_EQ(error_of(alone, false).code, Errc::kConnectionRefused);
}

TEST_P(OverSctp, TimesAreThoseOfTheOptions) {
  const boost::asio::ip::udp::endpoint any(boost::asio::ip::make_address("127.0.0.1"), 0);
  boost::asio::io_context io;
  const boost::asio::ip::udp::socket silent(io, any);
  cm::ConnectOptions options = to(*listener);
  options.port = silent.local_endpoint().port();
  options.connect_timeout = 50ms;
  EXPECT_EQ(refusal(options).code, Errc::kTimeout);
  options = to(*listener);  // where nobody answers the Initiate
  options.policy.startup_timeout = 50ms;
  EXPECT_EQ(refusal(options).code, Errc::kStartupTimeout);
}

// One that was ended may mean that the peer knows no RFC 6581.
TEST_P(OverSctp, NothingIsNegotiatedWithoutPermission) {
  mpa::Policy plain;
  plain.revision = 1;
  ASSERT_TRUE(listener->set_policy(plain));
  cm::ConnectOptions options = to(*listener);
  options.policy.allow_revision_1_fallback = false;
  EXPECT_EQ(refusal(options).code, Errc::kPeerRejected);
  Node client(engine), server(engine);
  EXPECT_FALSE(join(client, server, to(*listener)).active->negotiated().enhanced);
}

TEST_P(OverSctp, ConnectionsEndWithTheLayer) {
  Node client(engine), server(engine);
  const auto [active, passive] = join(client, server, to(*listener));
  layer.reset();
  EXPECT_EQ(ending(*active).reason.code, Errc::kAborted);
  EXPECT_EQ(ending(*passive).reason.code, Errc::kAborted);
}

INSTANTIATE_TEST_SUITE_P(Tcp, OverTcp, ::testing::Values(Kind::kTcp));
INSTANTIATE_TEST_SUITE_P(Sctp, OverSctp, ::testing::Values(Kind::kSctp));

TEST(LowerLayer, KindsHaveNames) {
  EXPECT_STREQ(name(Kind::kTcp), "tcp");
  EXPECT_EQ(kind_named("sctp"), Kind::kSctp);
  EXPECT_EQ(kind_named("udp"), std::nullopt);
  EXPECT_TRUE(has(Kind::kTcp));
}

TEST(LowerLayer, WithoutSctpItSaysHowToGetIt) {
  if (has(Kind::kSctp)) GTEST_SKIP() << "built with";
  cm::Engine engine;
  EXPECT_THAT(LowerLayer::make(engine, Kind::kSctp).error().why, HasSubstr("libusrsctp-dev"));
}

}  // namespace
}  // namespace iwarp::llp
