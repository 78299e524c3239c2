// Connections over SCTP and the associations that carry them.
#include <algorithm>
#include <utility>

#include "tests/sctp_cm/raw_peer.h"
#include "tests/sctp_cm/service_net.h"
#include "tests/support/covers.h"

namespace iwarp::sctp_cm {
namespace {

TEST_F(BadSctpService, WhatIsSentArrivesAndTheEndIsInOrder) {
  listen(fast<ListenOptions>());
  ConnectOptions shared = fast(to_listener());
  shared.share_association = true;
  End v(engine, pd), w(engine, pd), x(engine, pd), y(engine, pd);
  join(v, w, shared);
  join(x, y, shared);
  constexpr std::uint32_t kBytes = 20000;
  for (unsigned i = 0; i < 50; ++i) {
    for (auto [from, to] : {std::pair{&v, &w}, std::pair{&y, &x}}) {
      std::fill_n(from->memory.begin(), kBytes, static_cast<std::byte>(i));
      to->receive(kBytes);
      from->send(kBytes);
      ASSERT_EQ(from->next().status, Errc::kOk);
      ASSERT_EQ(to->next().status, Errc::kOk);
      ASSERT_TRUE(std::equal(to->memory.begin(), to->memory.begin() + kBytes, from->memory.begin()));
    }
  }
  for (End* end : {&w, &x}) EXPECT_GT(end->connection->counters().rx.early, 0u) << "placed before those in front";
  v.connection->disconnect();
  y.connection->disconnect();
  for (End* end : {&v, &w, &x, &y}) {
    const Errc how = over(*end->connection).reason.code;
    EXPECT_TRUE(how == Errc::kAborted || how == Errc::kPeerClosed) << name(how);
  }
  EXPECT_TRUE(sctp->wait_closed(20s));
}

TEST_F(SctpService, SixtyFourConnectAtATime) {
  listen();
  constexpr std::size_t kEnds = 64;
  std::vector<std::unique_ptr<End>> active;
  serve();
  std::vector<std::future<Outcome>> connected;
  for (std::size_t i = 0; i < kEnds; ++i) {
    active.push_back(std::make_unique<End>(engine, pd));
    connected.push_back(connecting(*active.back(), to_listener()));
  }
  for (std::size_t i = 0; i < kEnds; ++i) {
    auto [error, connection] = get(std::move(connected[i]));
    ASSERT_FALSE(error) << error.why;
    active[i]->connection = connection;
  }
  EXPECT_TRUE(eventually([&] { return accepted == kEnds; }));
  EXPECT_EQ(sctp->associations(), 2 * kEnds);
  for (const auto& end : active) end->send();
  for (const auto& end : active) EXPECT_EQ(end->next().status, Errc::kOk);
  for (const auto& end : served) EXPECT_EQ(end->next().status, Errc::kOk);
  for (const auto& end : active) end->connection->disconnect();
  for (const auto& end : active) EXPECT_EQ(over(*end->connection).reason.code, Errc::kAborted);
  EXPECT_TRUE(eventually([&] { return sctp->associations() == 0; }));
}

TEST_F(SctpService, OneOfSeveralThatWaitForAnAssociationMayGiveUp) {
  listen();
  ConnectOptions shared = to_listener();
  shared.share_association = true;
  End x(engine, pd), y(engine, pd), z(engine, pd);
  auto first = connecting(x, shared), second = connecting(y, shared), third = connecting(z, shared);
  x.qp->abort();
  serve();
  EXPECT_EQ(std::get<0>(get(std::move(first))).code, Errc::kAborted);
  for (auto* other : {&second, &third}) {
    const auto [error, connection] = get(std::move(*other));
    EXPECT_FALSE(error) << error.why;
  }
  y.send();
  EXPECT_EQ(y.next().status, Errc::kOk);
  EXPECT_EQ(sctp->associations(), 2u);
}

TEST_F(SctpService, OfTwoSessionsOnOneAssociationOneEndsByAProtectionError) {
  COVERS("RFC5043-11.3-4");
  COVERS("RFC5043-11.3-5");
  listen();
  ConnectOptions shared = to_listener();
  shared.share_association = true;
  End x(engine, pd), y(engine, pd), v(engine, pd), w(engine, pd);
  join(x, y, shared);
  join(v, w, shared);
  EXPECT_EQ(sctp->associations(), 2u);
  EXPECT_NE(x.connection->stream(), v.connection->stream());
  // No peer may write there.
  std::vector<std::byte> local(64);
  const auto closed = verbs::MemoryRegion::register_memory(pd, local, {.access = ddp::Access::kLocalWrite}).value();
  ASSERT_TRUE(x.qp->post_send({.wr_id = 1,
                               .op = verbs::SendOp::kWrite,
                               .sges = x.sge(64),
                               .remote_stag = closed.stag(),
                               .remote_to = closed.to_of(local.data())}));
  const auto here = over(*x.connection), there = over(*y.connection);
  EXPECT_EQ(here.reason.code, Errc::kRemoteTerminate);
  EXPECT_TRUE(here.received);
  EXPECT_TRUE(there.sent);
  exchange(v, w);
  exchange(w, v);
  EXPECT_FALSE(v.connection->disconnected());
  EXPECT_EQ(sctp->associations(), 2u);
  // A third one shares it too, and the last to go takes it along.
  End t(engine, pd), u(engine, pd);
  join(t, u, shared);
  EXPECT_EQ(sctp->associations(), 2u);
  v.connection->disconnect();
  EXPECT_EQ(over(*v.connection).reason.code, Errc::kAborted);
  exchange(t, u);
  t.connection->disconnect();
  EXPECT_TRUE(eventually([&] { return sctp->associations() == 0; }));
  // And one that comes then has a new one.
  End r(engine, pd), s(engine, pd);
  join(r, s, shared);
  exchange(r, s);
}

TEST_F(SctpService, WhereNoStreamIsLeftThereIsAnotherAssociation) {
  listen();
  ConnectOptions shared = to_listener();
  shared.share_association = true;
  shared.transport.streams = 2;  // one for each end's sessions
  End x(engine, pd), y(engine, pd), v(engine, pd), w(engine, pd);
  join(x, y, shared);
  join(v, w, shared);
  EXPECT_EQ(sctp->associations(), 4u);
  exchange(x, y);
  exchange(v, w);
}

TEST_F(SctpService, AListenerThatHasGoneLeavesConnectionsAlone) {
  listen();
  End x(engine, pd), y(engine, pd), z(engine, pd);
  ConnectOptions shared = to_listener();
  shared.share_association = true;
  join(x, y, shared);
  listener.reset();
  exchange(x, y);
  EXPECT_EQ(std::get<0>(connect(z, shared)).code, Errc::kPeerRejected);  // on an association that is there still
  exchange(y, x);
}

// A peer that takes a place and does nothing with it.
TEST_F(SctpService, AnAssociationWithoutASessionIsShutDown) {
  ListenOptions options;
  options.sctp_port = 5043;
  options.idle_timeout = 100ms;
  listen(options);
  boost::asio::io_context io;
  RawPeer peer(io, listener->local());
  peer.send(peer.init());
  Octets answer;
  ASSERT_TRUE(eventually([&] { return !(answer = peer.receive()).empty(); }));
  peer.send(peer.echo(answer));
  constexpr unsigned kShutdown = 7;
  EXPECT_TRUE(eventually([&] { return !find_chunk(peer.receive(), kShutdown).empty(); }));
  EXPECT_EQ(sctp->associations(), 1u);
  EXPECT_TRUE(eventually([&] { return sctp->associations() == 0; }));  // though the peer never answers
}

}  // namespace
}  // namespace iwarp::sctp_cm
