// One program over either lower layer.
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "tests/llp/over.h"

namespace iwarp::llp {
namespace {

TEST_P(Over, QueuePairsAreConnectedAndExchangeMessages) {
  Node client(engine), server(engine);
  cm::ConnectOptions options = to(*listener);
  options.private_data = octets("hello");
  options.policy.ird = 2;
  const auto [active, passive] = join(client, server, options);
  EXPECT_EQ(active->kind(), GetParam());
  EXPECT_EQ(active->qp(), client.qp);
  EXPECT_TRUE(active->initiator());
  EXPECT_FALSE(passive->initiator());
  EXPECT_EQ(active->remote(), listener->local());
  EXPECT_EQ(passive->local(), listener->local());
  EXPECT_EQ(passive->remote(), active->local());
  EXPECT_EQ(active->private_data(), octets("welcome"));
  EXPECT_EQ(passive->private_data(), octets("hello"));
  EXPECT_TRUE(active->negotiated().enhanced);
  EXPECT_EQ(active->negotiated().ird, 2);
  EXPECT_EQ(passive->negotiated().peer_ird, 2);
  EXPECT_EQ(passive->negotiated().ord, 2);
  EXPECT_EQ(active->negotiated().peer_ord, passive->negotiated().ord);
  EXPECT_THAT(active->to_string(), HasSubstr("role=initiator"));
  ping_pong(client, server);
  client.write(7, server, 2000);
  client.expect(verbs::WcOp::kWrite, 7);
  client.read(8, server, 2000);
  client.expect(verbs::WcOp::kRead, 8);
  EXPECT_EQ(active->counters().tx.sends, 1u);
  EXPECT_EQ(active->facts().counters.rx.sends, 1u);
  EXPECT_FALSE(active->disconnected());
  active->disconnect();
  EXPECT_STREQ(ending(*active).reason.why, stream::kClosedHere);
  EXPECT_EQ(ending(*passive).reason.code, Errc::kPeerClosed);
  EXPECT_TRUE(passive->disconnected()->was_established);
  EXPECT_TRUE(layer->wait_closed(kPatience));
}

TEST_P(Over, Ipv6) {
  listener = listen("::1");
  Node client(engine), server(engine);
  const auto [active, passive] = join(client, server, to(*listener));
  EXPECT_TRUE(active->remote().address().is_v6());
  ping_pong(client, server);
}

TEST_P(Over, ARequestIsRejectedWithPrivateData) {
  Node client(engine);
  auto connected = connecting(client, to(*listener));
  auto r = request(*listener);
  EXPECT_EQ(&r->engine(), &engine);
  EXPECT_TRUE(r->enhanced());
  EXPECT_EQ(r->peer_ird(), mpa::Policy{}.ird);
  EXPECT_EQ(r->peer_ord(), mpa::Policy{}.ord);
  EXPECT_EQ(r->local(), listener->local());
  EXPECT_EQ(r->remote().address(), listener->local().address());
  EXPECT_EQ(r->reject(octets("no"), 16383).error().code, Errc::kInvalidArgument);
  ASSERT_TRUE(r->reject(octets("no"), 7));
  EXPECT_EQ(r->reject().error().code, Errc::kInvalidArgument);  // decided
  const auto [error, connection] = get(std::move(connected));
  EXPECT_EQ(error.code, Errc::kPeerRejected);
  ASSERT_TRUE(connection);
  const auto how = ending(*connection);
  EXPECT_EQ(how.private_data, octets("no"));
  ASSERT_TRUE(how.rejected_with);
  EXPECT_EQ(how.rejected_with->ord, 7);
}

TEST_P(Over, ARequestThatNobodyDecidesIsRejected) {
  Node client(engine);
  auto connected = connecting(client, to(*listener));
  request(*listener).reset();
  EXPECT_EQ(std::get<0>(get(std::move(connected))).code, Errc::kPeerRejected);
}

TEST_P(Over, WhatIsAskedForIsChangedForThoseWhoComeLater) {
  mpa::Policy policy;
  policy.ird = 60000;
  EXPECT_EQ(listener->set_policy(policy).error().code, Errc::kInvalidArgument);
  policy = {};
  policy.max_ird = 16;
  ASSERT_TRUE(listener->set_policy(policy));
  ASSERT_TRUE(listener->set_packet_bytes(4000));
  Node client(engine), server(engine);
  cm::ConnectOptions options = to(*listener);
  options.policy.ord = 100;
  EXPECT_EQ(join(client, server, options).passive->negotiated().ird, 16);
  ping_pong(client, server);
  if (GetParam() == Kind::kSctp) {
    EXPECT_GT(client.qp->query()->mulpdu, 7000u);
    EXPECT_LT(server.qp->query()->mulpdu, 4000u);
  }
}

TEST_P(Over, WhatIsImpossibleIsRefused) {
  cm::ConnectOptions options = to(*listener);
  options.policy.ird = 60000;
  EXPECT_EQ(refusal(options).code, Errc::kInvalidArgument);
  options = to(*listener);
  options.private_data.resize(600);
  EXPECT_EQ(refusal(options).code, Errc::kInvalidArgument);
  options = to(*listener);
  options.host = "does-not-exist.invalid";
  EXPECT_EQ(refusal(options).code, Errc::kSystem);
  cm::ListenOptions twice;
  twice.endpoint = listener->local();
  EXPECT_EQ(layer->listen(twice).error().code, Errc::kSystem);
  twice.policy.ird = 60000;
  EXPECT_EQ(layer->listen(twice).error().code, Errc::kInvalidArgument);
}

TEST_P(Over, WaitsAreCancelled) {
  auto waiting = listener->async_accept(cm::as_error(use_future));
  listener->cancel();
  EXPECT_EQ(std::get<0>(get(std::move(waiting))).code, Errc::kAborted);

  Node client(engine), server(engine);
  const auto [active, passive] = join(client, server, to(*listener));  // the next one is told
  auto end = active->async_wait_disconnected(cm::as_error(use_future));
  active->cancel();
  EXPECT_EQ(std::get<0>(get(std::move(end))).code, Errc::kAborted);
  ping_pong(client, server);

  Node other(engine);
  boost::asio::cancellation_signal stop;
  std::promise<Errc> connected;
  layer->async_connect(
      other.qp, to(*listener),
      boost::asio::bind_cancellation_slot(stop.slot(), [&](const Error& error, const std::shared_ptr<Connection>&) {
        connected.set_value(error.code);
      }));
  const auto r = request(*listener);
  boost::asio::post(engine.io(), [&] { stop.emit(boost::asio::cancellation_type::terminal); });
  EXPECT_EQ(get(connected.get_future()), Errc::kAborted);
}

TEST_P(Over, OneAcceptWaitsAtATime) {
  auto waiting = listener->async_accept(cm::as_error(use_future));
  EXPECT_EQ(std::get<0>(get(listener->async_accept(cm::as_error(use_future)))).code, Errc::kInvalidArgument);
  listener.reset();
  EXPECT_EQ(std::get<0>(get(std::move(waiting))).code, Errc::kAborted);
}

TEST_P(Over, AnAcceptThatIsImpossibleLeavesTheRequest) {
  Node client(engine), server(engine);
  auto connected = connecting(client, to(*listener));
  const auto r = request(*listener);
  EXPECT_EQ(std::get<0>(get(r->async_accept(server.qp, {.ird = 60000}, cm::as_error(use_future)))).code,
            Errc::kInvalidArgument);
  EXPECT_FALSE(std::get<0>(get(r->async_accept(server.qp, {}, cm::as_error(use_future)))));
  EXPECT_FALSE(std::get<0>(get(std::move(connected))));
  ping_pong(client, server);
}

TEST_P(Over, ItConnectsFromAnAddressThatIsChosen) {
  Node client(engine), server(engine);
  cm::ConnectOptions options = to(*listener);
  options.local = {boost::asio::ip::make_address("127.0.0.2"), 0};
  EXPECT_EQ(join(client, server, options).passive->remote().address(), options.local->address());
}

// A callback may do without the error, which is the reason then.
TEST_P(Over, TheEndIsToldInEitherForm) {
  std::promise<Errc> cancelled, gone_alone, gone;
  auto own = std::make_unique<cm::Engine>();
  listener.reset();
  layer.reset();
  layer = LowerLayer::make(*own, GetParam()).value();
  listener = listen("127.0.0.1");
  Node client(*own), server(*own);
  const auto [active, passive] = join(client, server, to(*listener));
  active->async_wait_disconnected([&](const stream::Disconnected& how) { cancelled.set_value(how.reason.code); });
  active->cancel();
  EXPECT_EQ(get(cancelled.get_future()), Errc::kAborted);
  active->async_wait_disconnected([&](const stream::Disconnected& how) { gone_alone.set_value(how.reason.code); });
  passive->async_wait_disconnected([&](const Error& error, const stream::Disconnected& how) {
    gone.set_value(error ? error.code : how.reason.code);
  });
  listener.reset();
  if (GetParam() == Kind::kSctp) layer.reset();
  own.reset();
  EXPECT_EQ(get(gone_alone.get_future()), Errc::kAborted);
  EXPECT_EQ(get(gone.get_future()), Errc::kAborted);
  layer.reset();
}

// In a child: the number of the first thing that did not refuse, or 0.
int use_in_child(LowerLayer& layer, Listener& listener, Connection& connection, Node& node, const Address& at) {
  int told = 0;
  Errc last = Errc::kOk;
  const auto hear = [&](const Error& error, const auto&) {
    ++told;
    last = error.code;
  };
  const auto heard = [&](int times) { return told == times && last == Errc::kInvalidArgument; };
  cm::ConnectOptions options;
  options.host = at.address().to_string();
  options.port = at.port();
  layer.connect(node.qp, options, hear);
  if (!heard(1)) return 1;
  options.policy.ird = 60000;
  layer.connect(node.qp, options, hear);
  if (!heard(2)) return 2;
  listener.accept(hear);
  if (!heard(3)) return 3;
  if (layer.listen({}).ok() || LowerLayer::make(layer.engine(), Kind::kTcp).ok()) return 4;
  listener.cancel();
  connection.cancel();
  connection.disconnect();
  connection.abort();
  if (!connection.disconnected() || connection.disconnected()->reason.code != Errc::kInvalidArgument) return 6;
  if (connection.negotiated().enhanced || !connection.private_data().empty() || connection.to_string().empty())
    return 7;
  (void)connection.facts();
  return layer.wait_closed(1h) ? 0 : 5;
}

TEST_P(Over, AForkedChildRefusesAndThePeersDoNotNotice) {
  Node client(engine), server(engine);
  const auto [active, passive] = join(client, server, to(*listener));
  ping_pong(client, server);
  const Address at = listener->local();
  auto waiting = listener->async_accept(cm::as_error(use_future));
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);
    const int wrong = use_in_child(*layer, *listener, *active, client, at);
    listener.reset();
    layer.reset();
    ::_exit(wrong);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  ping_pong(client, server);
  listener->cancel();
  EXPECT_EQ(std::get<0>(get(std::move(waiting))).code, Errc::kAborted);
}

TEST_P(Over, AConnectionIsAborted) {
  Node client(engine), server(engine);
  const auto [active, passive] = join(client, server, to(*listener));
  server.recv(1);
  passive->abort();
  EXPECT_EQ(ending(*passive).reason.code, Errc::kAborted);
  server.expect(verbs::WcOp::kRecv, 1, Errc::kFlushed);
  (void)ending(*active);
  EXPECT_EQ(client.qp->state(), verbs::QueuePairState::kError);
}

// RFC 6581 is for both ends to want.
TEST_P(Over, RevisionOneIsWithoutNegotiation) {
  Node client(engine), server(engine);
  cm::ConnectOptions options = to(*listener);
  options.policy.revision = 1;
  options.policy.peer_to_peer = false;
  auto connected = connecting(client, options);
  const auto r = request(*listener);
  EXPECT_FALSE(r->enhanced());
  EXPECT_EQ(r->peer_ird(), 0);
  EXPECT_FALSE(std::get<0>(get(r->async_accept(server.qp, {}, cm::as_error(use_future)))));
  const auto [error, active] = get(std::move(connected));
  ASSERT_FALSE(error) << error.why;
  EXPECT_FALSE(active->negotiated().enhanced);
  ping_pong(client, server);
}

// Its reference is all that the application drops.
TEST_P(Over, AConnectionGoesOnWithoutItsObject) {
  Node client(engine), server(engine);
  (void)join(client, server, to(*listener));
  ping_pong(client, server);
}

boost::asio::awaitable<void> serve(Listener& listener, Node& node, Errc& how) {
  auto [error, request] = co_await listener.async_accept(cm::as_error(boost::asio::use_awaitable));
  EXPECT_FALSE(error);
  auto [failed, connection] = co_await request->async_accept(node.qp, {}, cm::as_error(boost::asio::use_awaitable));
  EXPECT_FALSE(failed);
  how = (co_await connection->async_wait_disconnected(boost::asio::use_awaitable)).reason.code;
}

boost::asio::awaitable<void> visit(LowerLayer& layer, cm::ConnectOptions options, Node& node, Errc& how) {
  auto connection = co_await layer.async_connect(node.qp, std::move(options), boost::asio::use_awaitable);
  connection->disconnect();
  how = (co_await connection->async_wait_disconnected(boost::asio::use_awaitable)).reason.code;
}

// Everything in one thread of the caller's.
TEST_P(Over, CoroutinesOfABorrowedLoop) {
  listener.reset();
  layer.reset();
  boost::asio::io_context io;
  cm::Engine borrowing(io);
  layer = LowerLayer::make(borrowing, GetParam()).value();
  listener = listen("127.0.0.1");
  Node client(borrowing), server(borrowing);
  Errc near = Errc::kOk, far = Errc::kOk;
  boost::asio::co_spawn(io, serve(*listener, server, far), boost::asio::detached);
  boost::asio::co_spawn(io, visit(*layer, to(*listener), client, near), boost::asio::detached);
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while ((near == Errc::kOk || far == Errc::kOk) && std::chrono::steady_clock::now() < deadline) io.run_one_for(1s);
  EXPECT_EQ(near, Errc::kAborted);
  EXPECT_EQ(far, Errc::kPeerClosed);
  listener.reset();
  layer.reset();
}

INSTANTIATE_TEST_SUITE_P(Either, Over, ::testing::Values(Kind::kTcp, Kind::kSctp),
                         [](const auto& kind) { return name(kind.param); });

}  // namespace
}  // namespace iwarp::llp
